"""Learning curves of a run, episode_columns from its episodes.csv, and tables of how its seeds ended."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from optimist.errors import RunError, command_line
from optimist.studies.sheet import Cell, Sheet, number
from optimist.training.measures import estimators_in, shown, title
from optimist.training.storage.rows import EvaluationEpisodes, curves_of, episode_columns

RECENT = 3  # evaluations in "mean of last 3", which reduces the effect of one lucky evaluation

Curve = dict[int, float]  # gradient updates done -> average return of that evaluation


def curves(run: Path) -> dict[int, Curve]:
    """For each seed, the average return at each evaluated step, in order."""
    return averages(episodes(run))


def episodes(run: Path) -> EvaluationEpisodes:
    """All rows of episodes.csv; raises an error for a row that cannot be episode_columns."""
    path = run / "episodes.csv"
    if not path.is_file():
        raise RunError(f"{path} is missing: run `{command_line('evaluate', run)}`")
    found = episode_columns(path)
    if not len(found.step):
        raise RunError(f"{run} holds no evaluation episodes: run `{command_line('evaluate', run)}`")
    return found


def averages(played: EvaluationEpisodes) -> dict[int, Curve]:
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
    """The mean over seeds at the steps that every seed has, so that a missing seed cannot move it."""
    shared = set.intersection(*(set(curve) for curve in by_seed.values()))
    return {step: statistics.fmean(curve[step] for curve in by_seed.values()) for step in sorted(shared)}


def sheet(runs: Mapping[str, Mapping[int, Curve]], levels: Mapping[str, float | None]) -> Sheet:
    """The average return of every agent over its seeds, and levels of the data such as its best policy."""
    recent = min(RECENT, max(len(curve) for run in runs.values() for curve in run.values()))
    heads = ["", "last", "each seed's best of n", *([f"mean of last {recent}"] if recent > 1 else [])]
    rows = []
    for label, by_seed in runs.items():
        curves = [list(curve.values()) for curve in by_seed.values()]
        best = spread([max(curve) for curve in curves])
        recently = [spread([statistics.fmean(curve[-recent:]) for curve in curves])] if recent > 1 else []
        ends = spread([curve[-1] for curve in curves])
        rows.append([label, ends, Cell(f"{best.text} of {max(map(len, curves))}", best.value), *recently])
    rows += [
        [name, Cell(number(level), level), *[""] * (len(heads) - 2)]
        for name, level in levels.items()
        if level is not None
    ]
    return Sheet("average return, mean ± sd over seeds", heads, rows)


def spread(values: Sequence[float]) -> Cell:
    """'9.1 ± 0.8': mean and sample standard deviation, with the same decimals; of one value only the mean."""
    mean = statistics.fmean(values)
    shown = number(mean)
    if len(values) > 1:
        decimals = len(shown.partition(".")[2])
        shown += f" ± {statistics.stdev(values):,.{decimals}f}"
    return Cell(shown, mean)


def estimators_of(rows: Sequence[dict]) -> list[str]:
    """The names of the estimators that the run logged."""
    return list(dict.fromkeys(name for row in rows for name in estimators_in(row)))


def estimator_sheet(rows: Sequence[dict]) -> Sheet:
    """The first and the last value of each estimator, means over the seeds."""
    table = []
    for name in estimators_of(rows):
        curves = curves_of(rows, name).values()
        first, last = (float(np.mean([curve.values[at] for curve in curves])) for at in (0, -1))
        table.append([title(name), *(Cell(shown(name, value), value) for value in (first, last))])
    return Sheet("how it went, without an environment", ["estimator", "first", "last"], table)
