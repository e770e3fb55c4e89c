"""A dataset in memory from plain arrays in time order."""

import hashlib
import json
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optimist.data.timeline import MemoryFrames, Timeline
from optimist.data.transition import Spec
from optimist.errors import DataError

Columns = dict[str, np.ndarray]


class Parts(NamedTuple):
    """The parts of a dataset."""

    spec: Spec
    timeline: Timeline
    fingerprint: str


def parts(
    observations: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
    terminals: ArrayLike,
    truncated: ArrayLike | None,
    *,
    next_observations: ArrayLike | None,
    actions_count: int | None,
    action_low: ArrayLike | None,
    action_high: ArrayLike | None,
    stack: int,
) -> Parts:
    """The parts of a dataset in memory; `Dataset.from_arrays` says what the arrays mean."""
    frames = _observations("observations", observations)
    action = _actions(actions, len(frames))
    spec = _spec(frames, action, actions_count, action_low, action_high, stack)
    columns = {
        "action": action.astype(spec.action_dtype),
        "reward": _numbers("rewards", rewards, len(frames)).astype(np.float32),
        "terminal": _flags("terminals", terminals, len(frames)),
        "truncated": _flags(
            "truncated", np.zeros(len(frames)) if truncated is None else truncated, len(frames)
        ),
    }
    if next_observations is None:
        frames, columns = _without_successors(frames, columns)
    else:
        successors = _observations("next_observations", next_observations, like=frames)
        frames, columns = _with_successors(frames, successors, columns)
    steps = len(columns["reward"])
    if not steps:
        raise DataError("no transition is left: give next_observations, or longer episodes")
    timeline = Timeline(
        **columns,
        lanes=np.zeros(1, np.int32),
        lane_starts=np.zeros(1, np.int64),
        clock=partial(np.arange, steps),
        source=MemoryFrames(frames),
    )
    return Parts(spec, timeline, _fingerprint(spec, frames, columns))


def _with_successors(
    frames: np.ndarray, successors: np.ndarray, columns: Columns
) -> tuple[np.ndarray, Columns]:
    terminal, truncated = columns["terminal"], columns["truncated"]
    follows = np.all((frames[1:] == successors[:-1]).reshape(len(frames) - 1, -1), axis=1)
    truncated[:-1] |= ~follows & ~terminal[:-1]
    closes = terminal | truncated
    closes[-1] = True
    places = np.flatnonzero(closes) + 1
    return np.insert(frames, places, successors[closes], axis=0), columns


def _without_successors(frames: np.ndarray, columns: Columns) -> tuple[np.ndarray, Columns]:
    terminal = columns["terminal"]
    truncated = columns["truncated"] & ~terminal
    begins = np.append(True, (terminal | truncated)[:-1])
    unknown = truncated.copy()
    unknown[-1] |= ~terminal[-1]
    lonely = unknown & begins  # a one-step episode without a successor: its frame is dropped too
    places = np.flatnonzero(terminal) + 1
    with_black_ends = np.insert(frames, places, np.zeros((), frames.dtype), axis=0)
    known_frames = with_black_ends[np.insert(~lonely, places, True)]
    # The step before a dropped one is now the last of its episode, which was truncated.
    columns["truncated"] = np.append(truncated[1:] & ~begins[1:], False)
    return known_frames, {name: column[~unknown] for name, column in columns.items()}


def _spec(
    frames: np.ndarray,
    action: np.ndarray,
    actions_count: int | None,
    action_low: ArrayLike | None,
    action_high: ArrayLike | None,
    stack: int,
) -> Spec:
    shape, dtype = frames.shape[1:], str(frames.dtype)
    if action.ndim == 1:
        count = int(action.max()) + 1 if actions_count is None else actions_count
        if action.min() < 0 or action.max() >= count:
            raise DataError(
                f"actions go from {action.min()} to {action.max()}: they must be from 0 to {count - 1}"
            )
        return Spec(shape, dtype, actions=count, stack=stack)
    low = action.min(axis=0) if action_low is None else _bound("action_low", action_low, action.shape[1])
    high = action.max(axis=0) if action_high is None else _bound("action_high", action_high, action.shape[1])
    spec = Spec(shape, dtype, action_low=tuple(low.tolist()), action_high=tuple(high.tolist()), stack=stack)
    outside = spec.outside(action)
    if outside.any():
        row = int(outside.argmax())
        raise DataError(
            f"the action in row {row} is {action[row].tolist()}, outside {spec.action_low} to "
            f"{spec.action_high}: widen action_low and action_high, or clip the actions"
        )
    return spec


def _bound(name: str, value: ArrayLike, size: int) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.shape not in ((), (size,)):
        raise DataError(f"{name} is {value!r}: give one number, or {size} of them")
    return np.broadcast_to(array, (size,)).astype(float)


def _observations(name: str, values: ArrayLike, like: np.ndarray | None = None) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind == "f":
        _check_finite(name, array)
        array = array.astype(np.float32)
    if array.dtype not in (np.uint8, np.bool_, np.float32):
        raise DataError(f"{name} have type {array.dtype}: give uint8, bool or floating numbers")
    if array.ndim < 2 or not array.size:
        raise DataError(f"{name} have shape {array.shape}: give (steps, ...) with at least one number each")
    if like is not None and (array.shape, array.dtype) != (like.shape, like.dtype):
        raise DataError(
            f"{name} are {array.shape} {array.dtype}, observations {like.shape} {like.dtype}: make them alike"
        )
    return array


def _actions(values: ArrayLike, count: int) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind in "iu":
        array = array[:, 0]
    if array.dtype.kind in "iu" and array.shape == (count,):
        return array
    if array.dtype.kind == "f" and array.ndim in (1, 2) and len(array) == count:
        _check_finite("actions", array)
        return array.reshape(count, -1).astype(np.float32)
    raise DataError(
        f"actions are {array.shape} {array.dtype}: give {count} whole numbers or {count} float vectors"
    )


def _numbers(name: str, values: ArrayLike, count: int) -> np.ndarray:
    array = np.asarray(values)
    if array.shape == (count, 1):
        array = array[:, 0]
    if array.shape != (count,) or array.dtype.kind not in "fiub":
        raise DataError(
            f"{name} are {array.shape} {array.dtype}: give {count} numbers, one for each observation"
        )
    _check_finite(name, array)
    return array


def _flags(name: str, values: ArrayLike, count: int) -> np.ndarray:
    array = _numbers(name, values, count)
    if not np.isin(array, (0, 1)).all():
        raise DataError(f"{name} hold other values than true and false")
    return array.astype(bool)


def _check_finite(name: str, array: np.ndarray) -> None:
    if array.dtype.kind != "f":
        return
    finite = np.abs(array) <= np.finfo(np.float32).max  # the stored type; false for NaN
    if not finite.all():
        row = int(np.argwhere(~finite)[0, 0])
        raise DataError(f"{name} hold NaN or infinity (first in row {row}); remove or mend those steps")


def _fingerprint(spec: Spec, frames: np.ndarray, columns: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(spec.as_json(), sort_keys=True).encode())
    for array in (frames, *columns.values()):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
