"""Actions of a log: whole numbers, the user's own ids or names, or vectors."""

import contextlib
from typing import Any

import numpy as np

from optimist.data.rules.checks import finite
from optimist.data.rules.log import Actions, Asked, Log
from optimist.errors import DataError, in_one_line, some_of
from optimist.errors import log as warn

MOST_DISTINCT = 10_000  # a network has an output for every action
SHOWN = 6  # names in a message
SURELY_FEW = 64  # ids below are taken as they are: actions that never occur cost little
FEW = 2**16  # whole numbers from 0 to here are counted; others are sorted, which takes longer


def chosen_actions(log: Log) -> Actions:
    """The actions of a log, by one pass over their column.

    Whole numbers are discrete. They are taken as they are, or mapped to 0 to n - 1 in sorted order with
    themselves as names: if one is negative, if the largest is 10,000 or more, or if it is 64 or more and
    fewer than half of the numbers up to it occur. Texts are always mapped. Floats that are all whole, one to
    a row, are discrete too unless bounds are given; other numbers are vectors."""
    asked = log.asked
    are_vectors = asked.action_low is not None or asked.action_high is not None
    seen, rows = np.empty(0, np.int64), 0  # the different actions so far, sorted; of vectors their bounds
    for part in log.parts(["actions"]):
        values = part["actions"]
        if not len(values):
            continue
        if values.dtype.kind == "f":
            finite("actions", values, rows)
        rows += len(values)
        flat = values.reshape(len(values), -1)
        are_whole = values.dtype.kind != "f" or (flat == np.floor(flat)).all()
        if not are_vectors and flat.shape[1] == 1 and are_whole:
            seen = _with_more(seen, flat[:, 0])
        elif values.dtype.kind not in "fiub":
            raise DataError(
                f"actions have rows of shape {values.shape[1:]} {values.dtype}: give numbers or names"
            )
        else:
            bounds = flat.astype(np.float32)
            if len(seen):  # those of the vectors so far, or whole numbers
                before = seen if are_vectors else np.array([[seen.min()], [seen.max()]])
                bounds = np.concatenate([bounds, np.broadcast_to(before, (2, flat.shape[1]))])
            seen, are_vectors = np.stack([bounds.min(axis=0), bounds.max(axis=0)]), True
    if not rows:
        raise DataError("the log has no rows; check that it is the right file")
    if are_vectors:
        return _vectors(seen[0], seen[1], asked)
    distinct = _readable(seen)
    if asked.action_names is not None:
        actions = _by_names(distinct, asked)
    else:
        actions = _by_numbers(distinct, asked.actions_count)
    return actions._replace(distinct=seen) if actions.names else actions


