"""Actions of a user's log: whole numbers, the user's own ids or names, or vectors."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optimist.data.checking import check_finite, refuse_rounded
from optimist.errors import DataError, in_one_line, log, some_of

MOST_DISTINCT = 10_000  # a network has an output for every action
SHOWN = 6  # names in a message
SURELY_FEW = 64  # ids below are taken as they are: actions that never occur cost little


class Actions(NamedTuple):
    """Discrete actions 0 to number - 1 with their names, or vectors with their bounds (number 0)."""

    values: np.ndarray
    number: int = 0
    names: tuple[int | str, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


def discrete_or_vectors(
    values: ArrayLike,
    size: int,
    *,
    actions_count: int | None = None,
    names: Sequence[int | str] | None = None,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
) -> Actions:
    """The actions of `size` rows.

    Whole numbers are discrete. They are taken as they are, or mapped to 0 to n - 1 in sorted order with
    themselves as names: if one is negative, if the largest is 10,000 or more, or if it is 64 or more and
    fewer than half of the numbers up to it occur. Texts are always mapped. Floats that are all whole, one to
    a row, are discrete too unless bounds are given; other floats are vectors."""
    array = np.asarray(values)
    if array.shape == (size, 1) and array.dtype.kind in "iubUSO":
        array = array[:, 0]
    if array.dtype.kind == "O" and array.shape == (size,):
        array = _plain(array)
    bounded = low is not None or high is not None
    if array.dtype.kind == "f" and array.ndim in (1, 2) and len(array) == size:
        check_finite("actions", array)
        if bounded or array.shape not in ((size,), (size, 1)) or not (array == np.floor(array)).all():
            refuse_rounded("actions", array, first=0)
            return _vectors(array.reshape(size, -1).astype(np.float32), names, low, high)
        array = _whole(array.reshape(size))
    if array.dtype.kind == "b" and array.shape == (size,):
        array = array.astype(np.int64)
    if array.shape != (size,) or array.dtype.kind not in "iuUS":
        raise DataError(
            f"actions are {array.shape} {array.dtype}: give {size} whole numbers or names, or {size} float "
            "vectors"
        )
    if array.dtype.kind == "u" and array.max(initial=0) >= 2**63:
        raise DataError("actions are whole numbers from 2**63 on, which cannot be stored: give them as texts")
    if bounded:
        raise DataError("action_low and action_high belong to vectors: give the actions as floats")
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if names is not None:
        return _by_names(array, tuple(names), actions_count)
    return _by_numbers(array, actions_count)


def _plain(array: np.ndarray) -> np.ndarray:
    """An array of texts or numbers in place of one of objects."""
    values = array.tolist()
    kinds = list(map(type, values))
    if any(set(kinds) <= alike for alike in ({str}, {int, bool}, {float, int})):
        return np.array(values)
    known = [
        kind in (str, int, float, bool) and value == value for kind, value in zip(kinds, values, strict=True)
    ]
    if not all(known):
        row = known.index(False)
        raise DataError(
            f"the action in row {row} is {in_one_line(values[row])}: give a whole number or a name"
        )
    raise DataError("actions are texts and numbers: give all of them as texts, or all as numbers")


def _whole(array: np.ndarray) -> np.ndarray:
    if np.abs(array).max(initial=0) >= 2**53:
        raise DataError("actions are floats above 2**53, which are not exact: give whole numbers or names")
    log.warning(
        "actions are whole numbers of type %s: they are taken as discrete; for vectors give their bounds, "
        "action_low and action_high (--action-low, --action-high)",
        array.dtype,
    )
    return array.astype(np.int64)


def _by_names(array: np.ndarray, names: tuple[int | str, ...], actions_count: int | None) -> Actions:
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in names)
    if not all(type(name) in (int, str) for name in names) or len(set(map(str, names))) < len(names):
        raise DataError("action_names must be different texts or whole numbers, one for each action")
    check_count(len(names))
    if actions_count not in (None, len(names)):
        raise DataError(f"{len(names)} action_names and actions_count={actions_count}: give one of them")
    if array.dtype.kind in "iu" and all(type(name) is str for name in names):
        _check_range(array, len(names))
        return Actions(array, len(names), names)
    distinct, place = np.unique(array, return_inverse=True)
    numbers = {name: number for number, name in enumerate(names)}
    unknown = [name for name in distinct.tolist() if name not in numbers]
    if unknown:
        raise DataError(f'the action "{in_one_line(unknown[0])}" is not among the action_names; add it')
    return Actions(np.array([numbers[name] for name in distinct.tolist()])[place], len(names), names)


def _by_numbers(array: np.ndarray, actions_count: int | None) -> Actions:
    if array.dtype.kind == "U":
        return _mapped(array, actions_count)
    low, high = int(array.min()), int(array.max())
    if actions_count is not None:
        check_count(actions_count)
        _check_range(array, actions_count)
        return Actions(array, actions_count)
    if low < 0 or high >= MOST_DISTINCT:
        return _mapped(array, None)
    if high >= SURELY_FEW and 2 * len(np.unique(array)) < high + 1:
        return _mapped(array, None)
    return Actions(array, high + 1)


def _mapped(array: np.ndarray, actions_count: int | None) -> Actions:
    distinct, place = np.unique(array, return_inverse=True)
    check_count(len(distinct))
    names = tuple(distinct.tolist())
    if actions_count not in (None, len(names)):
        given = ",".join(in_one_line(name, 40) for name in names)
        raise DataError(
            f"{len(names)} different actions occur, and actions_count is {actions_count}: give the names "
            "of all, "
            f"also of those that were never taken, with --action-names {given},... (action_names=)"
        )
    log.warning(
        "the actions %s have the numbers 0 to %d, in this order; a policy answers with their names",
        some_of([in_one_line(name, 20) for name in names], SHOWN),
        len(names) - 1,
    )
    return Actions(place.reshape(array.shape), len(names), names)


def check_count(count: int) -> None:
    if count > MOST_DISTINCT:
        raise DataError(
            f"{count:,} different actions: at most {MOST_DISTINCT:,} are supported, because a network has an "
            "output for each; join the rare ones, or describe each action by a vector"
        )


def _check_range(array: np.ndarray, count: int) -> None:
    if array.min() < 0 or array.max() >= count:
        raise DataError(
            f"actions go from {array.min()} to {array.max()}: they must be from 0 to {count - 1}; if "
            "these are "
            "their names, give action_names (--action-names)"
        )


def _vectors(array: np.ndarray, names: Any, low: ArrayLike | None, high: ArrayLike | None) -> Actions:
    if names is not None:
        raise DataError("action_names belong to discrete actions, and these are vectors: give whole numbers")
    size = array.shape[1]
    lowest = array.min(axis=0) if low is None else _bound("action_low", low, size)
    highest = array.max(axis=0) if high is None else _bound("action_high", high, size)
    return Actions(array, low=tuple(lowest.tolist()), high=tuple(highest.tolist()))


def _bound(name: str, value: ArrayLike, size: int) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.shape not in ((), (size,)):
        raise DataError(f"{name} is {value!r}: give one number, or {size} of them")
    return np.broadcast_to(array, (size,)).astype(float)
