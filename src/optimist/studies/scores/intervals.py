"""IQM, median, mean and optimality gap of each agent, with bootstrap intervals.

A run is scored in each way of `normalisation.KINDS`. `best` is the paper's: in each game, the evaluation at
which the mean over seeds is best; so the median here equals the median of Table 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from optimist.errors import DataError
from optimist.studies.scores import statistics
from optimist.studies.scores.curves import RECENT, ScoreFile, Seeds, same_steps, score_table
from optimist.studies.scores.normalisation import KINDS, Normaliser, kind_title, scores_by_kind
from optimist.studies.scores.statistics import CrossChosen, Interval
from optimist.studies.sheet import Cell, Sheet

USUAL_BASELINE = "DQN (Nature)"  # the agent that the others are compared with, if the study has it
REPETITIONS = 5_000  # enough: with another seed a bound moves by 1% of the interval's width
BAND_REPETITIONS = 1_000  # enough for a band in a figure
THRESHOLDS = 81  # points of a profile
TITLES = {"iqm": "IQM", "median": "median", "mean": "mean", "optimality_gap": "optimality gap"}

Matrix = np.ndarray | CrossChosen  # (seeds, games), normalised
Scores = Mapping[str, Mapping[str, Matrix]]  # by kind and agent
Profile = tuple[np.ndarray, Interval]  # thresholds, and the share of runs above each


@dataclass(frozen=True)
class Certainty:
    """Aggregates of one agent for one kind of score. With one seed the intervals have no bounds; the baseline
    is not compared with itself."""

    agent: str
    score: str  # its kind
    games: int
    seeds: int
    iqm: Interval
    median: Interval | None = None
    mean: Interval | None = None
    optimality_gap: Interval | None = None
    probability_of_improvement: Interval | None = None
    paired_difference_of_iqm: Interval | None = None  # if both learned from the same logs
    improvement_over: str | None = None


@dataclass(frozen=True)
class Pair:
    """The paired difference of the IQMs of two agents."""

    score: str
    agent: str
    other: str
    difference_of_iqm: Interval


def matrices(file: ScoreFile, by: Normaliser, recent: int = RECENT) -> dict[str, dict[str, Matrix]]:
    """Normalised scores by kind and agent; every agent has the same games in the same order. A kind that some
    run does not have is left out."""
    scores: dict[str, dict[str, Matrix]] = {kind: {} for kind in KINDS}
    for agent, by_game in file.agents.items():
        by_kind = {
            game: scores_by_kind(seeds, recent, file.chosen_of(agent, game))
            for game, seeds in by_game.items()
        }
        for kind in (kind for kind in KINDS if all(kind in each for each in by_kind.values())):
            normalised = {
                game: [by.normalised(game, score) for score in each[kind]] for game, each in by_kind.items()
            }
            matrix = statistics.score_matrix(normalised, file.games)
            curves = [by.normalised(game, score_table(by_game[game])) for game in file.games]
            scores[kind][agent] = CrossChosen(matrix, curves) if kind == "cross" else matrix
    return {kind: by_agent for kind, by_agent in scores.items() if len(by_agent) == len(file.agents)}


def baseline(agents: Sequence[str]) -> str:
    """The agent that the others are compared with."""
    return USUAL_BASELINE if USUAL_BASELINE in agents else agents[0]


def rows(scores: Scores, *, paired: bool = False) -> list[Certainty]:
    """A row per agent and kind, in the order of the study; the bootstrap has a fixed seed.
    `paired`: run i of every agent learned from the same log."""
    agents = list(next(iter(scores.values())))
    other, certainties = baseline(agents), []
    for agent, (kind, by_agent) in product(agents, scores.items()):
        mine, theirs = by_agent[agent], by_agent[other]
        seeds, games = mine.shape
        intervals = statistics.aggregates(mine, repetitions=REPETITIONS)
        if agent != other:
            better = statistics.probability_of_improvement
            intervals["probability_of_improvement"] = statistics.stratified_bootstrap(
                better, mine, theirs, repetitions=REPETITIONS, limits=statistics.SHARE
            )
        if agent != other and paired:
            intervals["paired_difference_of_iqm"] = _difference(mine, theirs)
        known = {name: _known(interval, seeds) for name, interval in intervals.items()}
        over = other if agent != other else None
        certainties.append(Certainty(agent, kind, games, seeds, **known, improvement_over=over))
    return certainties


def _known(interval: Interval, seeds: int) -> Interval:
    """With one seed the estimate only: its spread is unknown, not zero."""
    return interval if seeds > 1 else Interval(interval.estimate, None, None)


def pairs(scores: Scores) -> list[Pair]:
    """Every two agents, by each kind of score."""
    return [
        Pair(kind, agent, other, _known(_difference(by_agent[agent], by_agent[other]), len(by_agent[agent])))
        for kind, by_agent in scores.items()
        for agent, other in combinations(by_agent, 2)
    ]


def _difference(mine: Matrix, theirs: Matrix) -> Interval:
    return statistics.paired_difference(mine, theirs, repetitions=REPETITIONS)


def profiles(scores: Scores) -> dict[str, dict[str, Profile]]:
    """By kind and agent, the share of runs above each threshold, from 0 to the best run (at most 2)."""
    by_kind: dict[str, dict[str, Profile]] = {}
    for kind, by_agent in scores.items():
        highest = max(float(np.max(matrix)) for matrix in by_agent.values())
        thresholds = np.linspace(0, min(2.0, max(1.2, highest)), THRESHOLDS)
        share = partial(statistics.performance_profile, thresholds=thresholds)
        options: Any = {"repetitions": BAND_REPETITIONS, "limits": statistics.SHARE}
        by_kind[kind] = {
            agent: (thresholds, statistics.stratified_bootstrap(share, matrix, **options))
            for agent, matrix in by_agent.items()
        }
    return by_kind


def over_training(file: ScoreFile, by: Normaliser) -> dict[str, tuple[list[int], Interval]]:
    """For each agent the evaluated steps and the IQM at each of them."""
    by_agent = {}
    for agent, by_game in file.agents.items():
        steps = same_steps(next(iter(by_game.values())))
        scores = np.array([by.normalised(game, score_table(seeds)) for game, seeds in by_game.items()])
        sure = [
            statistics.stratified_bootstrap(
                statistics.iqm, scores[:, :, place].T, repetitions=BAND_REPETITIONS
            )
            for place in range(len(steps))
        ]
        columns = zip(*((each.estimate, each.low, each.high) for each in sure), strict=True)
        by_agent[agent] = steps, Interval(*(np.array(column) for column in columns))
    return by_agent


class Medians(NamedTuple):
    """Figure 1 of one agent: the median over games of the normalised mean over seeds, the median of each
    seed, and the number of games in which the mean is better than the yardstick's score."""

    steps: list[int]
    median: np.ndarray  # (evaluations,)
    traces: np.ndarray  # (seeds, evaluations)
    better: np.ndarray  # (evaluations,)


