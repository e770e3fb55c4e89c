"""Masks of the allowed actions: as a log gives them, and those of the states after steps.

Within an episode the mask of the state after a step is that of the next row. After a last step that is not
terminal a column has it, in which a mask without bits is one that is not known."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from optimist.data.rules.checks import SHOWN, checked_rows, named_actions
from optimist.data.transition import NEXT, Columns, Spec
from optimist.errors import DataError, in_one_line, some_of

FORMS = (
    "allowed actions are lists of 0 and 1, one for each action, lists of the names of those that are "
    "allowed, or a column of 0 and 1 for each action, such as ok_<action>"
)


def checked_masks(name: str, values: np.ndarray, spec: Spec, first: int) -> np.ndarray:
    """The bits of the masks in this column; `first` is the number of row 0."""
    if not spec.discrete:
        raise DataError(f"{name} belong to discrete actions, and these are vectors; leave them out")
    if values.ndim == 2 and values.shape[1] != spec.actions:
        raise DataError(
            f"{name} have rows of shape {values.shape[1:]} instead of {(spec.actions,)}, one value for each "
            f"of {some_of(named_actions(spec), SHOWN)}; {FORMS}; if some actions were never taken, give "
            "their number, actions_count (--actions-count), or all action_names (--action-names)"
        )
    return np.packbits(checked_rows(name, values, (spec.actions,), "bool", first), axis=1)


def by_name(name: str, values: np.ndarray, spec: Spec, first: int) -> np.ndarray:
    """Masks in the order of the actions, (n, actions): of an array of lists of names, or of one with a named
    column for each action; others are as they should be. `first` is the number of row 0."""
    if values.dtype.names and spec.discrete:
        return _of_columns(name, values, spec)
    if values.dtype.kind == "O" and values.ndim == 1:
        return _of_lists(name, values.tolist(), spec, first)
    return values


def are_flags(rows: Sequence[Sequence[Any]]) -> bool:
    """Are these lists of 0 and 1, one for each action, and not lists of names or numbers of actions?"""
    return len(set(map(len, rows))) == 1 and {each for row in rows for each in row} <= {0, 1, "0", "1"}


def _of_lists(name: str, rows: Sequence[Iterable[Any]], spec: Spec, first: int) -> np.ndarray:
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))  # type: ignore[arg-type]
    number = {str(each): place for place, each in enumerate(_names(spec))}
    flat = [number.get(str(each), -1) for row in rows for each in row]
    row_of, column = np.repeat(np.arange(len(rows)), lengths), np.array(flat, np.int64)
    if (column < 0).any():
        place = int((column < 0).argmax())
        unknown = str([each for row in rows for each in row][place])
        raise DataError(
            f"the {name} in row {row_of[place] + first} name {in_one_line(unknown, 40)}, which is not among "
            f"the actions of the log; {FORMS}; "
            f"{every_name({*number, *(str(e) for row in rows for e in row)}, spec)}"
        )
    masks = np.zeros((len(rows), spec.actions), bool)
    masks[row_of, column] = True
    return masks


def _of_columns(name: str, values: np.ndarray, spec: Spec) -> np.ndarray:
    heads = list(values.dtype.names or ())
    actions = [str(each) for each in _names(spec)]
    action_of = {head: _action_of(head, actions) for head in heads}
    found = {action: head for head, action in action_of.items() if action is not None}
    if found and (len(found) < len(heads) or len(found) < len(actions)):
        lacking = [each for each in actions if each not in found]
        if lacking:
            raise DataError(
                f"{name} have no column for {', '.join(map(in_one_line, lacking))} among {', '.join(heads)}: "
                "name a column of 0 and 1 for each action"
            )
        odd = next(head for head, action in action_of.items() if action is None or found[action] != head)
        known = {*actions, *(_without_the_rest(head, found) for head in heads)}
        raise DataError(
            f'the column "{in_one_line(odd, 40)}" of {name} is that of no action that the log took; '
            + every_name(known, spec)
        )
    ordered = [found[action] for action in actions] if found else heads
    return np.stack([values[head] for head in ordered], axis=1)


def _action_of(head: str, actions: Sequence[str]) -> str | None:
    """free_ship of ok_free_ship: the longest action with which the name ends or begins, after a sign."""
    words = head.casefold()

    def names(action: str) -> bool:
        word = action.casefold()
        before, after = words.removesuffix(word), words.removeprefix(word)
        ends = before != words and (not before or not before[-1].isalnum())
        return ends or (after != words and bool(after) and not after[0].isalnum())

    return max(filter(names, actions), key=len, default=None)


def _without_the_rest(head: str, found: dict[str, str]) -> str:
    """mystery of ok_mystery, if ok_none stands for none."""
    action, other = next(iter(found.items()))
    before, _, after = other.casefold().partition(action.casefold())
    return head[len(before) : len(head) - len(after)]


def _names(spec: Spec) -> Sequence[int | str]:
    return spec.action_names or range(spec.actions)


def every_name(names: Iterable[str], spec: Spec) -> str:
    """What to give if actions were never taken: the option with all of these names."""
    if not spec.action_names and all(name.isdigit() for name in names):
        return (
            f"if it was never taken, give the number of actions: --actions-count {1 + max(map(int, names))}"
        )
    number = all(name.lstrip("-").isdigit() for name in names)
    ordered: Callable[[str], Any] = int if number else str
    listed = ",".join(in_one_line(name, 40) for name in sorted(names, key=ordered))
    return f"if it was never taken, give all actions: --action-names {listed}"


def of_next_rows(allowed: np.ndarray) -> np.ndarray:
    """The mask of the row after each one; the last has none."""
    return np.concatenate([allowed[1:], np.zeros_like(allowed[:1])])


def at_ends(steps: Columns, last: Any) -> Columns:
    """The columns with next masks only where no row follows: after truncated steps, and after the `last` ones
    of lanes if their episodes have no end."""
    if NEXT not in steps:
        return steps
    needed = steps["truncated"] & ~steps["terminal"]
    needed[last] |= ~steps["terminal"][last]
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
