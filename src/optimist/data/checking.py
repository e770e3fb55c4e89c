"""Checks of the rows of somebody else's log: what is stored has the right shape, type and values."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from optimist.data.joining import Columns, Joining, Piece
from optimist.data.masks_by_name import FORMS
from optimist.data.next_masks import NEXT, check_can_be_given
from optimist.data.timeline import Masks
from optimist.data.transition import Spec
from optimist.errors import DataError, in_one_line, some_of

EXACT = 2**24  # whole numbers up to here are the same as float32
ALL_WHOLE = 2**53  # a float from here on has no fraction: that it is whole says nothing
OFFSET = 4  # times its variation: a column of this size has an offset; unix times have one for 13 years
SMALLER = "leave out ids, subtract a constant from times, and give categories one column each"
OTHER_UNIT = "give them in a larger unit, or subtract a constant from them"
OR_LEAVE_OUT = "or leave the row out and end the episode before it"

SHOWN = 20  # names of actions in a message
_ACCEPTED = {"f": "fiu", "i": "iu", "b": "b", "u": "u"}  # the kinds of numbers that each stored kind accepts


def checked_piece(rows: Mapping[str, np.ndarray], spec: Spec, joining: Joining) -> Piece:
    """The steps of these rows, which continue after the earlier ones of `joining`; a DataError names the
    first wrong row."""
    first, shape, dtype = joining.rows, spec.frame_shape, spec.frame_dtype
    frames = checked_rows("observations", rows["observations"], shape, dtype, first)
    successors = rows.get("next_observations")
    if successors is not None:
        successors = checked_rows("next_observations", successors, shape, dtype, first)
    return joining.add(frames, successors, checked_steps(rows, spec, first))


def checked_steps(rows: Mapping[str, np.ndarray], spec: Spec, first: int) -> Columns:
    """All columns of these rows except the frames, under their names in the files."""
    truncations = rows.get("truncations", np.zeros(len(rows["rewards"]), bool))
    steps: Columns = {
        "action": checked_rows("actions", rows["actions"], spec.action_shape, spec.action_dtype, first),
        "reward": checked_rows("rewards", rows["rewards"], (), "float32", first),
        "terminal": checked_rows("terminals", rows["terminals"], (), "bool", first),
        "truncated": checked_rows("truncations", truncations, (), "bool", first),
    }
    if "probabilities" in rows:
        steps["probability"] = checked_rows("probabilities", rows["probabilities"], (), "float32", first)
    if "allowed_actions" in rows:
        steps["allowed"] = checked_masks("allowed_actions", rows, spec, first)
    if "next_allowed_actions" in rows:
        check_can_be_given(has_masks="allowed" in steps, has_successors=True)
        steps[NEXT] = checked_masks("next_allowed_actions", rows, spec, first)
    check_values(steps, spec, first)
    return steps


def checked_masks(name: str, rows: Mapping[str, np.ndarray], spec: Spec, first: int) -> np.ndarray:
    """The bits of the masks in this column."""
    check_mask_width(name, rows[name], spec)
    return np.packbits(checked_rows(name, rows[name], (spec.actions,), "bool", first), axis=1)


def check_mask_width(name: str, values: np.ndarray, spec: Spec) -> None:
    """Raise DataError if the rows of the masks have another number of values than there are actions."""
    if values.ndim == 2 and values.shape[1] != spec.actions:
        raise DataError(
            f"{name} have rows of shape {values.shape[1:]} instead of {(spec.actions,)}, one value "
            f"for each of {some_of(_named(spec), SHOWN)}; {FORMS}; if some actions were never taken, give "
            "their "
            "number, actions_count (--actions-count), or all action_names (--action-names)"
        )


def _named(spec: Spec) -> list[str]:
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
    elif array.dtype.kind not in _ACCEPTED[dtype.kind] or (dtype.kind == "u" and array.dtype != dtype):
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


def goes_on(labels: np.ndarray, last: np.ndarray, ended: np.ndarray, first: int) -> str | None:
    """A warning if an episode's label goes on after a row that is marked as an end: rows that are not in the
    order of time look like this, and become many short episodes."""
    early = np.flatnonzero(ended & ~last)
    if not len(early):
        return None
    row = int(early[0])
    return (
        f"episode {in_one_line(labels[row])} goes on after row {row + first}, which is marked as an end: "
        "the rows after it count as another episode; if they are not, sort the rows by time (of a table: "
        "--order)"
    )


def _row(wrong: np.ndarray) -> int:
    """The number of the first row with a wrong value."""
    return int(wrong.reshape(len(wrong), -1).any(axis=1).argmax())


def check_values(steps: Columns, spec: Spec, first: int) -> None:
    """Raise DataError for an action, probability or mask that cannot be; `first` is the number of row 0."""
    outside = spec.outside(steps["action"])
    if outside.any():
        row = int(outside.argmax())
        known = f"0 to {spec.actions - 1}" if spec.discrete else f"{spec.action_low} to {spec.action_high}"
        raise DataError(
            f"the action in row {row + first} is {steps['action'][row].tolist()}, not from {known}"
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
            names = _named(spec)
            raise DataError(
                f"the action in row {row + first} is {names[int(steps['action'][row])]}, which its "
                f"allowed_actions exclude; correct one of them: a mask has the order {some_of(names, SHOWN)}"
            )
