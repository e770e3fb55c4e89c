"""What the whole of a log decides: its spec, the numbers of its actions, and where its episodes end."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from optimist.data.array_actions import Actions, discrete_or_vectors
from optimist.data.array_observations import Layout
from optimist.data.transition import Spec
from optimist.errors import DataError, in_one_line

Part = dict[str, np.ndarray]
STORED = (
    "observations",
    "actions",
    "rewards",
    "terminals",
    "truncations",
    "next_observations",
    "probabilities",
    "allowed_actions",
    "frames",  # the observations with the final one of every episode after its last row
)
LARGEST_WHOLE = 2**24  # larger whole numbers are not exact as float32
FEW = 2**16  # whole numbers from 0 to here are counted; others are sorted, which takes longer


class Log(Protocol):
    """A log of another program, which can be read more than once."""

    @property
    def rows(self) -> int:
        """The number of rows; 0 if it is not known yet."""
        ...

    @property
    def columns(self) -> Collection[str]:
        """The names of its columns: those of `Dataset.from_arrays`; "frames" may stand for both columns of
        observations."""
        ...

    @property
    def spec(self) -> Spec | None:
        """The spec, if this package wrote the log."""
        ...

    @property
    def actions(self) -> Actions | None:
        """The number or the bounds of its actions, if the log declares them."""
        ...

    @property
    def actions_are_named(self) -> bool:
        """Whether a log that this package wrote has the names of its actions, not their numbers."""
        ...

    def parts(self, names: Collection[str]) -> Iterator[Part]:
        """These columns of all rows in time order, a bounded number of rows at a time."""
        ...


@dataclass(frozen=True)
class Asked:
    """What the user says about a log."""

    environment: str | None = None
    actions_count: int | None = None
    stack: int = 1
    channels: str | None = None
    every_end_is_terminal: bool = False
    action_low: float | None = None  # of every number of an action vector
    action_high: float | None = None


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
        first = next(log.parts(["observations"]), {}).get("observations", np.empty((0, 1)))
        if not len(first):
            raise DataError("the log has no rows; check that it is the right file")
        layout = Layout() if is_verified else Layout.of(first, asked.channels)
        shape, dtype = _frames(first[:1], layout, first.dtype).shape[1:], _dtype(first)
        chosen, distinct = log.actions, None
        if chosen is None:
            chosen, distinct = _chosen(log, asked)
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
        labels, first = _Labels(), 0
        for part, following in with_following(log.parts(names)):
            if "episodes" in part:
                part["truncations"] = labels.ends(part, following, first)
            yield {name: self._column(name, part[name], first) for name in STORED if name in part}
            first += len(part["rewards"])

    def _column(self, name: str, values: np.ndarray, first: int) -> np.ndarray:
        if name in ("observations", "next_observations", "frames"):
            if values.dtype.kind in "iu":
                values = exact(name, values, first, self.spec.frame_dtype)
            return _frames(values, self.layout, np.dtype(self.spec.frame_dtype))
        if name == "actions":
            return self._actions(values, first)
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
    """The spec that this package wrote, with what the user says otherwise."""
    if asked.stack != 1:
        spec = replace(spec, stack=asked.stack)
    if asked.actions_count not in (None, spec.actions) and spec.discrete:
        spec = replace(spec, actions=asked.actions_count, action_names=())
    return spec


def signed(record: Any, place: object) -> tuple[Spec, str | None]:
    """The spec and the environment in a file that this package wrote."""
    try:
        found = json.loads(record)
        environment = found["environment"]
        if not isinstance(environment, str):
            raise ValueError("its environment")
        return Spec.from_json(found["spec"]), environment or None
    except (ValueError, TypeError, KeyError) as problem:
        reason = in_one_line(problem)
        raise DataError(f"{place} says what it holds in a damaged way ({reason}); export it again") from None


def exact(name: str, array: np.ndarray, first: int, dtype: str = "float32") -> np.ndarray:
    """Whole numbers in a type that is stored; a DataError names the first row with one that does not fit."""
    if array.dtype == dtype:
        return array
    low, high = (0, 255) if dtype == "uint8" else (-LARGEST_WHOLE, LARGEST_WHOLE)
    if array.size and not (array.min() >= low and array.max() <= high):
        row = int(((array < low) | (array > high)).reshape(len(array), -1).any(axis=1).argmax()) + first
        raise DataError(
            f"{name} hold whole numbers outside {low:,} to {high:,} (first in row {row}), which "
            f" {dtype} cannot hold; are they ids? leave them out, or scale them"
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


def _chosen(log: Log, asked: Asked) -> tuple[Actions, np.ndarray]:
    """The number, names or bounds of the actions: one pass over their column; and the different ones."""
    low, high = asked.action_low, asked.action_high
    seen = _Seen(are_vectors=low is not None or high is not None)
    for part in log.parts(["actions"]):
        seen.add(part["actions"])
    if not seen.rows:
        raise DataError("the log has no rows; check that it is the right file")
    if seen.low is None or seen.high is None:
        found = discrete_or_vectors(seen.distinct, len(seen.distinct), actions_count=asked.actions_count)
        return found, seen.distinct
    if asked.actions_count is not None:
        raise DataError("the actions are vectors, and a number of actions is given; leave it out")
    lowest, highest = seen.low if low is None else low, seen.high if high is None else high
    extremes = np.stack([seen.low, seen.high])
    return discrete_or_vectors(extremes, 2, low=lowest, high=highest), seen.distinct


@dataclass
class _Seen:
    """The different actions so far; of vectors the bounds."""

    are_vectors: bool = False
    distinct: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    rows: int = 0

    def add(self, values: np.ndarray) -> None:
        if not len(values):
            return
        if values.dtype.kind == "f":
            wrong = ~np.isfinite(values)
            if wrong.any():
                row = int(wrong.reshape(len(values), -1).any(axis=1).argmax()) + self.rows
                raise DataError(
                    f"actions hold NaN or infinity (first in row {row}); remove or mend those steps"
                )
        self.rows += len(values)
        flat = values.reshape(len(values), -1)
        are_whole = values.dtype.kind != "f" or (flat == np.floor(flat)).all()
        if self.low is None and not self.are_vectors and flat.shape[1] == 1 and are_whole:
            self._add_discrete(flat[:, 0])
        elif values.dtype.kind not in "fiub":
            raise DataError(
                f"actions have rows of shape {values.shape[1:]} {values.dtype}: give numbers or names"
            )
        else:
            self._add_vectors(flat.astype(np.float32))

    def _add_discrete(self, values: np.ndarray) -> None:
        if values.dtype.kind in "iu" and values.min() >= 0 and values.max() < FEW:
            found = np.flatnonzero(np.bincount(values.astype(np.int64)))
        else:
            found = np.unique(values)
        if len(self.distinct) and found.dtype.kind in "US" and self.distinct.dtype.kind not in "US":
            raise DataError("actions are texts in some rows and numbers in others; make them alike")
        self.distinct = np.union1d(self.distinct, found) if len(self.distinct) else found

    def _add_vectors(self, values: np.ndarray) -> None:
        low, high = values.min(axis=0), values.max(axis=0)
        if len(self.distinct):  # whole numbers so far
            low, high = np.minimum(low, self.distinct.min()), np.maximum(high, self.distinct.max())
            self.distinct = self.distinct[:0]
        self.low = low if self.low is None else np.minimum(self.low, low)
        self.high = high if self.high is None else np.maximum(self.high, high)


class _Labels:
    """The labels of episodes, of which none may come again."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def ends(self, part: Part, following: Part | None, first: int) -> np.ndarray:
        """Whether a row is truncated: where its column says so, and where the label changes."""
        labels = part["episodes"]
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            row = int((~np.isfinite(labels)).argmax()) + first
            raise DataError(f"episodes hold NaN or infinity (first in row {row}); give every row a label")
        last = np.append(labels[1:] != labels[:-1], True)
        if following is not None:
            last[-1] = following["episodes"][0] != labels[-1]
        for row in np.flatnonzero(last).tolist():
            label = labels[row].item()
            if label in self.seen:
                begin = row - int(np.argmax((labels[: row + 1] != labels[row])[::-1])) + 1 if row else row
                raise DataError(
                    f"episode {in_one_line(label)} appears again near row {begin + first}, after another "
                    "one: sort the rows by episode and time"
                )
            self.seen.add(label)
        last &= ~part["terminals"].reshape(-1).astype(bool)
        return last | part["truncations"].reshape(-1).astype(bool) if "truncations" in part else last


def with_following(parts: Iterator[Part]) -> Iterator[tuple[Part, Part | None]]:
    """Every part, with the part after it; None after the last."""
    held: Part | None = None
    for part in parts:
        if not len(next(iter(part.values()))):
            continue
        if held is not None:
            yield held, part
        held = part
    if held is not None:
        yield held, None


def check_ends(log: Log, asked: Asked) -> None:
    """Where time limits end episodes cannot be known from observations and terminals alone."""
    if {"truncations", "next_observations", "episodes", "frames"} & set(log.columns):
        return
    flags = [part["terminals"].astype(bool) for part in log.parts(["terminals"])]
    terminal = np.concatenate(flags) if flags else np.zeros(0, bool)
    if asked.every_end_is_terminal:
        if not terminal.any():
            raise DataError(
                "no step of the log is terminal, so no episode ends: give --episodes or --truncations"
            )
        return
    if not terminal.all():
        raise DataError(
            "terminals do not show where time limits ended episodes: name a column of truncations, episodes "
            "or next observations; --truncations no means that every episode ends with a terminal step"
        )
