"""Scores of a run, read from its episodes.csv: averages per evaluation, then scores per seed."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optimist.errors import RunError, command_line
from optimist.studies.sheet import Cell, Sheet, number
from optimist.training.measures import estimators_in, shown, title
from optimist.training.storage.episodes import EvaluationEpisodes, read
from optimist.training.storage.metrics import curves_of

RECENT = 3  # evaluations in "mean of last 3", which reduces the effect of one lucky evaluation

Curve = dict[int, float]  # gradient updates done -> average return of that evaluation


@dataclass(frozen=True)
class SeedScore:
    """One seed's scores; `best` is the maximum of `evaluations` averages."""

    seed: int
    evaluations: int
    last: float
    best: float
    best_step: int
    mean_of_last: float


@dataclass(frozen=True)
class Spread:
    """A mean over seeds and the sample standard deviation; None with one seed."""

    mean: float
    deviation: float | None

    def __str__(self) -> str:
        """'9.1 ± 0.8', both with the same decimals; with one seed the mean alone."""
        mean = number(self.mean)
        if self.deviation is None:
            return mean
        return f"{mean} ± {self.deviation:,.{len(mean.partition('.')[2])}f}"


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


def episodes(run: Path) -> EvaluationEpisodes:
    """All rows of episodes.csv; raises an error for a row that cannot be read."""
    path = run / "episodes.csv"
    if not path.is_file():
        raise RunError(f"{path} is missing: run `{command_line('evaluate', run)}`")
    found = read(path)
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


def sheet(summaries: Mapping[str, Summary], levels: Mapping[str, float | None]) -> Sheet:
    """The average return of every agent, and levels of the data such as its best policy."""
    recent = min(RECENT, max(summary.evaluations for summary in summaries.values()))
    heads = ["", "last", "each seed's best of n", *([f"mean of last {recent}"] if recent > 1 else [])]
    rows = [
        [
            label,
            Cell(str(each.last), each.last.mean),
            Cell(f"{each.best} of {each.evaluations}", each.best.mean),
            *([Cell(str(each.mean_of_last), each.mean_of_last.mean)] if recent > 1 else []),
        ]
        for label, each in summaries.items()
    ]
    rows += [
        [name, Cell(number(level), level), *[""] * (len(heads) - 2)]
        for name, level in levels.items()
        if level is not None
    ]
    return Sheet("average return, mean ± sd over seeds", heads, rows)


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
