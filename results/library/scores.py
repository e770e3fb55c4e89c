"""The intervals of the published pages: scores read from CSV, ways to score a run, and paired bootstraps.

Every published interval belongs to a statistic of the runs of an agent, or to the difference of two: the
interquartile mean (IQM) over games and logs, or the mean over the logs of one game. Each draw of the
bootstrap takes the same logs for both sides, game by game, and chooses the evaluations of the cross-chosen
best again. An agent that ran twice on the same logs has two tables; their mean counts for each log. With five
logs of one game a bootstrap is too narrow, and the interval of Student's t stands beside it.
"""

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TextIO

import numpy as np

from optimist.studies.scores.statistics import CrossChosen, iqm, stratified_bootstrap

RESULTS = Path(__file__).parents[1]
DRAWS = 20_000  # with another seed a bound moves by half a percent of the interval's width
STUDENT = {  # 97.5% quantile, by the number of values
    **{2: 12.70620, 3: 4.30265, 4: 3.18245, 5: 2.77645, 10: 2.26216},
    **{20: 2.09302, 30: 2.04523, 40: 2.02269, 50: 2.00958},
}
HEADS = ("reading", "score", "agent", "minus", "estimate", "low", "high")

Runs = dict[str, np.ndarray]  # by game every evaluation, (logs, evaluations)
Tables = list[np.ndarray | CrossChosen]  # for each repetition the scores, (logs, games)


def opened(path: str) -> TextIO:
    """A text file below results, which may be compressed."""
    file = RESULTS / path
    return file.open(newline="") if file.exists() else gzip.open(f"{file}.gz", "rt", newline="")


def read(path: str) -> list[dict[str, str]]:
    with opened(path) as file:
        return list(csv.DictReader(file))


@cache
def bounds(folder: str, name: str = "normaliser.csv") -> dict[str, tuple[float, float]]:
    """The scores that count as 0 and 1 in each game: random play and the players."""
    with opened(f"{folder}/{name}") as file:
        rows = list(csv.reader(file))[1:]
    return {game: (float(zero), float(one)) for game, zero, one in rows}


@cache
def points(file: str) -> dict[str, Runs]:
    """Every evaluation of each agent, in points."""
    found: dict = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for row in read(file):
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


Sides = dict[str, list[Runs]]  # the repetitions of each agent
TWICE = ("DQN (Adam)", "QR-DQN", "REM", "Cloning")  # agents that ran twice on the same logs
GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
READINGS = {"1X": 5, "5X": 25}  # evaluations


def pooled() -> Sides:
    """Both repetitions of the agents of which there are two."""
    return {
        f"{agent}, pooled": [scores("epsilon-and-heads")[agent], scores("asymptotic")[agent]]
        for agent in TWICE
    }


def cut(evaluations: int, sides: Sides) -> Sides:
    return {name: [first(evaluations, runs) for runs in each] for name, each in sides.items()}


def without(game: str, sides: Sides) -> Sides:
    return {
        name: [{key: curves for key, curves in runs.items() if game not in key} for runs in each]
        for name, each in sides.items()
    }


def alone(reading: str, sides: Sides, measures: Iterable[str] = MEASURES) -> Iterator[list]:
    for name, each in sides.items():
        for measure in measures:
            yield row(reading, measure, name, "", one=tables(measure, *each))


def differences(
    reading: str, sides: Sides, pairs: Iterable[tuple[str, str]], measures: Iterable[str] = MEASURES
) -> Iterator[list]:
    for one, other in pairs:
        for measure in measures:
            mine, theirs = (tables(measure, *sides[name]) for name in (one, other))
            yield row(reading, measure, one, other, one=mine, minus=theirs)


def over_training(sides: Sides) -> Iterator[list]:
    """What each agent gains from 1X to 5X, and what it has lost at the end."""
    early, late = (cut(evaluations, sides) for evaluations in READINGS.values())
    for name in sides:
        for measure in MEASURES:
            gain = {"one": tables(measure, *late[name]), "minus": tables(measure, *early[name])}
            yield row("5X minus 1X", measure, name, "", **gain)
        fall = {"one": tables(LAST, *late[name]), "minus": tables(CROSS, *late[name])}
        yield row("5X", f"{LAST} minus {CROSS}", name, "", **fall)


def of_seeds(reading: str, one: str, other: str, apart: np.ndarray, score: str = LAST) -> list:
    """The mean of the differences of five seeds, with the bounds of Student's t."""
    return [reading, score, one, other, *(f"{number:.2f}" for number in student(apart))]
