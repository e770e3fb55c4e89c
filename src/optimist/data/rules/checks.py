"""Checks of the rows of somebody else's log: shapes, types, values, masks, and what probabilities can be."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optimist.data.timeline import Masks
from optimist.data.transition import Columns, Spec
from optimist.errors import DataError, in_one_line, some_of

EXACT = 2**24  # whole numbers up to here are the same as float32
ALL_WHOLE = 2**53  # a float from here on has no fraction: that it is whole says nothing
OFFSET = 4  # times its variation: a column of this size has an offset; unix times have one for 13 years
SMALLER = "leave out ids, subtract a constant from times, and give categories one column each"
OTHER_UNIT = "give them in a larger unit, or subtract a constant from them"
OR_LEAVE_OUT = "or leave the row out and end the episode before it"
FORMS = (
    "allowed actions are lists of 0 and 1, one for each action, lists of the names of those that are "
    "allowed, or a column of 0 and 1 for each action, such as ok_<action>"
)
SHOWN = 20  # names of actions in a message
ACCEPTED = {"f": "fiu", "i": "iu", "b": "b", "u": "u"}  # the kinds of numbers that each stored kind accepts


def first_row(wrong: np.ndarray) -> int:
    """The number of the first row with a wrong value."""
    return int(wrong.reshape(len(wrong), -1).any(axis=1).argmax())


def checked_rows(name: str, array: np.ndarray, shape: tuple[int, ...], dtype: Any, first: int) -> np.ndarray:
    """The rows as an array of this type, (n, *shape); a DataError names the number of the first wrong row."""
    dtype = np.dtype(dtype)
    if array.shape == (len(array), 1) and not shape:
        array = array[:, 0]
    if array.shape[1:] != shape:
        raise DataError(f"{name} have rows of shape {array.shape[1:]} instead of {shape}")
    if dtype.kind == "b" and array.dtype.kind in "iuf":
        wrong = ~np.isin(array, (0, 1))
        if wrong.any():
            raise DataError(
                f"{name} hold other values than true and false (first in row {first_row(wrong) + first}); is "
                "it the right column? 1 and 0 are taken too"
            )
    elif array.dtype.kind not in ACCEPTED[dtype.kind] or (dtype.kind == "u" and array.dtype != dtype):
        raise DataError(f"{name} have type {array.dtype} instead of {dtype}; convert them first")
    if dtype.kind != "f":
        return array.astype(dtype, copy=False)
    refuse_rounded(name, array, first)
    return finite(name, array, first)


def finite(name: str, array: np.ndarray, first: int = 0) -> np.ndarray:
    """The numbers as float32; DataError for one that this type does not have."""
    with np.errstate(over="ignore"):
        kept = array.astype(np.float32, copy=False)
    wrong = ~np.isfinite(kept)
    if wrong.any():  # without the row its neighbours would be one step, unless an episode ends between them
        row = first_row(wrong) + first
        raise DataError(f"{name} hold NaN or infinity (first in row {row}); mend it, {OR_LEAVE_OUT}")
    return kept


def refuse_rounded(name: str, array: np.ndarray, first: int) -> None:
    """Raise DataError for a column of whole numbers that float32 would round, such as a time in seconds, or
    of fractions with an offset; a table with columns of several types becomes an array of floats. `first` is
    the number of row 0."""
    exact = array.dtype.itemsize <= (4 if array.dtype.kind == "f" else 2)
    if array.ndim not in (1, 2) or array.dtype.kind not in "fiu" or exact:
        return
    columns = array if array.ndim > 1 else array[:, None]
    extremes = [part(axis=0, initial=0).astype(float) for part in (columns.min, columns.max)]
    for number in np.flatnonzero(np.abs(extremes).max(axis=0) > EXACT).tolist():
        column, feature = columns[:, number], f"feature {number}, " if array.ndim > 1 else ""
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = column.astype(np.float32).astype(column.dtype) != column
        if not rounded.any():
            continue
        # Are these whole numbers, and not only because floats of this size are?
        is_whole = column.dtype.kind in "iu" or (
            (np.abs(column) < ALL_WHOLE).all() and (column == np.floor(column)).all()
        )
        if is_whole:
            remedy = SMALLER if "observations" in name else OTHER_UNIT
            row = int(rounded.argmax()) + first
            raise DataError(
                f"{name} hold whole numbers that float32 cannot hold ({feature}first in row {row}): {remedy}"
            )
        if not first:
            refuse_offset(f"{name} (feature {number})" if feature else name, column)


def refuse_offset(name: str, column: np.ndarray) -> None:
    """Raise DataError for a column that float32 rounds because of its offset, such as a time in seconds with
    fractions. Of a log that is read in parts, the first one shows it."""
    size, variation = np.abs(column).max(initial=0), np.ptp(column) if len(column) else 0
    if size > EXACT and 0 < OFFSET * variation < size:
        raise DataError(
            f"{name} are near {size:.4g}, and float32 holds them in steps of "
            f"{np.spacing(np.float32(size)):g}: subtract a constant from them, or leave them out"
        )


def exact(name: str, array: np.ndarray, first: int, dtype: str = "float32") -> np.ndarray:
    """Whole numbers in a type that is stored; a DataError names the first row with one that does not fit."""
    if array.dtype == dtype:
        return array
    low, high = (0, 255) if dtype == "uint8" else (-EXACT, EXACT)
    if array.size and not (array.min() >= low and array.max() <= high):
        raise DataError(
            f"{name} hold whole numbers outside {low:,} to {high:,} (first in row "
            f"{first_row((array < low) | (array > high)) + first}), which {dtype} cannot hold: {SMALLER}"
        )
    return array.astype(dtype)


def check_values(steps: Columns, spec: Spec, first: int) -> None:
    """Raise DataError for an action, probability or mask that cannot be; `first` is the number of row 0."""
    outside = spec.outside(steps["action"])
    if outside.any():
        row = int(outside.argmax())
        action = f"the action in row {row + first} is {steps['action'][row].tolist()}"
        if spec.discrete:
            raise DataError(f"{action}, not from 0 to {spec.actions - 1}")
        raise DataError(
            f"{action}, not from {spec.action_low} to {spec.action_high}: widen action_low and action_high, "
            "or clip the actions"
        )
    if "probability" in steps:
        wrong = ~((steps["probability"] > 0) & (steps["probability"] <= 1))
        if wrong.any():
            row, value = int(wrong.argmax()), steps["probability"][wrong][0]
            raise DataError(
                f"the probability in row {row + first} is {value:g}: it belongs to the logged action and is "
                "above 0 and at most 1"
            )
    if "allowed" in steps:
        wrong = ~Masks(steps["allowed"], spec.actions).allow(steps["action"])
        if wrong.any():
            row, names = int(wrong.argmax()), named_actions(spec)
            raise DataError(
                f"the action in row {row + first} is {names[int(steps['action'][row])]}, which its "
                f"allowed_actions exclude; correct one of them: a mask has the order {some_of(names, SHOWN)}"
            )


def named_actions(spec: Spec) -> list[str]:
    """The actions in the order of their numbers, for a message."""
    return [in_one_line(name, 40) for name in spec.action_names or range(spec.actions)]


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


def masks_by_name(name: str, values: np.ndarray, spec: Spec, first: int) -> np.ndarray:
    """Masks in the order of the actions, (n, actions): of an array of lists of names, or of one with a named
    column for each action; others are as they should be. `first` is the number of row 0."""
    actions = [str(each) for each in spec.action_names or range(spec.actions)]
    if values.dtype.names and spec.discrete:
        return _of_columns(name, values, actions, spec)
    if values.dtype.kind != "O" or values.ndim != 1:
        return values
    rows = values.tolist()
    number = {each: place for place, each in enumerate(actions)}
    words = [str(each) for row in rows for each in row]
    row_of = np.repeat(np.arange(len(rows)), np.fromiter(map(len, rows), np.int64, len(rows)))
    column = np.array([number.get(word, -1) for word in words], np.int64)
    if (column < 0).any():
        place = int((column < 0).argmax())
        raise DataError(
            f"the {name} in row {row_of[place] + first} name {in_one_line(words[place], 40)}, which is not "
            f"among the actions of the log; {FORMS}; {_every_name({*number, *words}, spec)}"
        )
    masks = np.zeros((len(rows), spec.actions), bool)
    masks[row_of, column] = True
    return masks


def are_flags(rows: Sequence[Sequence[Any]]) -> bool:
    """Are these lists of 0 and 1, one for each action, and not lists of names or numbers of actions?"""
    return len(set(map(len, rows))) == 1 and {each for row in rows for each in row} <= {0, 1, "0", "1"}


def _of_columns(name: str, values: np.ndarray, actions: list[str], spec: Spec) -> np.ndarray:
    heads = list(values.dtype.names or ())
    action_of = {head: _action_of(head, actions) for head in heads}
    head_of = {action: head for head, action in action_of.items() if action is not None}
    if not head_of:
        return np.stack([values[head] for head in heads], axis=1)
    if lacking := [each for each in actions if each not in head_of]:
        raise DataError(
            f"{name} have no column for {', '.join(map(in_one_line, lacking))} among {', '.join(heads)}: "
            "name a column of 0 and 1 for each action"
        )
    if len(head_of) < len(heads):
        odd = next(head for head, action in action_of.items() if action is None or head_of[action] != head)
        # What is around an action's name in its column is not part of another's: ok_none, so mystery of
        # ok_mystery.
        action, other = next(iter(head_of.items()))
        before, _, after = other.casefold().partition(action.casefold())
        words = {*actions, *(head[len(before) : len(head) - len(after)] for head in heads)}
        raise DataError(
            f'the column "{in_one_line(odd, 40)}" of {name} is that of no action that the log took; '
            + _every_name(words, spec)
        )
    return np.stack([values[head_of[action]] for action in actions], axis=1)


def _action_of(head: str, actions: Sequence[str]) -> str | None:
    """free_ship of ok_free_ship: the longest action with which the name ends or begins, after a sign."""
    words = head.casefold()

    def names(action: str) -> bool:
        word = action.casefold()
        before, after = words.removesuffix(word), words.removeprefix(word)
        ends = before != words and (not before or not before[-1].isalnum())
        return ends or (after != words and bool(after) and not after[0].isalnum())

    return max(filter(names, actions), key=len, default=None)


def _every_name(names: Iterable[str], spec: Spec) -> str:
    """What to give if actions were never taken: the option with all of these names."""
    if not spec.action_names and all(name.isdigit() for name in names):
        return (
            f"if it was never taken, give the number of actions: --actions-count {1 + max(map(int, names))}"
        )
    number = all(name.lstrip("-").isdigit() for name in names)
    ordered: Callable[[str], Any] = int if number else str
    listed = ",".join(in_one_line(name, 40) for name in sorted(names, key=ordered))
    return f"if it was never taken, give all actions: --action-names {listed}"


# Whether the logged probabilities can be right. The log's policy took A_t with the probability p_t that the
# log names. Then, but for chance,
#
# - the sum of 1 / p_t over the steps with A_t = a is at most the number of steps in which a could be chosen;
# - the sum of (1 - p_t) / p_t over the steps with p_t > 1/2 is at most the number of the other steps: it says
#   how often another action was taken where one had more than half.
#
# The first fails if probabilities are too small or belong to other actions, the second if they are too large,
# such as 0.9 in every step. Both hold for every policy that chose by what it logged, whatever the states are.

SURELY = 5.0  # standard deviations of the sums, beyond which it is no chance
MUCH = 1.1  # a tenth beyond what can be: less does little harm


@dataclass
class Propensities:
    """The sums over all steps, which may be added in parts."""

    actions: int
    inverse: np.ndarray = field(init=False)  # of each action: the sum of 1 / p
    variance: np.ndarray = field(init=False)  # and the variance of that sum
    could: np.ndarray = field(init=False)  # the number of steps in which it could be chosen
    likely: int = 0  # steps whose action had more than one half
    others: int = 0
    expected: float = 0.0  # how many of the others there must be
    expected_variance: float = 0.0

    def __post_init__(self) -> None:
        self.inverse, self.variance, self.could = np.zeros((3, self.actions))

    def add(
        self, action: np.ndarray, probability: np.ndarray, allowed: np.ndarray | None = None
    ) -> "Propensities":
        """Add steps: their actions and probabilities, (n,), and perhaps their masks, (n, actions)."""
        p = probability.astype(np.float64)
        self.inverse += np.bincount(action, 1 / p, self.actions)
        self.variance += np.bincount(action, (1 - p) / p**2, self.actions)
        self.could += len(p) if allowed is None else allowed.sum(axis=0)
        likely = p[p > 0.5]
        self.likely += len(likely)
        self.others += len(p) - len(likely)
        self.expected += float(((1 - likely) / likely).sum())
        self.expected_variance += float(((1 - likely) / likely**2).sum())
        return self

    def doubts(self, names: tuple = ()) -> list[str]:
        """What cannot be right, in one line each with figures."""
        deviation = SURELY * np.sqrt(self.variance)
        wrong = np.flatnonzero((self.inverse > MUCH * self.could) & (self.inverse - deviation > self.could))
        lines = []
        if len(wrong):
            worst = int(wrong[np.argmax(self.inverse[wrong] / np.maximum(self.could[wrong], 1))])
            lines.append(
                "the logged probabilities cannot be right: their inverses sum to "
                f"{self.inverse[worst]:,.0f} for action {names[worst] if names else worst}, which could be "
                f"chosen in {self.could[worst]:,.0f} steps ({len(wrong)} of {self.actions} actions are like "
                "this); they are too small, or those of other actions"
            )
        if self.others * MUCH < self.expected - SURELY * self.expected_variance**0.5:
            lines.append(
                f"the logged probabilities cannot be right: {self.likely:,} steps have one above 0.5, so "
                f"that other actions must have been taken in about {self.expected:,.0f} steps, and only "
                f"{self.others:,} have a smaller one; they are too large"
            )
        return lines
