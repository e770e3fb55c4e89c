"""A dataset in memory from plain arrays in time order."""

import hashlib
import json
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optimist.data.array_actions import Actions, discrete_or_vectors
from optimist.data.array_observations import Layout, checked_observations
from optimist.data.checking import check_mask_width, check_values, checked_rows, goes_on
from optimist.data.joining import Columns, Joining, LeftOut
from optimist.data.masks_by_name import are_flags, by_name
from optimist.data.next_masks import NEXT, at_ends, check_can_be_given, if_known
from optimist.data.timeline import Masks, MemoryFrames, Timeline
from optimist.data.transition import Spec
from optimist.errors import DataError, in_one_line, log


class Parts(NamedTuple):
    """The parts of a dataset."""

    spec: Spec
    timeline: Timeline
    fingerprint: str
    left_out: LeftOut


class Log(NamedTuple):
    """The checked rows of a log."""

    spec: Spec
    frames: np.ndarray
    successors: np.ndarray | None
    steps: Columns


def parts(**arrays: Any) -> Parts:
    """The parts of a dataset in memory; `Dataset.from_arrays` says what the arrays mean."""
    spec, frames, successors, rows = checked_log(**arrays)
    joining = Joining()
    whole = joining.whole(frames, successors, rows)
    if not len(whole):
        raise DataError("no transition is left: give next_observations, or longer episodes")
    if joining.left_out.steps:
        log.warning("left out: %s; next_observations= keeps them", joining.left_out)
    steps = if_known(at_ends(whole.steps, ends_lane=True))
    columns: dict[str, Any] = dict(steps)
    for name in {"allowed", NEXT} & set(columns):
        columns[name] = Masks(columns[name], spec.actions)
    timeline = Timeline(
        **columns,
        lanes=np.zeros(1, np.int32),
        lane_starts=np.zeros(1, np.int64),
        clock=partial(np.arange, len(whole)),
        source=MemoryFrames(whole.frames),
    )
    return Parts(spec, timeline, _fingerprint(spec, whole.frames, steps), joining.left_out)


def _even(name: str, rows: ArrayLike) -> np.ndarray:
    """The rows as an array; DataError if they have different lengths, or if some are masked: a plain array
    would hold what is behind the mask."""
    if np.ma.is_masked(rows):
        raise DataError(f"{name} have masked values: fill them first, with numpy.ma.filled")
    try:
        return np.asarray(rows)
    except ValueError as problem:  # numpy calls it inhomogeneous
        raise DataError(f"{name} have rows of different lengths: give all of them the same") from problem


def checked_log(
    observations: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
    terminals: ArrayLike,
    truncated: ArrayLike | None,
    *,
    truncations: ArrayLike | None,
    next_observations: ArrayLike | None,
    episodes: ArrayLike | None,
    action_names: Any,
    stack: int,
    channels: str | None,
    actions_count: int | None,
    action_low: ArrayLike | None,
    action_high: ArrayLike | None,
    probabilities: ArrayLike | None,
    allowed_actions: ArrayLike | None,
    next_allowed_actions: ArrayLike | None,
) -> Log:
    """The rows of these arrays with the spec that they make."""
    if truncated is not None and truncations is not None:
        raise DataError("truncated and truncations mean the same: give one of them")
    observations, actions = _even("observations", observations), _even("actions", actions)
    layout = Layout.of(observations, channels)
    frames = checked_observations("observations", observations, layout)
    count, successors = len(frames), None
    if next_observations is not None:
        successors = checked_observations("next_observations", next_observations, layout, like=frames)
    chosen = discrete_or_vectors(
        actions, count, actions_count=actions_count, names=action_names, low=action_low, high=action_high
    )
    spec = _spec(frames, chosen, stack, layout)
    steps: Columns = {
        "action": chosen.values.astype(spec.action_dtype),
        "reward": _rows("rewards", rewards, count, "float32"),
        "terminal": _rows("terminals", terminals, count, "bool"),
    }
    given = truncations if truncated is None else truncated
    has_successors = successors is not None
    steps["truncated"] = _truncations(steps["terminal"], given, episodes, has_successors)
    if probabilities is not None:
        steps["probability"] = _rows("probabilities", probabilities, count, "float32")
    if allowed_actions is not None:
        if not spec.discrete:
            raise DataError(
                "allowed_actions belong to discrete actions, and these are vectors; leave them out"
            )
        steps["allowed"] = _masks("allowed_actions", allowed_actions, count, spec)
    if next_allowed_actions is not None:
        check_can_be_given(has_masks=allowed_actions is not None, has_successors=has_successors)
        steps[NEXT] = _masks("next_allowed_actions", next_allowed_actions, count, spec)
    check_values(steps, spec, first=0)
    return Log(spec, frames, successors, steps)


def _masks(name: str, values: ArrayLike, count: int, spec: Spec) -> np.ndarray:
    """The bits of these masks, which may be lists of names or a data frame with a column for each action."""
    given = by_name(name, _lists_or_array(name, values), spec, first=0)
    check_mask_width(name, given, spec)
    return np.packbits(_rows(name, given, count, "bool", (spec.actions,)), axis=1)


