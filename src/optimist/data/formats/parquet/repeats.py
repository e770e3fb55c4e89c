"""Rows of a table that were written twice."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optimist.data.rules.log import Part

FLAT = ("rewards", "terminals", "truncations")  # one value a row; others are refused where they are stored


@dataclass
class Repeats:
    """Counts the rows of a table that equal the row before, as they are read."""

    rows: int = 0
    repeated: int = 0
    first_repeated: int = 0

    def watched(self, parts: Iterator[Part]) -> Iterator[Part]:
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


def _equal_to_the_row_before(part: Part) -> np.ndarray:
    """By the rewards first: of the other columns only those rows are compared that are still equal."""
    count = len(part["rewards"])
    same, rewards = np.zeros(count, bool), part["rewards"].reshape(count)
    same[1:] = rewards[1:] == rewards[:-1]
    for column in sorted(part.values(), key=lambda column: column.nbytes):
        rows, flat = np.flatnonzero(same), column.reshape(count, -1)
        same[rows] = (flat[rows] == flat[rows - 1]).all(axis=1)
    return same
