"""How the columns of another program's log become those of a dataset."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from optimist.data.appending import ACTION_COLUMNS, FEATURES
from optimist.data.array_observations import Layout
from optimist.data.checking import EXACT, SMALLER, refuse_rounded
from optimist.data.disk.records import json_value
from optimist.data.formats._log import Asked, Log, Part, with_following
from optimist.data.formats._log_actions import chosen_actions
from optimist.data.formats._log_ends import Labels
from optimist.data.masks_by_name import by_name
from optimist.data.transition import Spec
from optimist.errors import DataError, in_one_line
from optimist.errors import log as warn

STORED = (
    "observations",
    "actions",
    "rewards",
    "terminals",
    "truncations",
    "next_observations",
    "probabilities",
    "allowed_actions",
    "next_allowed_actions",
    "frames",  # the observations with the final one of every episode after its last row
    "lanes",
)


@dataclass(frozen=True)
class Plan:
    """How the columns of one log become those of a dataset."""

    spec: Spec
    layout: Layout = Layout()
    distinct: np.ndarray | None = None  # the actions of the log, sorted, if they are mapped
    numbers: np.ndarray | None = None  # the number of each of them

    @classmethod
    def of(cls, log: Log, asked: Asked, *, is_verified: bool = False) -> "Plan":
        """The plan of a log; to verify it, the layout of its images need not be known."""
        if log.spec is not None:
            spec = _asked_for(log.spec, asked)
            if not (spec.action_names and log.actions_are_named):
                return cls(spec)
            names = np.array(spec.action_names, None if len(set(map(type, spec.action_names))) == 1 else str)
            return cls(spec, distinct=np.sort(names), numbers=np.argsort(names))
        first = next(iter(log.parts(["observations"])), {}).get("observations", np.empty((0, 1)))
        if not len(first):
            raise DataError("the log has no rows; check that it is the right file")
        layout = Layout() if is_verified else Layout.of(first, asked.channels)
        shape, dtype = _frames(first[:1], layout, first.dtype).shape[1:], _dtype(first)
        chosen, distinct = log.actions, None
        if chosen is None:
            chosen, distinct = chosen_actions(log, asked)
        spec = Spec(
            shape,
            str(dtype),
            actions=chosen.number,
            action_low=chosen.low,
            action_high=chosen.high,
            stack=asked.stack,
            action_names=chosen.names,
            channels_first=layout.channels_first,
        )
        return cls(spec, layout, distinct if chosen.names else None, chosen.values if chosen.names else None)

    def parts(self, log: Log) -> Iterator[Part]:
        """The columns as `Intake` takes them."""
        names = {name for name in (*STORED, "episodes") if name in log.columns}
        if "frames" in names:
            names -= {"observations", "next_observations"}
        labels, first = Labels(), 0
        for part, following in with_following(log.parts(names)):
            if "episodes" in part:
                part["truncations"] = labels.ends(part, following, first)
            yield {name: self._column(name, part[name], first) for name in STORED if name in part}
            first += len(part["rewards"])
        if labels.early:
            warn.warning(log.in_file(labels.early))

    def _column(self, name: str, values: np.ndarray, first: int) -> np.ndarray:
        if name in ("observations", "next_observations", "frames"):
            if values.dtype.kind in "iu":
                values = exact(name, values, first, self.spec.frame_dtype)
            if values.dtype.kind == "f":
                refuse_rounded(name, values, first)
            return _frames(values, self.layout, np.dtype(self.spec.frame_dtype))
        if name == "actions":
            return self._actions(values, first)
        if name in ("allowed_actions", "next_allowed_actions"):
            return by_name(name, values, self.spec, first)
        return values.astype(np.float32) if name == "rewards" and values.dtype.kind == "b" else values

    def _actions(self, values: np.ndarray, first: int) -> np.ndarray:
        if self.distinct is not None and self.numbers is not None:
            place = np.searchsorted(self.distinct, values.reshape(-1))
            unknown = self.distinct[np.minimum(place, len(self.distinct) - 1)] != values.reshape(-1)
            if unknown.any():
                row = int(unknown.argmax())
                name = in_one_line(values.reshape(-1)[row])
                raise DataError(
                    f'the action in row {row + first} is "{name}", which is not one of the log\'s actions'
                )
            return self.numbers[place]
        if self.spec.discrete:
            flat = values.reshape(-1)
            return flat.astype(np.int64) if flat.dtype.kind in "fb" else flat
        return values.reshape(len(values), -1)


def _asked_for(spec: Spec, asked: Asked) -> Spec:
    """The spec that this package wrote, with what the user says otherwise. Bounds of actions and the order of
    an image's axes belong to the numbers in the file, so they cannot be said otherwise."""
    for name, said, there in (
        ("action-low", asked.action_low, spec.action_low),
        ("action-high", asked.action_high, spec.action_high),
        ("channels", asked.channels, "first" if spec.channels_first else "last"),
    ):
        if said is not None and not _agree(said, there):
            found = in_one_line(there or "discrete actions")
            raise DataError(f"optimist wrote this file, which says {found}: leave --{name} out")
    if asked.stack != 1:
        spec = replace(spec, stack=asked.stack)
    if asked.actions_count not in (None, spec.actions) and spec.discrete:
        spec = replace(spec, actions=asked.actions_count, action_names=())
    return spec


