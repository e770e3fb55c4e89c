"""The paper's normalisation of scores: 0 and 100% of each game, and medians over games.

A score is normalised by two agents' scores (Agarwal, Schuurmans and Norouzi 2020, appendix, "Score
Normalization"): the worse of the two is 0, the better is 1. Usually random play is 0 and the fully trained
DQN is 1; on Skiing and Solaris DQN is the worse. The package has published and measured scores of the 60
Atari games, and the paper's own results; `reference/README.md` names the source of each column.
"""

import csv
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from optimist.errors import DataError, UsageError, did_you_mean
from optimist.studies.scores.curves import RECENT, Curve, Seeds, finite, read_rows, same_steps

DEFAULT = "dqn-random"
OWN = "the study's own scores"
REFERENCE = files("optimist.studies.scores").joinpath("reference")
Scores = TypeVar("Scores", float, np.ndarray)


@cache
def published() -> dict[str, dict[str, str]]:
    """The row of published scores of each game."""
    return {row["game"]: row for row in _lines("atari_reference_scores.csv")}


@cache
def random_with_sticky_actions() -> dict[str, float]:
    """The mean score of uniformly random play of each game, measured here with the paper's protocol."""
    return {row["game"]: float(row["mean"]) for row in _lines("atari_random_sticky.csv")}


@cache
def paper_table() -> list[dict[str, str]]:
    """The rows of the paper's Table 1 and of its appendix: agent, steps, median_percent, games_better."""
    return _lines("paper_table_1.csv")


def _lines(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(REFERENCE.joinpath(name).read_text(encoding="utf-8").splitlines()))


@dataclass(frozen=True)
class Normaliser:
    """Two scores for each game: the yardstick's (an agent to compare with) and random play's."""

    yardstick_scores: Mapping[str, float]
    random_scores: Mapping[str, float]
    yardstick: str = "DQN"  # name of the agent to compare with
    name: str = OWN
    provenance: str = ""  # where the two columns come from

    def bounds(self, game: str) -> tuple[float, float]:
        """The scores that count as 0 and as 1."""
        for scores, whose in ((self.yardstick_scores, self.yardstick), (self.random_scores, "random")):
            if game not in scores:
                hint = did_you_mean(game, scores)
                hint = hint if hint.startswith("did") else "leave the game out"
                raise UsageError(
                    f'{self.name} has no {whose} score of "{game}": {hint} '
                    "or give both scores of every game in a file of your own "
                    '(--normaliser FILE.csv; in a study\'s file normaliser = "FILE.csv")'
                )
        low, high = sorted((self.yardstick_scores[game], self.random_scores[game]))
        if low == high:
            raise UsageError(
                f"{game}: {self.yardstick} and random play both score {low:g} in {self.name}, so it cannot "
                "be normalised: leave the game out, or give other scores with --normaliser FILE.csv"
            )
        return low, high

    def ends(self, games: Iterable[str], yardstick: str = "") -> tuple[str, str]:
        """Who scores 0 and who scores 1 in these games, the yardstick by another name if one is given."""
        both = ("random play", yardstick or self.yardstick)
        exchanged = {self.yardstick_scores[game] < self.random_scores[game] for game in games}
        if len(exchanged) > 1:
            return "the worse", f"the better of {' and '.join(reversed(both))}"
        return both[::-1] if exchanged == {True} else both

    def normalised(self, game: str, score: Scores) -> Scores:
        """(score - min) / (max - min) of the two scores."""
        low, high = self.bounds(game)
        return (score - low) / (high - low)

    def improvement(self, game: str, score: float) -> float:
        """The percentage by which the normalised score exceeds 1, the better of the two agents."""
        return 100 * (self.normalised(game, score) - 1)

    def is_better(self, game: str, score: Any) -> Any:
        """Is a score, or each of an array, strictly better than the yardstick's? The yardstick may be worse
        than random play."""
        self.bounds(game)  # raises for a game that cannot be normalised
        return score > self.yardstick_scores[game]


KINDS = {  # six ways to make one score of the curves of all seeds
    "best": "best",  # at the evaluation whose mean over seeds is largest, as in the paper
    "cross": "cross-chosen best",  # each seed at the evaluation that is best for the others
    "last": "last",
    "mean_of_last": "mean of last {}",
    "area": "mean of all",
    "chosen": "chosen offline",  # each seed at the evaluation that `optimist select` chose by the log alone
}
MAIN = ("best", "cross", "chosen", "last")  # for tables without room for all
NOTHING_CHOSEN: Mapping[int, int] = {}


