"""IQM, median, mean and optimality gap of each agent, with bootstrap intervals.

A run is scored in each way of `table_one` (its kind). `best` is the paper's: in each game, the evaluation at
which the mean over seeds is best; so the median here equals the median of Table 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from optimist.studies.scores import statistics
from optimist.studies.scores.cross_chosen import CrossChosen
from optimist.studies.scores.curves import RECENT
from optimist.studies.scores.normalisation import KINDS, Normaliser, scores_of, seed_means
from optimist.studies.scores.score_files import ScoreFile, Seeds
from optimist.studies.scores.statistics import AGGREGATES, Interval
from optimist.studies.scores.table_one import kind_title
from optimist.studies.sheet import Cell, Sheet, as_csv

USUAL_BASELINE = "DQN (Nature)"  # the agent that the others are compared with, if the study has it
REPETITIONS = 5_000  # enough: with another seed a bound moves by 1% of the interval's width
BAND_REPETITIONS = 1_000  # enough for a band in a figure
THRESHOLDS = 81  # points of a profile
TITLES = {"iqm": "IQM", "median": "median", "mean": "mean", "optimality_gap": "optimality gap"}

Matrix = np.ndarray | CrossChosen  # (seeds, games), normalised
Profile = tuple[np.ndarray, Interval]  # thresholds, and the share of runs above each


@dataclass(frozen=True)
class Certainty:
    """Aggregates of one agent for one kind of score; with one seed they have no intervals."""

    agent: str
    kind: str
    games: int
    seeds: int
    aggregates: Mapping[str, Interval]
    better: Interval | None  # probability of improvement over the baseline; None for the baseline
    ahead: Interval | None = None  # paired difference of IQMs, if both learned from the same logs


def matrices(file: ScoreFile, by: Normaliser, recent: int = RECENT) -> dict[str, dict[str, Matrix]]:
    """Normalised scores by kind and agent; every agent has the same games in the same order."""
    found: dict[str, dict[str, Matrix]] = {kind: {} for kind in KINDS}
    for agent, by_game in file.agents.items():
        seed_means(by_game)  # raises if seeds were evaluated at different steps
        for kind in KINDS:
            taken = {
                game: scores_of(kind, seeds, recent, file.chosen_of(agent, game))
                for game, seeds in by_game.items()
            }
            if None in taken.values():  # cross-chosen best needs several seeds
                continue
            scores = {
                game: [by.normalised(game, score) for score in each or ()] for game, each in taken.items()
            }
            matrix = statistics.score_matrix(scores, file.games)
            curves = [_curves(by_game[game], game, by) for game in file.games] if kind == "cross" else []
            found[kind][agent] = CrossChosen(matrix, curves) if curves else matrix
    return {kind: by_agent for kind, by_agent in found.items() if len(by_agent) == len(file.agents)}


def baseline(agents: Sequence[str]) -> str:
    """The agent that the others are compared with."""
    return USUAL_BASELINE if USUAL_BASELINE in agents else agents[0]


def rows(
    scores: Mapping[str, Mapping[str, Matrix]], *, repetitions: int = REPETITIONS, paired: bool = False
) -> list[Certainty]:
    """A row per agent and kind, in the order of the study; the bootstrap has a fixed seed.
    `paired`: run i of every agent learned from the same log."""
    agents = list(scores[KINDS[0]])
    other = baseline(agents)
    return [
        Certainty(
            agent=agent,
            kind=kind,
            games=scores[kind][agent].shape[1],
            seeds=scores[kind][agent].shape[0],
            aggregates=statistics.aggregates(scores[kind][agent], repetitions=repetitions),
            better=_better(scores[kind][agent], scores[kind][other], repetitions) if agent != other else None,
            ahead=statistics.paired_difference(
                scores[kind][agent], scores[kind][other], repetitions=repetitions
            )
            if paired and agent != other
            else None,
        )
        for agent in agents
        for kind in scores
    ]


def pairs_csv(scores: Mapping[str, Mapping[str, Matrix]], *, repetitions: int = REPETITIONS) -> str:
    """The paired difference of the IQMs of every two agents."""
    lines = []
    for kind, by_agent in scores.items():
        for agent, other in combinations(by_agent, 2):
            found = statistics.paired_difference(by_agent[agent], by_agent[other], repetitions=repetitions)
            lines.append([kind, agent, other, *_numbers(found, len(by_agent[agent]))])
    heads = ["score", "agent", "other", "difference_of_iqm", "low", "high"]
    return as_csv(Sheet("", heads, lines))


def profiles(scores: Mapping[str, Mapping[str, Matrix]]) -> dict[str, dict[str, Profile]]:
    """By kind and agent, the share of runs above each threshold, from 0 to the best run (at most 2)."""
    found: dict[str, dict[str, Profile]] = {}
    for kind, by_agent in scores.items():
        highest = max(float(np.max(matrix)) for matrix in by_agent.values())
        thresholds = np.linspace(0, min(2.0, max(1.2, highest)), THRESHOLDS)
        found[kind] = {
            agent: (thresholds, _profile(matrix, thresholds)) for agent, matrix in by_agent.items()
        }
    return found


def over_training(file: ScoreFile, by: Normaliser) -> dict[str, tuple[list[int], Interval]]:
    """For each agent the evaluated steps and the IQM at each of them."""
    found = {}
    for agent, by_game in file.agents.items():
        steps = sorted(next(iter(next(iter(by_game.values())).values())))
        scores = np.array([_curves(seeds, game, by) for game, seeds in by_game.items()])
        matrices = [scores[:, :, place].T for place in range(len(steps))]
        sure = [
            statistics.stratified_bootstrap(statistics.iqm, matrix, repetitions=BAND_REPETITIONS)
            for matrix in matrices
        ]
        columns = zip(*((each.estimate, each.low, each.high) for each in sure), strict=True)
        found[agent] = steps, Interval(*(np.array(column) for column in columns))
    return found


def sheet(found: Sequence[Certainty], evaluations: int) -> Sheet:
    """A row per agent and kind, every estimate with its interval."""
    other = baseline([row.agent for row in found])
    paired = any(row.ahead for row in found)
    heads = ["agent", "score", *TITLES.values(), f"P(better than {other})"]
    rows = [
        [
            row.agent,
            kind_title(row.kind, evaluations),
            *(interval_cell(row.aggregates[name], row.seeds) for name in TITLES),
            interval_cell(row.better, row.seeds),
            *([interval_cell(row.ahead, row.seeds)] if paired else []),
        ]
        for row in found
    ]
    return Sheet(
        "aggregates over games and runs",
        [*heads, *([f"IQM less {other}'s, paired"] if paired else [])],
        rows,
        notes(found),
    )


def interval_cell(interval: Interval | None, seeds: int, sign: str = "") -> Cell:
    """'1.04 [0.98, 1.10]'; with one seed the estimate alone: its spread is unknown, not zero."""
    if interval is None:
        return Cell("")
    bounds = f" [{interval.low:{sign}.2f}, {interval.high:{sign}.2f}]" if seeds > 1 else ""
    return Cell(f"{interval.estimate:{sign}.2f}{bounds}", float(interval.estimate))


def notes(found: Sequence[Certainty]) -> list[str]:
    """Notes that explain the intervals."""
    lines = [
        "scores are normalised: 0 and 1 are the 0 and 100% of Table 1; a smaller optimality gap is better",
        "best is chosen with the scores that it reports, and its intervals do not repeat that choice, so it "
        "is too high; cross-chosen best scores each seed at the evaluation that is best for the others, and "
        "every draw of its intervals chooses again",
    ]
    if any(row.ahead for row in found):
        lines.append("paired: runs that learned from the same log are drawn together")
    if any(row.seeds > 1 for row in found):
        few = min(row.seeds for row in found)
        lines.insert(
            0,
            f"in brackets 95% intervals, {REPETITIONS:,} stratified bootstrap draws of {few} seeds per game: "
            "they describe other runs on the same games, and are too narrow with few seeds",
        )
    else:
        lines.insert(0, "one seed: the spread over seeds is unknown, so there are no intervals")
    return lines


def csv_text(found: Sequence[Certainty]) -> str:
    """A row per agent and kind; bounds are empty if there is one seed."""
    names = [*AGGREGATES, "probability_of_improvement", "paired_difference_of_iqm"]
    heads = [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    other = baseline([row.agent for row in found])
    lines: list[list] = []
    for row in found:
        intervals = [*(row.aggregates[name] for name in AGGREGATES), row.better, row.ahead]
        numbers = [number for interval in intervals for number in _numbers(interval, row.seeds)]
        lines.append([row.agent, row.kind, row.games, row.seeds, *numbers, other if row.better else ""])
    return as_csv(Sheet("", ["agent", "score", "games", "seeds", *heads, "improvement_over"], lines))


def _curves(seeds: Seeds, game: str, by: Normaliser) -> np.ndarray:
    """The normalised scores of one game at all evaluations: (seeds, evaluations)."""
    return np.array(
        [[by.normalised(game, seeds[seed][step]) for step in sorted(seeds[seed])] for seed in sorted(seeds)]
    )


def _better(x: Matrix, y: Matrix, repetitions: int) -> Interval:
    return statistics.stratified_bootstrap(
        statistics.probability_of_improvement, x, y, repetitions=repetitions, limits=statistics.SHARE
    )


def _profile(matrix: Matrix, thresholds: np.ndarray) -> Interval:
    return statistics.stratified_bootstrap(
        lambda drawn: statistics.performance_profile(drawn, thresholds),
        matrix,
        repetitions=BAND_REPETITIONS,
        limits=statistics.SHARE,
    )


def _numbers(interval: Interval | None, seeds: int) -> list:
    if interval is None:
        return ["", "", ""]
    return [interval.estimate, *((interval.low, interval.high) if seeds > 1 else ("", ""))]