def _lists_or_array(name: str, values: Any) -> np.ndarray:
    """Lists of names as an array of lists, a data frame as one with named columns."""
    if hasattr(values, "to_records"):
        return values.to_records(index=False)
    has_objects = getattr(getattr(values, "dtype", None), "kind", "") == "O"
    lists = list(values) if has_objects or isinstance(values, list | tuple) else []
    if lists and all(isinstance(row, list | tuple) for row in lists) and not are_flags(lists):
        return np.fromiter(lists, object, len(lists))
    return _even(name, lists or values)


def _rows(name: str, values: ArrayLike, count: int, dtype: str, shape: tuple[int, ...] = ()) -> np.ndarray:
    array = _even(name, values)
    if array.shape[:1] != (count,) or array.dtype.kind not in "fiub":
        raise DataError(
            f"{name} are {array.shape} {array.dtype}: give {count} numbers, one for each observation"
            if not shape
            else f"{name} are {array.shape} {array.dtype}: give {(count, *shape)} true or false values"
        )
    if dtype == "float32" and array.dtype.kind == "b":
        array = array.astype(np.float32)
    return checked_rows(name, array, shape, dtype, first=0)


def _truncations(
    terminal: np.ndarray, given: ArrayLike | None, episodes: ArrayLike | None, has_successors: bool
) -> np.ndarray:
    """The rows at which a time limit, or anything but a terminal state, ended the episode."""
    count = len(terminal)
    if given is None and episodes is None and not has_successors and not terminal.all():
        raise DataError(
            "terminals do not show where time limits ended episodes: give truncations=, episodes= or "
            "next_observations=; truncations=False means that every episode ends with a terminal step"
        )
    flags = np.asarray(False if given is None else given)
    if flags.ndim == 0 and flags.dtype.kind == "b":
        if given is not None and not flags and episodes is None and not terminal.any():
            raise DataError(
                "truncations=False says that every episode ends with a terminal step, but no step is "
                "terminal: give episodes=, or an array of truncations (all false: one episode without an end)"
            )
        flags = np.full(count, bool(flags)) & ~terminal
    truncated = _rows("truncations", flags, count, "bool").copy()
    if episodes is not None:
        labels = np.asarray(episodes)
        last = _last_rows(labels, count)
        if given is not None and np.ndim(given) == 0 and not given and (last & ~terminal).any():
            row = int((last & ~terminal).argmax())
            raise DataError(
                f"episode {in_one_line(labels.reshape(-1)[row])} ends in row {row} without a terminal step, "
                "but truncations=False says that no episode was cut: mark the row as terminal, or omit "
                "truncations="
            )
        if early := goes_on(labels.reshape(-1), last, terminal | truncated, first=0):
            log.warning(early)
        truncated |= last & ~terminal
    return truncated


def _last_rows(labels: np.ndarray, count: int) -> np.ndarray:
    """The rows after which the label of the episode changes, and the last row."""
    if labels.shape == (count, 1):
        labels = labels[:, 0]
    if labels.shape != (count,):
        raise DataError(f"episodes have shape {labels.shape}: give {count} labels, one for each observation")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int((~np.isfinite(labels)).argmax())
        raise DataError(f"episodes hold NaN or infinity (first in row {row}); give every row a label")
    if labels.dtype.kind == "O":
        labels = labels.astype(str)
    last = np.append(labels[1:] != labels[:-1], True)
    starts = np.append(0, np.flatnonzero(last)[:-1] + 1)
    _, first = np.unique(labels[starts], return_index=True)
    if len(first) < len(starts):
        again = int(np.setdiff1d(starts, starts[first])[0])
        raise DataError(
            f"episode {in_one_line(labels[again])} appears again in row {again}, after another one: sort the "
            "rows by episode and time"
        )
    return last


def _spec(frames: np.ndarray, chosen: Actions, stack: int, layout: Layout) -> Spec:
    shape, dtype = frames.shape[1:], str(frames.dtype)
    first = layout.channels_first
    if chosen.number:
        return Spec(
            shape,
            dtype,
            actions=chosen.number,
            stack=stack,
            action_names=chosen.names,
            channels_first=first,
        )
    spec = Spec(
        shape, dtype, action_low=chosen.low, action_high=chosen.high, stack=stack, channels_first=first
    )
    outside = spec.outside(chosen.values)
    if outside.any():
        row = int(outside.argmax())
        raise DataError(
            f"the action in row {row} is {chosen.values[row].tolist()}, outside {spec.action_low} to "
            f"{spec.action_high}: widen action_low and action_high, or clip the actions"
        )
    return spec


def _fingerprint(spec: Spec, frames: np.ndarray, columns: Columns) -> str:
    digest = hashlib.sha256(json.dumps(spec.as_json(), sort_keys=True).encode())
    for array in (frames, *columns.values()):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
