"""How well a run plays, read from its episodes.csv: averages per evaluation, then scores per seed."""

import csv
import math
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from optimist.errors import RunError

COLUMNS = ("step", "seed", "episode", "return", "length")
RECENT = 3  # evaluations behind "mean of the last three": enough to calm one lucky evaluation

Curve = dict[int, float]  # gradient updates done -> average return of that evaluation


class Episodes(NamedTuple):
    """Every evaluation episode of a run, a column each."""

    step: np.ndarray
    seed: np.ndarray
    score: np.ndarray
    length: np.ndarray


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
    return averages(episodes(run))


def episodes(run: Path) -> Episodes:
    """The whole of its episodes.csv; a row that cannot be read is an error, never skipped."""
    path = run / "episodes.csv"
    if not path.is_file():
        raise RunError(f"{path} is missing: run `optimist evaluate {run}`")
    found = _read_at_once(path) or _read_by_row(path)
    if not len(found.step):
        raise RunError(f"{run} holds no evaluation episodes: run `optimist evaluate {run}`")
    return found


def averages(played: Episodes) -> dict[int, Curve]:
    """For each seed, the average over the episodes of each evaluation."""
    order = np.lexsort((played.step, played.seed))
    step, seed = played.step[order], played.seed[order]
    score = played.score[order].tolist()
    new = np.flatnonzero((np.diff(step) != 0) | (np.diff(seed) != 0)) + 1
    first, last = [0, *new.tolist()], [*new.tolist(), len(score)]
    found: dict[int, Curve] = {}
    for begin, end, at, whose in zip(first, last, step[first].tolist(), seed[first].tolist(), strict=True):
        found.setdefault(whose, {})[at] = statistics.fmean(score[begin:end])
    return found


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


def _read_at_once(path: Path) -> Episodes | None:
    """By columns, many times faster than by rows; None if anything is odd, for a row's reader to name."""
    whole, real = pa.int64(), pa.float64()
    types = dict(zip(COLUMNS, (whole, whole, whole, real, whole), strict=True))
    options = arrow_csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False)
    try:
        table = arrow_csv.read_csv(path, convert_options=options)
    except pa.ArrowInvalid:
        return None
    if tuple(table.column_names) != COLUMNS:
        return None
    found = Episodes(*(table[name].to_numpy() for name in ("step", "seed", "return", "length")))
    return found if np.isfinite(found.score).all() else None


def _read_by_row(path: Path) -> Episodes:
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise RunError(f"{path} does not begin with {','.join(COLUMNS)}: evaluate the run again")
        read = [_episode(row, f"{path}, line {rows.line_num}") for row in rows]
    return Episodes(*(np.array(column) for column in zip(*read, strict=True))) if read else _NONE


def _episode(row: dict, place: str) -> tuple[int, int, float, int]:
    try:
        step, seed, value = int(row["step"]), int(row["seed"]), float(row["return"])
        length = int(row["length"])
    except (TypeError, ValueError):
        raise RunError(f"{place} is not an evaluation episode: evaluate the run again") from None
    if not math.isfinite(value):
        raise RunError(f"{place} holds a return of {value}: evaluate the run again")
    return step, seed, value, length


_NONE = Episodes(*(np.empty(0) for _ in Episodes._fields))