BUILT_IN = {  # the columns of the yardstick and of random play, its name, and where both come from
    "dqn-random": (
        "dqn_nature_eval_sgi",
        "",  # measured here
        "DQN",
        "DQN from the SGI repository's table, most likely the online DQN (Nature) of the public data, mean "
        "of 5 runs; random play with sticky actions as measured for this package",
    ),
    "human-random": (
        "human",
        "random",
        "human",
        "DQN Zoo's table for 55 games and Atari-PB's for 5: no-op starts, no sticky actions",
    ),
}


def normaliser(name: str) -> Normaliser:
    """A built-in normaliser by its name, or one from a CSV file."""
    if name in BUILT_IN:
        column, random, yardstick, provenance = BUILT_IN[name]
        scores, random_scores = (
            {game: float(row[each]) for game, row in published().items()}
            if each
            else random_with_sticky_actions()
            for each in (column, random)
        )
        return Normaliser(scores, random_scores, yardstick, name, provenance)
    if name.lower().endswith(".csv") or Path(name).is_file():
        return from_csv(Path(name))
    raise UsageError(f'there is no normaliser "{name}": {did_you_mean(name, BUILT_IN)} or name a CSV file')


def from_csv(path: Path) -> Normaliser:
    """A normaliser from the columns game, random and one that has the yardstick's name."""
    rows = read_rows(path)
    columns = list(rows[0][1]) if rows else []
    others = [column for column in columns if column not in ("game", "random")]
    if len(columns) != 3 or len(others) != 1:
        raise DataError(
            f"{path} is not a normaliser: it needs the columns game,random,dqn (or another name) and rows"
        )
    scores: dict[str, dict[str, float]] = {column: {} for column in (*others, "random")}
    for line, row in rows:
        if row["game"] in scores["random"]:
            raise DataError(f'{path} has several rows of "{row["game"]}": keep one')
        for column, by_game in scores.items():
            by_game[row["game"]] = finite(row[column], f"{path}, line {line}")
    yardstick, random = scores.values()
    shown = "DQN" if others[0].lower() == "dqn" else others[0]
    return Normaliser(yardstick, random, shown, name=str(path), provenance=f"the file {path}")


def kind_title(kind: str, evaluations: int | None, recent: int = RECENT) -> str:
    """'best of 50', 'cross-chosen best', 'last', 'mean of last 3' (or of as many as there are)."""
    if kind == "best" and evaluations:
        return f"best of {evaluations}"
    return KINDS[kind].format(min(recent, evaluations or recent))


def scores_by_kind(
    seeds: Seeds, recent: int = RECENT, chosen: Mapping[int, int] = NOTHING_CHOSEN
) -> dict[str, list[float]]:
    """The score of each seed, in order, in each way of `KINDS`: without `cross` if there is one seed, and
    without `chosen` if a seed was not evaluated at its chosen step.

    Curves may be shorter than `recent`."""
    curves = [seeds[seed] for seed in sorted(seeds)]
    steps = same_steps(seeds)
    at_steps = {
        "best": [_best_step(steps, curves)],
        "last": steps[-1:],
        "mean_of_last": steps[-recent:],
        "area": steps,
    }
    scores = {
        kind: [statistics.fmean(curve[step] for step in some) for curve in curves]
        for kind, some in at_steps.items()
    }
    if len(curves) > 1:
        others = [[other for other in curves if other is not mine] for mine in curves]
        scores["cross"] = [mine[_best_step(steps, rest)] for mine, rest in zip(curves, others, strict=True)]
    if all(chosen.get(seed) in curve for seed, curve in seeds.items()):
        scores["chosen"] = [seeds[seed][chosen[seed]] for seed in sorted(seeds)]
    return {kind: scores[kind] for kind in KINDS if kind in scores}


def _best_step(steps: Sequence[int], curves: Sequence[Curve]) -> int:
    """The first step at which the mean over the curves is largest."""
    return max(steps, key=lambda step: statistics.fmean(curve[step] for curve in curves))
