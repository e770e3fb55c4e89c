"""Checks of the rows of somebody else's log: what is stored has the right shape, type and values."""

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

SHOWN = 20  # names of actions in a message
ACCEPTED = {"f": "fiu", "i": "iu", "b": "b", "u": "u"}  # the kinds of numbers that each stored kind accepts


def named_actions(spec: Spec) -> list[str]:
    """The actions in the order of their numbers, for a message."""
    return [in_one_line(name, 40) for name in spec.action_names or range(spec.actions)]


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
                f"{name} hold other values than true and false (first in row {_row(wrong) + first}); is it "
                "the right column? 1 and 0 are taken too"
            )
    elif array.dtype.kind not in ACCEPTED[dtype.kind] or (dtype.kind == "u" and array.dtype != dtype):
        raise DataError(f"{name} have type {array.dtype} instead of {dtype}; convert them first")
    if dtype.kind == "f":
        refuse_rounded(name, array, first)
    with np.errstate(over="ignore"):
        kept = array.astype(dtype, copy=False)
    if dtype.kind == "f" and not np.isfinite(kept).all():
        row = _row(~np.isfinite(kept)) + first
        raise not_finite(name, row)
    return kept


def check_finite(name: str, array: np.ndarray, first: int = 0) -> None:
    """Raise DataError for a number that the stored type, float32, does not have."""
    finite = np.abs(array) <= np.finfo(np.float32).max  # false for NaN
    if not finite.all():
        raise not_finite(name, _row(~finite) + first)


def not_finite(name: str, row: int) -> DataError:
    """Without the row its neighbours would be one step, unless an episode ends between them."""
    return DataError(f"{name} hold NaN or infinity (first in row {row}); mend it, {OR_LEAVE_OUT}")


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
        column, said = columns[:, number], f"feature {number}, " if array.ndim > 1 else ""
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = column.astype(np.float32).astype(column.dtype) != column
        if not rounded.any():
            continue
        if _is_whole(column):
            remedy = SMALLER if "observations" in name else OTHER_UNIT
            row = int(rounded.argmax()) + first
            raise DataError(
                f"{name} hold whole numbers that float32 cannot hold ({said}first in row {row}): {remedy}"
            )
        if not first:
            refuse_offset(f"{name} (feature {number})" if said else name, column)


def _is_whole(column: np.ndarray) -> bool:
    """Are these whole numbers, and not only because floats of this size are?"""
    return column.dtype.kind in "iu" or bool(
        (np.abs(column) < ALL_WHOLE).all() and (column == np.floor(column)).all()
    )


def refuse_offset(name: str, column: np.ndarray) -> None:
    """Raise DataError for a column that float32 rounds because of its offset, such as a time in seconds with
    fractions. Of a log that is read in parts, the first one shows it."""
    size, variation = np.abs(column).max(initial=0), np.ptp(column) if len(column) else 0
    if size > EXACT and 0 < OFFSET * variation < size:
        raise DataError(
            f"{name} are near {size:.4g}, and float32 holds them in steps of "
            f"{np.spacing(np.float32(size)):g}: subtract a constant from them, or leave them out"
        )


def _row(wrong: np.ndarray) -> int:
    """The number of the first row with a wrong value."""
    return int(wrong.reshape(len(wrong), -1).any(axis=1).argmax())


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
            row = int(wrong.argmax())
            names = named_actions(spec)
            raise DataError(
                f"the action in row {row + first} is {names[int(steps['action'][row])]}, which its "
                f"allowed_actions exclude; correct one of them: a mask has the order {some_of(names, SHOWN)}"
            )
