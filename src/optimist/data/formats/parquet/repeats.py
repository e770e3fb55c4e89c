"""Signs that the rows of a table are not in the order of time, or were written twice."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from optimist.data.formats._log import Part
from optimist.errors import DataError, in_one_line, log

COUNTS = ("step", "steps", "step_id", "timestep", "time_step", "t")
USUAL = (*COUNTS, "time", "timestamp")
FLAT = ("rewards", "terminals", "truncations")  # one value a row; others are refused where they are stored


def clock_of(schema: pa.Schema, free: Collection[str]) -> str | None:
    """The column that counts the steps or has their time, among those that nothing else uses."""
    found = [name for name in USUAL if name in free and _is_clock(schema.field(name).type)]
    return found[0] if found else None


def _is_clock(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_timestamp(kind)


def times(column: pa.Array) -> np.ndarray:
    """The values as numbers; an empty cell is NaN, which is neither earlier nor later."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


@dataclass
class RowOrder:
    """Looks at all rows of a table as they are read, together with its clock if it has one."""

    clock: str | None
    rows: int = 0
    repeated: int = 0
    first_repeated: int = 0
    is_warned: bool = False

    def watched(self, parts: Iterator[Part]) -> Iterator[Part]:
        """The parts without their times. DataError if an episode goes back in time."""
        before: Part | None = None
        self.rows = self.repeated = 0
        for part in parts:
            count = len(part["rewards"])
            if count and all(part[name].size == count for name in FLAT if name in part):
                self._look(part, before)
                before = {name: column[-1:].copy() for name, column in part.items()}
            self.rows += count
            yield {name: column for name, column in part.items() if name != "times"}

    def notes(self) -> list[str]:
        """Rows may repeat honestly, so this is a remark."""
        if not self.repeated:
            return []
        counted = f"{self.repeated:,} of {self.rows:,} rows {'equals' if self.repeated == 1 else 'equal'}"
        return [
            f"{counted} the row before in every column that is read (first: row {self.first_repeated}); if "
            "rows were written twice, remove them"
        ]

    def _look(self, part: Part, before: Part | None) -> None:
        if before is not None:
            part = {name: np.concatenate([before[name], column]) for name, column in part.items()}
        first = self.rows - int(before is not None)
        same = _equal_to_the_row_before(part)
        if same.any() and not self.repeated:
            self.first_repeated = int(same.argmax()) + first
        self.repeated += int(same.sum())
        if self.clock:
            self._look_at_times(part, same, first)

    def _look_at_times(self, part: Part, same: np.ndarray, first: int) -> None:
        passed, goes_on = np.diff(part["times"]), _goes_on(part)
        name, mend = in_one_line(self.clock), "sort the rows by episode and time, or mark where episodes end"
        back = goes_on & (passed < 0)
        if back.any():
            row = int(back.argmax()) + 1 + first
            of_day = "is a time of day that passes midnight, or " if self.clock == "time" else ""
            raise DataError(
                f'the column "{name}" goes back in row {row}, within an episode: {mend}; if it {of_day}has '
                f"another meaning, leave it out: --drop {name}"
            )
        stays = goes_on & (passed == 0) & ~same[1:]
        if stays.any() and not self.is_warned and self.clock in COUNTS:
            self.is_warned = True
            row = int(stays.argmax()) + 1 + first
            log.warning(
                f'the column "{name}" stays the same from row {row - 1} to {row}, within an episode: {mend}'
            )


def _equal_to_the_row_before(part: Part) -> np.ndarray:
    """By the rewards first: of the other columns only those rows are compared that are still equal."""
    count = len(part["rewards"])
    same, rewards = np.zeros(count, bool), part["rewards"].reshape(count)
    same[1:] = rewards[1:] == rewards[:-1]
    for column in sorted(part.values(), key=lambda column: column.nbytes):
        rows, flat = np.flatnonzero(same), column.reshape(count, -1)
        same[rows] = (flat[rows] == flat[rows - 1]).all(axis=1)
    return same


def _goes_on(part: Part) -> np.ndarray:
    """Whether the episode of each row but the last goes on in the next one."""
    count = len(part["rewards"])
    ended = np.zeros(count, bool)
    for name in ("terminals", "truncations"):
        if name in part:
            ended |= part[name].reshape(count).astype(bool)
    if "episodes" in part:
        ended[:-1] |= part["episodes"][1:] != part["episodes"][:-1]
    return ~ended[:-1]
