"""The masks of the states after steps, as bits. Within an episode it is the mask of the next row; after a
last step that is not terminal a column has it, in which a mask without bits is one that is not known."""

import numpy as np

from optimist.errors import DataError

Columns = dict[str, np.ndarray]
NEXT = "next_allowed"  # the column


def of_next_rows(allowed: np.ndarray) -> np.ndarray:
    """The mask of the row after each one; the last has none."""
    return np.concatenate([allowed[1:], np.zeros_like(allowed[:1])])


def at_ends(steps: Columns, *, ends_lane: bool) -> Columns:
    """The columns with next masks only where no row follows: after truncated steps, and after the last one of
    a lane if its episode has no end."""
    if NEXT not in steps:
        return steps
    needed = steps["truncated"] & ~steps["terminal"]
    if ends_lane:
        needed[-1:] |= ~steps["terminal"][-1:]
    return {**steps, NEXT: np.where(needed[:, None], steps[NEXT], np.uint8(0))}


def if_known(steps: Columns) -> Columns:
    """The columns without next masks if none is known: such logs are as they were before the column."""
    if NEXT not in steps or steps[NEXT].any():
        return steps
    return {name: column for name, column in steps.items() if name != NEXT}


class GivenMasks:
    """Checks the next masks that a log gives, part by part. In a file of ours a mask without actions is one
    that is not known; in any other it is a mistake."""

    def __init__(self, *, may_be_unknown: bool = False) -> None:
        self._may_be_unknown = may_be_unknown
        self._last: np.ndarray | None = None  # the next mask of the last row, if its episode continues

    def check(self, steps: Columns, first: int) -> None:
        """Raise DataError for a next mask that is not the mask of the next row, or that allows nothing;
        `first` is the number of row 0."""
        if NEXT not in steps or not len(steps[NEXT]):
            return
        following, own, ended = steps[NEXT], steps["allowed"], steps["terminal"] | steps["truncated"]
        if self._last is not None and (self._last != own[0]).any():
            raise _differs(first - 1)
        differs = (following[:-1] != own[1:]).any(axis=1) & ~ended[:-1]
        if differs.any():
            raise _differs(int(differs.argmax()) + first)
        empty = ~following.any(axis=1) & ~steps["terminal"]
        if empty.any() and not self._may_be_unknown:
            raise DataError(
                f"the next_allowed_actions in row {int(empty.argmax()) + first} allow nothing, and the row "
                "is not terminal: mark it as terminal, or correct them; where they are not known, give the "
                "allowed_actions of the row itself"
            )
        self._last = None if ended[-1] else following[-1].copy()

    def end_lane(self) -> None:
        """The next row follows a gap."""
        self._last = None


def _differs(row: int) -> DataError:
    return DataError(
        f"the next_allowed_actions of row {row} are not the allowed_actions of row {row + 1}, and row {row} "
        "is not marked as an end: correct one of them, or mark the end"
    )


def check_can_be_given(*, has_masks: bool, has_successors: bool) -> None:
    """Raise DataError if a log gives next masks without what they belong to."""
    if not has_masks:
        raise DataError("next_allowed_actions belong to allowed_actions: give both, or leave them out")
    if not has_successors:
        raise DataError(
            "next_allowed_actions belong to next_observations: without them the next row says what was "
            "allowed; leave them out"
        )
