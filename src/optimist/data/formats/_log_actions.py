"""The actions of a log, found in one pass over their column."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from optimist.data.array_actions import Actions, discrete_or_vectors
from optimist.data.checking import check_finite
from optimist.data.formats._log import Asked, Log
from optimist.errors import DataError

FEW = 2**16  # whole numbers from 0 to here are counted; others are sorted, which takes longer


def chosen_actions(log: Log, asked: Asked) -> tuple[Actions, np.ndarray]:
    """The number, names or bounds of the actions: one pass over their column; and the different ones."""
    low, high = asked.action_low, asked.action_high
    seen = _Seen(are_vectors=low is not None or high is not None)
    for part in log.parts(["actions"]):
        seen.add(part["actions"])
    if not seen.rows:
        raise DataError("the log has no rows; check that it is the right file")
    if seen.low is None or seen.high is None:
        names, count = _names(asked.action_names, seen.distinct), asked.actions_count
        found = discrete_or_vectors(seen.distinct, len(seen.distinct), actions_count=count, names=names)
        return found, seen.distinct
    if asked.actions_count is not None or asked.action_names is not None:
        raise DataError("the actions are vectors, and their number or names are given; leave them out")
    lowest, highest = seen.low if low is None else low, seen.high if high is None else high
    extremes = np.stack([seen.low, seen.high])
    return discrete_or_vectors(extremes, 2, low=lowest, high=highest), seen.distinct


def _names(words: Sequence[str] | None, actions: np.ndarray) -> Sequence[str | int] | None:
    """The names that an option gives, as numbers if the actions are numbers and all of the names are too."""
    if words is None or actions.dtype.kind in "US":
        return words
    try:
        return [int(word) for word in words]
    except ValueError:
        return words


@dataclass
class _Seen:
    """The different actions so far; of vectors the bounds."""

    are_vectors: bool = False
    distinct: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    rows: int = 0

    def add(self, values: np.ndarray) -> None:
        if not len(values):
            return
        if values.dtype.kind == "f":
            check_finite("actions", values, self.rows)
        self.rows += len(values)
        flat = values.reshape(len(values), -1)
        are_whole = values.dtype.kind != "f" or (flat == np.floor(flat)).all()
        if self.low is None and not self.are_vectors and flat.shape[1] == 1 and are_whole:
            self._add_discrete(flat[:, 0])
        elif values.dtype.kind not in "fiub":
            raise DataError(
                f"actions have rows of shape {values.shape[1:]} {values.dtype}: give numbers or names"
            )
        else:
            self._add_vectors(flat.astype(np.float32))

    def _add_discrete(self, values: np.ndarray) -> None:
        if values.dtype.kind in "iu" and values.min() >= 0 and values.max() < FEW:
            found = np.flatnonzero(np.bincount(values.astype(np.int64)))
        else:
            found = np.unique(values)
        if len(self.distinct) and found.dtype.kind in "US" and self.distinct.dtype.kind not in "US":
            raise DataError("actions are texts in some rows and numbers in others; make them alike")
        self.distinct = np.union1d(self.distinct, found) if len(self.distinct) else found

    def _add_vectors(self, values: np.ndarray) -> None:
        low, high = values.min(axis=0), values.max(axis=0)
        if len(self.distinct):  # whole numbers so far
            low, high = np.minimum(low, self.distinct.min()), np.maximum(high, self.distinct.max())
            self.distinct = self.distinct[:0]
        self.low = low if self.low is None else np.minimum(self.low, low)
        self.high = high if self.high is None else np.maximum(self.high, high)
