"""Aggregates of the scores of several runs on several games, with bootstrap intervals.

Defined as by Agarwal et al. (2021), "Deep reinforcement learning at the edge of the statistical
precipice". Scores are (..., runs, games), normalised per game; otherwise the game with the largest numbers
dominates. A statistic reduces the last two axes and keeps those before them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optimist.errors import UsageError

REPETITIONS = 50_000  # as in the paper; with another seed a bound moves by 0.3% of the width
AT_ONCE = 2**18  # scores resampled together: 2 MiB, so that every pass over them stays in the cache
SHARE = (0.0, 1.0)  # the limits of a probability or of a share of runs
FEW = 6  # up to so many runs every possible draw is scored once: six runs have 462 draws, five have 126


@dataclass(frozen=True)
class Interval:
    """An estimate and its bounds: floats, or arrays if the statistic gives several numbers.

    If the statistic is biased, the estimate may lie outside the bounds."""

    estimate: Any
    low: Any
    high: Any


@dataclass(frozen=True, eq=False)
class CrossChosen:
    """Cross-chosen scores: each run is scored at the evaluation that is best for the other runs of its game.
    With the curves that a bootstrap needs to choose again in every draw.

    A run's score depends on the other runs, because they choose its evaluation. A bootstrap of the scores
    alone keeps that choice, so it misses most of the variation between repetitions of a study: its 95%
    intervals of 5 runs on 5 games cover the expected value in about 80% of simulated studies."""

    scores: np.ndarray  # (runs, games)
    curves: Sequence[np.ndarray]  # for each game (runs, evaluations); the games may differ in evaluations

    @property
    def shape(self) -> tuple[int, ...]:
        return self.scores.shape

    def __len__(self) -> int:
        return len(self.scores)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        """The scores, for statistics that draw nothing."""
        return np.array(self.scores, dtype=dtype, copy=copy)

    def drawn(self, runs: np.ndarray) -> np.ndarray:
        """The cross-chosen scores within each draw: numbers of runs, (draws, runs, games) -> scores of the
        same shape."""
        scores = np.empty(runs.shape)
        for game, curves in enumerate(self.curves):
            drawn = runs[:, :, game]
            if len(curves) <= FEW:
                ways = _ways(len(curves))
                chosen = self._of_all_ways[game][ways.places[ways.digits[drawn].sum(axis=1)]]
            else:
                chosen = _chosen_scores(curves, _copies(drawn))
            scores[:, :, game] = np.take_along_axis(chosen, drawn, axis=1)
        return scores

    @cached_property
    def _of_all_ways(self) -> list[np.ndarray]:
        """For each game the scores in every possible draw, (ways, runs)."""
        return [_chosen_scores(curves, _ways(len(curves)).copies) for curves in self.curves]


class Ways(NamedTuple):
    """All ways to draw a few runs with replacement, without regard to order."""

    copies: np.ndarray  # of each run, (ways, runs)
    digits: np.ndarray  # the sum over the drawn runs is a number for each way
    places: np.ndarray  # of the ways by their numbers


@cache
def _ways(runs: int) -> Ways:
    copies = _copies(np.array(list(combinations_with_replacement(range(runs), runs))))
    digits = (runs + 1) ** np.arange(runs)
    places = np.zeros((runs + 1) ** runs, int)
    places[copies @ digits] = np.arange(len(copies))
    return Ways(copies, digits, places)


def _copies(drawn: np.ndarray) -> np.ndarray:
    """The number of copies of each run in each draw, (draws, runs)."""
    return (drawn[:, :, None] == np.arange(drawn.shape[1])).sum(axis=1)


def _chosen_scores(curves: np.ndarray, copies: np.ndarray) -> np.ndarray:
    """The score of each run in draws with these numbers of copies: (draws, runs).

    A run's evaluation is chosen without any copy of the run itself. If a draw has only copies of one run, all
    the other runs of the study choose."""
    all_drawn, scores = copies @ curves, np.empty(copies.shape)
    for run, curve in enumerate(curves):
        mine = copies[:, [run]]
        others = np.where(mine == len(curves), curves.sum(axis=0) - curve, all_drawn - mine * curve)
        scores[:, run] = curve[others.argmax(axis=1)]
    return scores


def score_matrix(by_game: Mapping[str, Sequence[float]], games: Iterable[str] | None = None) -> np.ndarray:
    """The (runs, games) matrix of the named games, or of all in alphabetical order.

    Two agents are compared game by game, so give both matrices the same `games`. A game with fewer runs is an
    error: adding scores would invent them, and dropping runs of the other games would lose scores.
    """
    names = sorted(by_game) if games is None else list(games)
    for name in names:
        if name not in by_game:
            raise UsageError(f"{name} has no scores: run it, or leave it out for every agent")
    runs = {name: len(by_game[name]) for name in names}
    longest = max(runs, key=lambda name: runs[name], default="")
    for name in names:
        if runs[name] < runs[longest]:
            raise UsageError(
                f"{name} has {runs[name]} runs and {longest} has {runs[longest]}: "
                "finish the missing runs, or leave the game out"
            )
    return _checked(list(zip(*(by_game[name] for name in names), strict=True)), names, dimensions=2)


def mean(scores: ArrayLike) -> np.ndarray:
    """Mean over games of the mean over runs; one very high game can dominate it."""
    return _checked(scores).mean(axis=-2).mean(axis=-1)


def median(scores: ArrayLike) -> np.ndarray:
    """Median over games of the mean over runs; zeros in nearly half of the games do not change it."""
    return np.median(_checked(scores).mean(axis=-2), axis=-1)


def iqm(scores: ArrayLike) -> np.ndarray:
    """Interquartile mean: the mean of all runs on all games without the lowest and the highest quarter.

    A quarter of n scores is n // 4 of them, as in rliable and scipy.stats.trim_mean."""
    scores = _checked(scores)
    pooled = scores.reshape(*scores.shape[:-2], -1)
    count = pooled.shape[-1]
    first, last = count // 4, count - count // 4 - 1
    return np.partition(pooled, (first, last), axis=-1)[..., first : last + 1].mean(axis=-1)


