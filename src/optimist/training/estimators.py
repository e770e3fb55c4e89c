"""The figures that show how training goes without an environment, by their names in the logs."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from optimist.training.storage.metrics import RunCurve, curves_of

HELD_OUT = "held_out_loss_"
WORDS = {"value_ratio": "value ratio", "agreement": "agreement", "value_drift": "drift"}
SHARES = ("agreement", "value_drift")  # are shown in percent
FEWEST = 3  # looks that say which way a loss went
LOOKS, STRETCHES = 3, (5, 20)  # looks in a stretch, and the fewest and most stretches of a run
CLEAR = 0.1  # share of a loss; a smaller change is called none


def estimators_in(row: dict) -> list[str]:
    """The names of the estimators in a row of figures, those on held-out data first."""
    return [name for name in row if name.startswith(HELD_OUT)] + [name for name in WORDS if name in row]


def title(name: str) -> str:
    """'held-out loss q', 'value ratio'."""
    return WORDS.get(name) or f"held-out loss {name.removeprefix(HELD_OUT)}"


def shown(name: str, value: float) -> str:
    if name in SHARES:
        return f"{100 * value:.3g}%"
    return f"{value:.3g}" if math.isfinite(value) else str(value)


def in_words(rows: Sequence[dict]) -> str:
    """'held-out loss q 0.0123, value ratio 0.93, agreement 81%': means over the seeds that have a figure."""
    names = list(dict.fromkeys(name for row in rows for name in estimators_in(row)))
    found = []
    for name in names:
        values = [row[name] for row in rows if name in row]
        found.append(f"{title(name)} {shown(name, sum(values) / len(values))}")
    return ", ".join(found)


class Course(NamedTuple):
    """How a loss went in a run: means over the seeds, each the median of a stretch of looks."""

    first: float
    lowest: float
    last: float
    step: int  # of the lowest
    noise: float  # a smaller difference is none

    @property
    def rose(self) -> bool:
        return self.last - self.lowest > self.noise

    @property
    def fell(self) -> bool:
        return self.first - self.lowest > self.noise

    @property
    def growth(self) -> float:
        """How far it rose, as a share of the lowest."""
        return (self.last - self.lowest) / max(abs(self.lowest), 1e-9)

    def __str__(self) -> str:
        if self.rose:
            before = f"fell from {self.first:.3g}, and " if self.fell else ""
            return f"{before}rose from step {self.step:,} on, from {self.lowest:.3g} to {self.last:.3g}"
        return (
            f"fell from {self.first:.3g} to {self.last:.3g}" if self.fell else f"stayed about {self.last:.3g}"
        )


def course(curves: Iterable[RunCurve]) -> Course | None:
    """The course of the mean of these curves; None if there are too few looks to tell."""
    by_step = [dict(zip(curve.steps.tolist(), curve.values.tolist(), strict=True)) for curve in curves]
    steps = sorted(set.intersection(*map(set, by_step))) if by_step else []
    if len(steps) < FEWEST:
        return None
    values = np.array([np.mean([seed[step] for seed in by_step]) for step in steps])
    count = min(len(steps), np.clip(len(steps) // LOOKS, *STRETCHES))
    stretches = np.array_split(np.arange(len(steps)), count)
    levels = np.array([np.median(values[each]) for each in stretches])
    errors = [np.std(values[each]) / math.sqrt(len(each)) for each in stretches]
    low = int(levels.argmin())
    noise = max(CLEAR * abs(levels[low]), 2 * float(np.median(errors)))
    at = stretches[low][values[stretches[low]].argmin()]
    first, lowest, last = levels[[0, low, -1]].tolist()
    return Course(first, lowest, last, steps[at], noise)


def held_out_courses(rows: Sequence[dict]) -> dict[str, Course]:
    """The course of each held-out loss, by its name in the logs."""
    names = dict.fromkeys(name for row in rows for name in row if name.startswith(HELD_OUT))
    found = {name: course(curves_of(rows, name).values()) for name in names}
    return {name: each for name, each in found.items() if each}


class Remark(NamedTuple):
    line: str
    warns: bool  # is it a reason to train otherwise?


def held_out_remarks(rows: Sequence[dict]) -> list[Remark]:
    """Which way each held-out loss went and, if that of the training did not go the same way, what to do."""
    return [_remark(name, held, rows) for name, held in held_out_courses(rows).items()]


def _remark(name: str, held: Course, rows: Sequence[dict]) -> Remark:
    line = f"the {title(name)} {held}"
    learned = course(curves_of(rows, name.removeprefix("held_out_")).values())
    if not held.rose:
        return Remark(line, False)
    if learned and learned.rose and learned.growth > held.growth / 2:
        return Remark(f"{line}; the loss in training rose too: values grow, which is no overfitting", False)
    other = "take a policy from there" if held.fell else "with a smaller learning rate"
    return Remark(f"{line}: train for fewer steps (--steps {held.step:_}) or {other}", True)
