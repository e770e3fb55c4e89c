"""A log on its way in: its columns, part by part, become the steps of a new dataset.

`Intake` checks what each row holds; here is what the log as a whole decides: its spec, the numbers of its
actions, and where its episodes end.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from optimist.data.formats._plan import Asked, Part, Plan
from optimist.data.intake import Counts, Intake
from optimist.data.transition import Spec
from optimist.errors import DataError

__all__ = ["Asked", "Imported", "Log", "Part", "Report", "bring_in", "exact", "gathered", "problems"]

Progress = Callable[[int, int], None]

BYTES_AT_ONCE = 2**24  # of the observations that are read together
FEW_ROWS = 2**13  # shorter parts, such as episodes, are joined up to these rows
LARGEST_WHOLE = 2**24  # larger whole numbers are not exact as float32


class Log(Protocol):
    """A log of another program, which can be read more than once."""

    @property
    def rows(self) -> int:
        """The number of rows; 0 if it is not known yet."""
        ...

    @property
    def columns(self) -> Collection[str]:
        """The names of its columns: those of `Dataset.from_arrays`."""
        ...

    @property
    def spec(self) -> Spec | None:
        """The spec, if the log declares it."""
        ...

    def parts(self, names: Collection[str]) -> Iterator[Part]:
        """These columns of all rows in time order, a bounded number of rows at a time."""
        ...


@dataclass(frozen=True)
class Imported:
    """What was imported, and what was changed or left out."""

    counts: Counts
    environment: str | None = None
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        return [*self.counts.lines(), *self.notes]


@dataclass(frozen=True)
class Report:
    """A table of what the log holds, and the problems."""

    problems: list[str]
    rows: Sequence[Sequence[str]]
    heads: Sequence[str]


def bring_in(
    log: Log,
    out: str | Path,
    asked: Asked,
    provenance: dict[str, Any],
    progress: Progress | None = None,
    notes: Iterable[str] = (),
) -> Imported:
    """Write the log into the new folder `out`."""
    plan = Plan.of(log, asked)
    origin = {"environment": asked.environment or "", **provenance}
    with Intake(out, plan.spec, provenance=origin) as intake:
        done, total = 0, log.rows
        for part in plan.parts(log):
            intake.add(part)
            done += len(part["rewards"])
            if progress and total:
                progress(done, total)
    return Imported(intake.counts, asked.environment, (*notes, *plan.notes))


def problems(log: Log, asked: Asked) -> list[str]:
    """The first problem that `bring_in` would raise; every row is read and nothing is written."""
    try:
        plan = Plan.of(log, asked)
        for part in plan.parts(log):
            pass
    except DataError as problem:
        return [str(problem)]
    return []


def exact(name: str, array: np.ndarray, first: int) -> np.ndarray:
    """Whole numbers as float32, if they are exact; uint8, bool and floats as they are."""
    if array.dtype.kind not in "iu" or array.dtype == np.uint8:
        return array
    wrong = np.abs(array.astype(np.float64)) > LARGEST_WHOLE
    if wrong.any():
        row = int(wrong.reshape(len(array), -1).any(axis=1).argmax()) + first
        raise DataError(
            f"{name} hold whole numbers above {LARGEST_WHOLE:,} (first in row {row}), which are not exact as "
            "float32; are they ids? leave them out, or scale them"
        )
    return array.astype(np.float32)


def gathered(parts: Iterable[Part]) -> Iterator[Part]:
    """Short consecutive parts as longer ones."""
    waiting: list[Part] = []
    rows = size = 0
    for part in parts:
        waiting.append(part)
        rows += len(next(iter(part.values())))
        size += sum(column.nbytes for column in part.values())
        if rows >= FEW_ROWS or size >= BYTES_AT_ONCE:
            yield _joined(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