def _with_more(distinct: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The different actions, sorted, with those among these values."""
    if values.dtype.kind in "iu" and values.min() >= 0 and values.max() < FEW:
        more = np.flatnonzero(np.bincount(values.astype(np.int64)))
    else:
        more = np.unique(values)
    if len(distinct) and more.dtype.kind in "US" and distinct.dtype.kind not in "US":
        raise DataError("actions are texts in some rows and numbers in others; make them alike")
    return np.union1d(distinct, more) if len(distinct) else more


def _readable(distinct: np.ndarray) -> np.ndarray:
    """Different actions as whole numbers or texts."""
    kind = distinct.dtype.kind
    if kind == "f":
        if np.abs(distinct).max() >= 2**53:
            raise DataError(
                "actions are floats above 2**53, which are not exact: give whole numbers or names"
            )
        warn.warning(
            "actions are whole numbers of type %s: they are taken as discrete; for vectors give their "
            "bounds, action_low and action_high (--action-low, --action-high)",
            distinct.dtype,
        )
    if kind == "u" and distinct.max() >= 2**63:
        raise DataError("actions are whole numbers from 2**63 on, which cannot be stored: give them as texts")
    if kind == "S":
        return np.char.decode(distinct, "utf-8")
    return distinct.astype(np.int64) if kind in "fb" else distinct


def numbered(values: np.ndarray, distinct: np.ndarray, numbers: np.ndarray, first: int) -> np.ndarray:
    """The numbers of these actions, which are among the sorted `distinct` ones."""
    flat = values.reshape(-1)
    place = np.searchsorted(distinct, flat)
    unknown = distinct[np.minimum(place, len(distinct) - 1)] != flat
    if unknown.any():
        row = int(unknown.argmax())
        raise DataError(
            f'the action in row {row + first} is "{in_one_line(flat[row])}", which is not one of the log\'s '
            "actions"
        )
    return numbers[place]


def _by_names(distinct: np.ndarray, asked: Asked) -> Actions:
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in asked.action_names or ())
    if asked.names_are_words and distinct.dtype.kind != "U":
        with contextlib.suppress(ValueError):
            names = tuple(map(int, names))  # words of a command line, if all of them are numbers
    if not all(type(name) in (int, str) for name in names) or len(set(map(str, names))) < len(names):
        raise DataError("action_names must be different texts or whole numbers, one for each action")
    check_count(len(names))
    if asked.actions_count not in (None, len(names)):
        raise DataError(
            f"{len(names)} action_names and actions_count={asked.actions_count}: give one of them"
        )
    if distinct.dtype.kind in "iu" and all(type(name) is str for name in names):
        _check_range(distinct, len(names))
        return Actions(len(names), names, numbers=distinct)
    number_of = {name: number for number, name in enumerate(names)}
    unknown = [name for name in distinct.tolist() if name not in number_of]
    if unknown:
        raise DataError(f'the action "{in_one_line(unknown[0])}" is not among the action_names; add it')
    return Actions(len(names), names, numbers=np.array([number_of[name] for name in distinct.tolist()]))


def _by_numbers(distinct: np.ndarray, actions_count: int | None) -> Actions:
    if distinct.dtype.kind == "U":
        return _mapped(distinct, actions_count)
    low, high = int(distinct[0]), int(distinct[-1])
    if actions_count is not None:
        check_count(actions_count)
        _check_range(distinct, actions_count)
        return Actions(actions_count)
    are_sparse = 2 * len(distinct) < high + 1
    if low < 0 or high >= MOST_DISTINCT or (are_sparse and high >= SURELY_FEW):
        return _mapped(distinct, None)
    if are_sparse:
        names = ",".join(map(str, distinct.tolist()))
        warn.warning(
            "only %d of the %d numbers from 0 to %d occur as actions, and all %d become actions: "
            "--action-names %s (action_names=) makes actions of those that occur, with the numbers 0 to %d",
            *(len(distinct), high + 1, high, high + 1, names, len(distinct) - 1),
        )
    return Actions(high + 1)


def _mapped(distinct: np.ndarray, actions_count: int | None) -> Actions:
    check_count(len(distinct))
    names = tuple(distinct.tolist())
    if actions_count not in (None, len(names)):
        given = ",".join(in_one_line(name, 40) for name in names)
        raise DataError(
            f"{len(names)} different actions occur, and actions_count is {actions_count}: give the names of "
            f"all, also of those that were never taken, with --action-names {given},... (action_names=)"
        )
    warn.warning(
        "the actions %s have the numbers 0 to %d, in this order; a policy answers with their names",
        some_of([in_one_line(name, 20) for name in names], SHOWN),
        len(names) - 1,
    )
    return Actions(len(names), names, numbers=np.arange(len(names)))


def check_count(count: int) -> None:
    if count > MOST_DISTINCT:
        raise DataError(
            f"{count:,} different actions: at most {MOST_DISTINCT:,} are supported, because a network has an "
            "output for each; join the rare ones, or describe each action by a vector"
        )


def _check_range(distinct: np.ndarray, count: int) -> None:
    if distinct[0] < 0 or distinct[-1] >= count:
        raise DataError(
            f"actions go from {distinct[0]} to {distinct[-1]}: they must be from 0 to {count - 1}; if these "
            "are their names, give action_names (--action-names)"
        )


def _vectors(lowest: np.ndarray, highest: np.ndarray, asked: Asked) -> Actions:
    if asked.action_names is not None or asked.actions_count is not None:
        raise DataError(
            "action_names and actions_count belong to discrete actions, and these are vectors: leave them "
            "out, or give whole numbers"
        )
    size = len(lowest)
    low = lowest if asked.action_low is None else _bound("action_low", asked.action_low, size)
    high = highest if asked.action_high is None else _bound("action_high", asked.action_high, size)
    return Actions(low=tuple(low.tolist()), high=tuple(high.tolist()))


def _bound(name: str, value: Any, size: int) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.shape not in ((), (size,)):
        raise DataError(f"{name} is {value!r}: give one number, or {size} of them")
    return np.broadcast_to(array, (size,)).astype(float)