def _agree(said: Any, there: Any) -> bool:
    if isinstance(said, str):
        return said == there
    bounds = np.atleast_1d(np.asarray(said, np.float32))
    return len(bounds) in (1, len(there)) and len(there) > 0 and bool((bounds == np.float32(there)).all())


class Signed(NamedTuple):
    """What a file that this package wrote says of itself; nothing in others."""

    spec: Spec | None = None
    environment: str | None = None
    names: Mapping[str, list[str]] = MappingProxyType({})  # of columns of the table that it comes from


def signed(record: Any, place: object) -> Signed:
    """What a file that this package wrote says of itself."""
    try:
        found = json_value(record)
        environment = found["environment"]
        if not isinstance(environment, str):
            raise ValueError("its environment")
        return Signed(Spec.from_json(found["spec"]), environment or None, _column_names(found["names"]))
    except (ValueError, TypeError, KeyError) as problem:
        reason = in_one_line(problem)
        raise DataError(f"{place} says what it holds in a damaged way ({reason}); export it again") from None


def _column_names(found: Any) -> dict[str, list[str]]:
    """The names of columns in what a file of this package says; ValueError if they are none."""
    if not isinstance(found, dict) or not {*found} <= {FEATURES, ACTION_COLUMNS}:
        raise ValueError("its names")
    for names in found.values():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("its names")
    return found


def exact(name: str, array: np.ndarray, first: int, dtype: str = "float32") -> np.ndarray:
    """Whole numbers in a type that is stored; a DataError names the first row with one that does not fit."""
    if array.dtype == dtype:
        return array
    low, high = (0, 255) if dtype == "uint8" else (-EXACT, EXACT)
    if array.size and not (array.min() >= low and array.max() <= high):
        row = int(((array < low) | (array > high)).reshape(len(array), -1).any(axis=1).argmax()) + first
        raise DataError(
            f"{name} hold whole numbers outside {low:,} to {high:,} (first in row {row}), which "
            f"{dtype} cannot hold: {SMALLER}"
        )
    return array.astype(dtype)


def _dtype(first: np.ndarray) -> np.dtype:
    """The stored type of observations like these."""
    if first.dtype in (np.uint8, np.bool_):
        return first.dtype
    if first.dtype.kind in "iu" and first.ndim > 2 and first.min() >= 0 and first.max() <= 255:
        return np.dtype(np.uint8)  # pixels of a wider type
    if first.dtype.kind not in "fiu":
        raise DataError(f"observations have type {first.dtype}: give uint8, bool or other numbers")
    return np.dtype(np.float32)


def _frames(values: np.ndarray, layout: Layout, dtype: np.dtype) -> np.ndarray:
    if values.ndim == 1:
        values = values[:, None]
    if layout.adds_channel and values.ndim == 3:
        values = values[..., None]
    if layout.channels_first and values.ndim == 4:
        values = np.moveaxis(values, 1, -1)
    if values.dtype.kind == "b" and dtype.kind == "f":
        return values.astype(dtype)
    return values.astype(dtype, copy=False) if values.dtype.kind == dtype.kind == "f" else values
