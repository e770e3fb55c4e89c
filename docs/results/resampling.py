"""The intervals of the published pages: scores read from CSV, ways to score a run, and paired bootstraps.

Every published interval belongs to a statistic of the runs of an agent, or to the difference of two: the
interquartile mean (IQM) over games and logs, or the mean over the logs of one game. Each draw of the
bootstrap takes the same logs for both sides, game by game, and chooses the evaluations of the cross-chosen
best again. An agent that ran twice on the same logs has two tables; their mean counts for each log. With five
logs of one game a bootstrap is too narrow, and the interval of Student's t stands beside it.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np

from optimist.studies.scores.cross_chosen import CrossChosen
from optimist.studies.scores.statistics import iqm, stratified_bootstrap

RESULTS = Path(__file__).parent
DRAWS = 20_000  # with another seed a bound moves by half a percent of the interval's width
STUDENT = {  # 97.5% quantile, by the number of values
    **{2: 12.70620, 3: 4.30265, 4: 3.18245, 5: 2.77645, 10: 2.26216},
    **{20: 2.09302, 30: 2.04523, 40: 2.02269, 50: 2.00958},
}
HEADS = ("reading", "score", "agent", "minus", "estimate", "low", "high")

Runs = dict[str, np.ndarray]  # by game every evaluation, (logs, evaluations)
Tables = list[np.ndarray | CrossChosen]  # for each repetition the scores, (logs, games)


@cache
def bounds(folder: str, name: str = "normaliser.csv") -> dict[str, tuple[float, float]]:
    """The scores that count as 0 and 1 in each game: random play and the players."""
    with open(RESULTS / folder / name) as file:
        rows = list(csv.reader(file))[1:]
    return {game: (float(zero), float(one)) for game, zero, one in rows}


@cache
def points(file: str) -> dict[str, Runs]:
    """Every evaluation of each agent, in points."""
    found: dict = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    with open(RESULTS / file) as stream:
        for row in csv.DictReader(stream):
            agent = f"{row['agent']}, {row['data']}" if "data" in row else row.get("agent", "player")
            found[agent][row["game"]][int(row["seed"])][int(row["step"])] = float(row["score"])
    return {
        agent: {
            game: np.array([[seeds[seed][step] for step in sorted(seeds[seed])] for seed in sorted(seeds)])
            for game, seeds in sorted(games.items())
        }
        for agent, games in found.items()
    }


def normalised(runs: Runs, limits: dict[str, tuple[float, float]]) -> Runs:
    return {
        game: (curves - limits[game][0]) / (limits[game][1] - limits[game][0])
        for game, curves in runs.items()
    }


@cache
def scores(folder: str, name: str = "scores.csv", limits: str = "normaliser.csv") -> dict[str, Runs]:
    """Every evaluation of each agent of a study, normalised."""
    found = points(f"{folder}/{name}").items()
    return {agent: normalised(runs, bounds(folder, limits)) for agent, runs in found}


def players(file: str, games: Iterable[str], limits: dict[str, tuple[float, float]] | None) -> Tables:
    """The cross-chosen best of players, in points unless it is normalised: an agent is compared with the
    player of its log."""
    (runs,) = points(file).values()
    some = {game: runs[game] for game in games}
    return tables(CROSS, normalised(some, limits) if limits else some)


def first(evaluations: int, runs: Runs) -> Runs:
    return {game: curves[:, :evaluations] for game, curves in runs.items()}


def best_place(curves: np.ndarray) -> int:
    """The first evaluation whose mean over logs is largest; sums that differ by rounding alone are equal."""
    return int(np.round(curves.mean(axis=0), 9).argmax())


def _cross_chosen(curves: np.ndarray) -> np.ndarray:
    return np.array([run[best_place(np.delete(curves, i, axis=0))] for i, run in enumerate(curves)])


CROSS, LAST = "cross-chosen best", "last"
MEASURES = {
    "best": lambda curves: curves[:, best_place(curves)],
    CROSS: _cross_chosen,
    LAST: lambda curves: curves[:, -1],
    "mean of last 3": lambda curves: curves[:, -3:].mean(axis=1),
    "mean of all": lambda curves: curves.mean(axis=1),
}


def table(measure: str, runs: Runs) -> np.ndarray | CrossChosen:
    """The score of each log and game; with the curves where a draw has to choose again."""
    found = np.stack([MEASURES[measure](curves) for curves in runs.values()], axis=1)
    return CrossChosen(found, list(runs.values())) if measure == CROSS else found


def tables(measure: str, *repetitions: Runs) -> Tables:
    return [table(measure, runs) for runs in repetitions]


def interval(one: Tables, minus: Tables = (), statistic=iqm) -> tuple[float, float, float]:
    """The statistic of the mean of the repetitions, or its difference, with 95% bounds."""

    def difference(*drawn: np.ndarray) -> np.ndarray:
        mine = statistic(np.mean(drawn[: len(one)], axis=0))
        return mine - statistic(np.mean(drawn[len(one) :], axis=0)) if minus else mine

    found = stratified_bootstrap(difference, *one, *minus, repetitions=DRAWS, paired=True)
    return found.estimate, found.low, found.high


def student(values: np.ndarray) -> tuple[float, float, float]:
    """The mean of these values, with the 95% bounds of Student's t."""
    half = STUDENT[len(values)] * values.std(ddof=1) / len(values) ** 0.5
    return values.mean(), values.mean() - half, values.mean() + half


def row(*words, one: Tables, minus: Tables = (), statistic=iqm, digits: int = 4) -> list:
    """A line of a CSV file: words, then estimate and bounds."""
    return [*words, *(f"{number:.{digits}f}" for number in interval(one, minus, statistic))]
