"""How well a run plays, read from its episodes.csv: averages per evaluation, then scores per seed."""

import csv
import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from optimist.errors import RunError

COLUMNS = ("step", "seed", "episode", "return", "length")
RECENT = 3  # evaluations behind "mean of the last three": enough to calm one lucky evaluation

Curve = dict[int, float]  # gradient updates done -> average return of that evaluation


@dataclass(frozen=True)
class SeedScore:
    """One seed's scores; `best` is a maximum over `evaluations` looks at the environment."""

    seed: int
    evaluations: int
    last: float
    best: float
    best_step: int
    mean_of_last: float


@dataclass(frozen=True)
class Spread:
    """A mean over seeds and the sample standard deviation around it; one seed has none."""

    mean: float
    deviation: float | None


@dataclass(frozen=True)
class Summary:
    """The scores of one run over all its seeds."""

    seeds: int
    evaluations: int
    last: Spread
    best: Spread
    mean_of_last: Spread


def curves(run: Path) -> dict[int, Curve]:
    """For each seed, the average return at each evaluated step, in order."""
    returns: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for step, seed, value in _episodes(run / "episodes.csv"):
        returns[seed][step].append(value)
    if not returns:
        raise RunError(f"{run} holds no evaluation episodes: run `optimist evaluate {run}`")
    return {seed: _averages(by_step) for seed, by_step in sorted(returns.items())}


def mean_curve(by_seed: dict[int, Curve]) -> Curve:
    """The mean over seeds where every seed was evaluated, so that no seed leaving moves the mean."""
    shared = set.intersection(*(set(curve) for curve in by_seed.values()))
    return {step: statistics.fmean(curve[step] for curve in by_seed.values()) for step in sorted(shared)}


def scores(run: Path) -> list[SeedScore]:
    """One row per seed: the last evaluation, the best, and the mean of the last three."""
    return [_seed_score(seed, curve) for seed, curve in curves(run).items()]


def summary(rows: list[SeedScore]) -> Summary:
    """Mean and standard deviation over seeds of each score."""
    return Summary(
        seeds=len(rows),
        evaluations=max(row.evaluations for row in rows),
        last=_spread([row.last for row in rows]),
        best=_spread([row.best for row in rows]),
        mean_of_last=_spread([row.mean_of_last for row in rows]),
    )


def _seed_score(seed: int, curve: Curve) -> SeedScore:
    averages = list(curve.values())
    best_step = max(curve, key=lambda step: curve[step])
    return SeedScore(
        seed=seed,
        evaluations=len(averages),
        last=averages[-1],
        best=curve[best_step],
        best_step=best_step,
        mean_of_last=statistics.fmean(averages[-RECENT:]),
    )


def _spread(values: list[float]) -> Spread:
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Spread(mean=statistics.fmean(values), deviation=deviation)


def _averages(by_step: dict[int, list[float]]) -> Curve:
    return {step: statistics.fmean(values) for step, values in sorted(by_step.items())}


def _episodes(path: Path) -> list[tuple[int, int, float]]:
    """(step, seed, return) of every episode; a row that cannot be read is an error, never skipped."""
    if not path.is_file():
        raise RunError(f"{path} is missing: run `optimist evaluate {path.parent}`")
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise RunError(f"{path} does not begin with {','.join(COLUMNS)}: evaluate the run again")
        return [_episode(row, f"{path}, line {rows.line_num}") for row in rows]


def _episode(row: dict, place: str) -> tuple[int, int, float]:
    try:
        step, seed, value = int(row["step"]), int(row["seed"]), float(row["return"])
    except (TypeError, ValueError):
        raise RunError(f"{place} is not an evaluation episode: evaluate the run again") from None
    if not math.isfinite(value):
        raise RunError(f"{place} holds a return of {value}: evaluate the run again")
    return step, seed, value
