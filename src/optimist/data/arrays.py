"""A dataset in memory from plain arrays in time order: they are a log of one part."""

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from optimist.data.rules.checks import are_flags
from optimist.data.rules.joining import Joining, LeftOut, at_ends, if_known, joined, with_last_frame
from optimist.data.rules.log import Asked, Log, Part
from optimist.data.rules.plan import Plan
from optimist.data.timeline import MemoryFrames, Timeline
from optimist.data.transition import Columns, Spec
from optimist.errors import DataError, in_one_line, log


class InMemory(NamedTuple):
    """The parts of a dataset in memory."""

    spec: Spec
    timeline: Timeline
    fingerprint: str
    left_out: LeftOut


def in_memory(given: Mapping[str, Any], asked: Asked) -> InMemory:
    """The parts of a dataset from the arrays that a user gave; `Dataset.from_arrays` says what they mean."""
    part = _part(given)
    arrays = Log(part, lambda names: [{name: part[name] for name in names}], len(part["rewards"]), asked)
    plan = Plan.of(arrays)
    joining = Joining(plan.spec)
    pieces = [joining.add(rows) for rows in plan.parts(arrays)]
    if (last := joining.end()) is not None:
        pieces = with_last_frame(pieces, last)
    whole = joined(pieces)
    if not len(whole):
        raise DataError("no transition is left: give next_observations, or longer episodes")
    if joining.left_out.steps:
        log.warning("left out: %s; next_observations= keeps them", joining.left_out)
    steps = if_known(at_ends(whole.steps, [-1]))
    timeline = Timeline(
        columns=steps,
        actions=plan.spec.actions,
        lanes=np.zeros(1, np.int32),
        lane_starts=np.zeros(1, np.int64),
        clock=partial(np.arange, len(whole)),
        source=MemoryFrames(whole.frames),
    )
    return InMemory(plan.spec, timeline, _fingerprint(plan.spec, whole.frames, steps), joining.left_out)


def _part(given: Mapping[str, Any]) -> Part:
    """The given columns as arrays with as many rows as there are observations."""
    part = {name: _array(name, values) for name, values in given.items() if values is not None}
    count = len(part["observations"]) if part["observations"].ndim else 0
    for name, array in part.items():
        if array.shape[:1] != (count,):
            raise DataError(
                f"{name} are {array.shape} {array.dtype}: give {count} rows, one for each observation"
            )
    return part


def _array(name: str, values: Any) -> np.ndarray:
    """The values as an array of numbers or texts; masks may be lists of names, or have a name for each
    column."""
    if name in ("allowed_actions", "next_allowed_actions"):
        return _masks(name, values)
    array = _even(name, values)
    if name in ("episodes", "actions") and array.shape[1:] == (1,):
        array = array[:, 0]
    if array.dtype.kind != "O":
        return array
    if name == "episodes":
        return array.astype(str)
    if name == "actions" and array.ndim == 1:
        return _alike(array)
    if name in ("observations", "next_observations") and array.ndim > 1 and array.size:
        return _numbers(name, array)
    return array


def _even(name: str, rows: Any) -> np.ndarray:
    """The rows as an array; DataError if they have different lengths, or if some are masked: a plain array
    would hold what is behind the mask."""
    if np.ma.is_masked(rows):
        raise DataError(f"{name} have masked values: fill them first, with numpy.ma.filled")
    try:
        return np.asarray(rows)
    except ValueError as problem:  # numpy calls it inhomogeneous
        raise DataError(f"{name} have rows of different lengths: give all of them the same") from problem


def _masks(name: str, values: Any) -> np.ndarray:
    """Lists of names as an array of lists, a data frame as one with named columns."""
    if hasattr(values, "to_records"):
        return values.to_records(index=False)
    has_objects = getattr(getattr(values, "dtype", None), "kind", "") == "O"
    lists = list(values) if has_objects or isinstance(values, list | tuple) else []
    if lists and all(isinstance(row, list | tuple) for row in lists) and not are_flags(lists):
        return np.fromiter(lists, object, len(lists))
    return _even(name, lists or values)


def _alike(array: np.ndarray) -> np.ndarray:
    """Actions that are texts, or numbers, in place of objects."""
    values = array.tolist()
    kinds = list(map(type, values))
    if any(set(kinds) <= alike for alike in ({str}, {int, bool}, {float, int})):
        return np.array(values)
    for row, (kind, value) in enumerate(zip(kinds, values, strict=True)):
        if kind not in (str, int, float, bool) or value != value:
            raise DataError(f"the action in row {row} is {in_one_line(value)}: give a whole number or a name")
    raise DataError("actions are texts and numbers: give all of them as texts, or all as numbers")


def _numbers(name: str, array: np.ndarray) -> np.ndarray:
    """Objects as numbers: a data frame whose columns have several types, as floats and flags, is an array
    of objects. Texts are refused, although NumPy would read them as numbers."""
    flat = array.reshape(-1)
    wrong = [not issubclass(kind, (Real, np.bool_)) for kind in map(type, flat)]
    if any(wrong):
        first = wrong.index(True)
        row = first // (array.size // len(array))
        raise DataError(
            f"{name} hold {in_one_line(flat[first], 20)} in row {row}, which is no number: make columns of 0 "
            "and 1 of categories (pandas.get_dummies), and fill what is missing"
        )
    return array.astype(np.float64)


def _fingerprint(spec: Spec, frames: np.ndarray, columns: Columns) -> str:
    digest = hashlib.sha256(json.dumps(spec.as_json(), sort_keys=True).encode())
    for array in (frames, *columns.values()):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
