"""The paper's normalisation of scores: 0 and 100% of each game, and medians over games.

A score is normalised by two agents' scores (Agarwal, Schuurmans and Norouzi 2020, appendix, "Score
Normalization"): the worse of the two is 0, the better is 1. Usually random play is 0 and the fully trained
DQN is 1; on Skiing and Solaris DQN is the worse.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from optimist.errors import DataError, UsageError, did_you_mean
from optimist.studies.scores import reference
from optimist.studies.scores.curves import RECENT, Curve
from optimist.studies.scores.score_files import Seeds, finite, read_rows, same_steps

DEFAULT = "dqn-random"
OWN = "the study's own scores"
Scores = TypeVar("Scores", float, np.ndarray)


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
                raise UsageError(
                    f'{self.name} has no {whose} score of "{game}": {_hint(game, scores)} '
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


def dqn_random() -> Normaliser:
    """The paper's normalisation with the nearest public scores; `reference/README.md` has the details."""
    return Normaliser(
        name="dqn-random",
        yardstick="DQN",
        yardstick_scores=_published("dqn_nature_eval_sgi"),
        random_scores=reference.random_with_sticky_actions(),
        provenance="DQN from the SGI repository's table, most likely the online DQN (Nature) of the "
        "public data, mean of 5 runs; random play with sticky actions as measured for this package",
    )


def human_random() -> Normaliser:
    return Normaliser(
        name="human-random",
        yardstick="human",
        yardstick_scores=_published("human"),
        random_scores=_published("random"),
        provenance="DQN Zoo's table for 55 games and Atari-PB's for 5: no-op starts, no sticky actions",
    )


BUILT_IN = {"dqn-random": dqn_random, "human-random": human_random}


def normaliser(name: str) -> Normaliser:
    """A built-in normaliser by its name, or one from a CSV file."""
    if name in BUILT_IN:
        return BUILT_IN[name]()
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
    (yardstick,) = others
    games = [row["game"] for _, row in rows]
    for game in games:
        if games.count(game) > 1:
            raise DataError(f'{path} has several rows of "{game}": keep one')
    columns_of = {
        column: {row["game"]: finite(row[column], f"{path}, line {line}") for line, row in rows}
        for column in (yardstick, "random")
    }
    shown = "DQN" if yardstick.lower() == "dqn" else yardstick
    return Normaliser(
        columns_of[yardstick], columns_of["random"], shown, name=str(path), provenance=f"the file {path}"
    )


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


def _published(column: str) -> dict[str, float]:
    return {game: reference.reference_score(game, column) for game in reference.published()}


def _hint(game: str, scores: Mapping[str, float]) -> str:
    hint = did_you_mean(game, scores)
    return hint if hint.startswith("did") else "leave the game out"