def optimality_gap(scores: ArrayLike, gamma: float = 1.0) -> np.ndarray:
    """Mean shortfall below `gamma`: E[max(gamma - score, 0)]; smaller is better."""
    return gamma - np.minimum(_checked(scores), gamma).mean(axis=(-2, -1))


def performance_profile(scores: ArrayLike, thresholds: ArrayLike) -> np.ndarray:
    """Score distribution: the share of all runs on all games strictly above each threshold."""
    scores, levels = _checked(scores), np.asarray(thresholds, dtype=float).ravel()
    # One threshold at a time, so that memory does not grow with their number.
    return np.stack([(scores > tau).mean(axis=(-2, -1)) for tau in levels], axis=-1)


def probability_of_improvement(x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """Mean over games of P(X > Y) + P(X = Y) / 2, for a run of x and one of y on the same game.

    Within a game that is the Mann-Whitney statistic over the number of pairs; runs may differ in number."""
    x, y = _checked(x), _checked(y)
    if x.shape[-1] != y.shape[-1]:
        raise UsageError(f"{x.shape[-1]} games and {y.shape[-1]} games: compare two agents on the same games")
    runs = x.shape[-2]
    wins = sum(
        np.mean((x[..., [run], :] > y) + 0.5 * (x[..., [run], :] == y), axis=-2) for run in range(runs)
    )  # one run of x at a time: all pairs at once would take runs times the memory
    return (wins / runs).mean(axis=-1)


def stratified_bootstrap(
    statistic: Callable[..., np.ndarray],
    *matrices: ArrayLike | CrossChosen,
    repetitions: int = REPETITIONS,
    confidence: float = 0.95,
    seed: int = 0,
    paired: bool = False,
    limits: tuple[ArrayLike, ArrayLike] = (-np.inf, np.inf),
) -> Interval:
    """The percentile interval of statistic(*matrices) when runs are resampled, with replacement, per game.

    Each game of each (runs, games) matrix is resampled separately; if `paired`, with the same runs in all
    matrices. The interval describes other runs on the same games, not other games. With few runs it is too
    narrow. With one run both bounds equal the estimate, because the spread is unknown, not because it is
    zero.

    Every draw of `CrossChosen` runs repeats the choice of their evaluations. A draw has fewer distinct runs
    than the study, so its choice is worse and its score lower on average; the draws are shifted so that
    their mean is the estimate. `limits` are the values that the statistic can have, such as SHARE, or that
    each of its numbers can have: the shift may lead beyond them.
    """
    if not matrices or repetitions < 1 or not 0 < confidence < 1:
        raise UsageError(
            f"{len(matrices)} matrices, {repetitions} repetitions, confidence {confidence}: give at least "
            "one matrix, at least one repetition, and a confidence between 0 and 1"
        )
    tables = [_checked(matrix, dimensions=2) for matrix in matrices]
    estimate = np.asarray(statistic(*tables))
    results = np.empty((repetitions, *estimate.shape))
    # One random stream per matrix, so that the draws do not depend on AT_ONCE.
    streams = np.random.default_rng(seed).spawn(len(tables))
    if paired:
        streams = [np.random.default_rng(seed) for _ in tables]
    at_once = max(1, AT_ONCE // sum(table.size for table in tables))
    for start in range(0, repetitions, at_once):
        part, resampled = results[start : start + at_once], []
        for matrix, table, stream in zip(matrices, tables, streams, strict=True):
            runs, games = table.shape
            drawn = stream.integers(runs, size=(len(part), runs, games))
            of_game = (
                matrix.drawn(drawn) if isinstance(matrix, CrossChosen) else table[drawn, np.arange(games)]
            )
            resampled.append(of_game)
        values = np.asarray(statistic(*resampled))
        if values.shape != part.shape:  # np.mean, for example, would also average over the repetitions
            raise UsageError("the statistic must reduce the last two axes and keep those before them")
        part[:] = values
    if any(isinstance(matrix, CrossChosen) for matrix in matrices):
        results += estimate - results.mean(axis=0)
    low, high = np.quantile(results, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0).clip(*limits)
    return Interval(*(value if value.ndim else value.item() for value in (estimate, low, high)))


def paired_difference(
    x: ArrayLike | CrossChosen,
    y: ArrayLike | CrossChosen,
    statistic: Callable[[np.ndarray], np.ndarray] = iqm,
    **options: Any,
) -> Interval:
    """The interval of statistic(x) - statistic(y), where run i of both learned from the same log.

    Each draw takes the same runs of both, so that a log that is easy for both does not widen the interval."""
    shapes = [_checked(matrix, dimensions=2).shape for matrix in (x, y)]
    if shapes[0] != shapes[1]:
        raise UsageError(f"scores of shape {shapes[0]} and {shapes[1]}: pairs need the same runs and games")
    return stratified_bootstrap(
        lambda one, other: statistic(one) - statistic(other), x, y, paired=True, **options
    )


AGGREGATES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "iqm": iqm,
    "median": median,
    "mean": mean,
    "optimality_gap": optimality_gap,
}
LOWEST = {"optimality_gap": 0.0}  # an aggregate that cannot be below this


def aggregates(scores: ArrayLike | CrossChosen, **options: Any) -> dict[str, Interval]:
    """IQM, median, mean and optimality gap, with intervals from the same resampled runs."""
    together = stratified_bootstrap(
        lambda drawn: np.stack([aggregate(drawn) for aggregate in AGGREGATES.values()], axis=-1),
        scores,
        limits=([LOWEST.get(name, -np.inf) for name in AGGREGATES], np.inf),
        **options,
    )
    rows = zip(together.estimate.tolist(), together.low.tolist(), together.high.tolist(), strict=True)
    return {name: Interval(*row) for name, row in zip(AGGREGATES, rows, strict=True)}


def _checked(scores: ArrayLike, games: Sequence[str] = (), *, dimensions: int | None = None) -> np.ndarray:
    """Scores as floats (..., runs, games); raises UsageError for the first problem."""
    try:
        matrix = np.asarray(scores, dtype=float)
    except (TypeError, ValueError):
        raise UsageError("scores must be numbers, with the same number of runs for each game") from None
    if matrix.ndim < 2 or matrix.size == 0 or matrix.ndim != (dimensions or matrix.ndim):
        raise UsageError(
            f"scores of shape {matrix.shape}: they must be (runs, games), with at least one of each"
        )
    finite = np.isfinite(matrix)
    if not finite.all():
        place = tuple(np.argwhere(~finite)[0])
        game = games[place[-1]] if games else f"game {place[-1] + 1} of {matrix.shape[-1]}"
        raise UsageError(f"{game}, run {place[-2] + 1}: a score of {matrix[place]} cannot be averaged")
    return matrix