def medians(by_game: Mapping[str, Seeds], by: Normaliser) -> Medians:
    """If the games have other seeds, because the best players of each are kept, a trace has the first seed of
    each game, or the second."""
    tables = {game: score_table(seeds) for game, seeds in by_game.items()}
    if len({(len(seeds), *same_steps(seeds)) for seeds in by_game.values()}) > 1:
        raise DataError("the games differ in seeds or steps: a median over games needs the same of each")
    means = {game: table.mean(axis=0) for game, table in tables.items()}
    return Medians(
        steps=same_steps(next(iter(by_game.values()))),
        median=np.median([by.normalised(game, mean) for game, mean in means.items()], axis=0),
        traces=np.median([by.normalised(game, table) for game, table in tables.items()], axis=0),
        better=np.sum([by.is_better(game, mean) for game, mean in means.items()], axis=0),
    )


def sheet(rows: Sequence[Certainty], evaluations: int) -> Sheet:
    """A row per agent and kind, every estimate with its interval: '1.04 [0.98, 1.10]'."""
    other = baseline([row.agent for row in rows])
    titles = TITLES | {"probability_of_improvement": f"P(better than {other})"}
    paired = any(row.paired_difference_of_iqm for row in rows)
    if paired:
        titles["paired_difference_of_iqm"] = f"IQM less {other}'s, paired"
    cells: list[list[Any]] = []
    for row in rows:
        cells.append([row.agent, kind_title(row.score, evaluations)])
        for sure in (getattr(row, name) for name in titles):
            bounds = f" [{sure.low:.2f}, {sure.high:.2f}]" if sure and sure.low is not None else ""
            cell = Cell(f"{sure.estimate:.2f}{bounds}", float(sure.estimate)) if sure else Cell("")
            cells[-1].append(cell)
    few = min((row.seeds for row in rows if row.seeds > 1), default=None)
    notes = [
        "one seed: the spread over seeds is unknown, so there are no intervals"
        if few is None
        else f"in brackets 95% intervals, {REPETITIONS:,} stratified bootstrap draws of {few} seeds per "
        "game: they describe other runs on the same games, and are too narrow with few seeds",
        "scores are normalised: 0 and 1 are the 0 and 100% of Table 1; a smaller optimality gap is better",
        "best is chosen with the scores that it reports, and its intervals do not repeat that choice, so it "
        "is too high; cross-chosen best scores each seed at the evaluation that is best for the others, and "
        "every draw of its intervals chooses again",
    ]
    if paired:
        notes.append("paired: runs that learned from the same log are drawn together")
    return Sheet("aggregates over games and runs", ["agent", "score", *titles.values()], cells, notes)
