"""How the columns of another program's log become those of a dataset: actions, images, ends."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from optimist.data.rules.actions import chosen_actions, numbered
from optimist.data.rules.checks import checked_rows, exact, masks_by_name, refuse_rounded
from optimist.data.rules.log import FRAMES, OBSERVATIONS, STORED, Actions, Asked, Log, Part, with_following
from optimist.data.transition import Spec
from optimist.errors import DataError, in_one_line
from optimist.errors import log as warn

FEW_CHANNELS, LARGE_SIDE = 4, 8  # an axis of up to 4 beside one of at least 8: the first is the channels


class Layout(NamedTuple):
    """How the images of a log lie in its arrays."""

    channels_first: bool = False  # (n, c, h, w)
    adds_channel: bool = False  # (n, h, w)

    @classmethod
    def of(cls, array: np.ndarray, channels: str | None) -> "Layout":
        """The layout of these observations; DataError where it would be a guess."""
        shape = array.shape
        if channels not in (None, "first", "last"):
            raise DataError(f'channels="{channels}": give "first", (n, c, h, w), or "last", (n, h, w, c)')
        if array.ndim == 3:
            if array.dtype.kind == "f" and channels is None:
                raise DataError(
                    f"observations have shape {shape} and type {array.dtype}: give "
                    'channels="last" if they are images of one channel, (steps, numbers) if they are vectors'
                )
            return cls(adds_channel=True)
        if array.ndim != 4:
            if channels is not None:
                raise DataError(f"observations have shape {shape}: channels= is for images, (n, h, w, c)")
            return cls()
        can_be_first = shape[1] <= FEW_CHANNELS and shape[3] >= LARGE_SIDE
        can_be_last = shape[3] <= FEW_CHANNELS and shape[1] >= LARGE_SIDE
        if channels is None and not can_be_first and not can_be_last:
            raise DataError(
                f'images of shape {shape}: give channels="first" if they are (n, c, h, w), channels="last" '
                "if they are (n, h, w, c)"
            )
        return cls(channels_first=can_be_first if channels is None else channels == "first")


@dataclass(frozen=True)
class Plan:
    """How the columns of one log become those of a dataset."""

    spec: Spec
    layout: Layout = Layout()
    actions: Actions = Actions()  # with the numbers of those that have names

    @classmethod
    def of(cls, log: Log, *, is_verified: bool = False) -> "Plan":
        """The plan of a log; to verify it, the ends of its episodes and the layout of its images need not be
        known."""
        if not is_verified:
            _check_ends(log)
        if log.spec is not None:
            spec = _asked_for(log.spec, log.asked)
            if not (spec.action_names and log.actions_are_named):
                return cls(spec)
            are_alike = len(set(map(type, spec.action_names))) == 1
            names = np.array(spec.action_names, None if are_alike else str)
            return cls(spec, actions=Actions(distinct=np.sort(names), numbers=np.argsort(names)))
        first = next(iter(log.parts(["observations"])), {}).get("observations", np.empty((0, 1)))
        if not len(first):
            raise DataError("the log has no rows; check that it is the right file")
        layout, dtype = Layout() if is_verified else Layout.of(first, log.asked.channels), _stored_type(first)
        actions = log.actions or chosen_actions(log)
        spec = Spec(
            _stored("observations", first[:1], layout, dtype, 0).shape[1:],
            str(dtype),
            actions=actions.number,
            action_low=actions.low,
            action_high=actions.high,
            stack=log.asked.stack,
            action_names=actions.names,
            channels_first=layout.channels_first,
        )
        return cls(spec, layout, actions)

    def parts(self, log: Log) -> Iterator[Part]:
        """The columns as `Joining` takes them."""
        names = {name for name in (*STORED, "episodes") if name in log.columns}
        if FRAMES in names:
            names -= set(OBSERVATIONS)
        labels, first = EpisodeLabels(is_sorted=log.is_sorted), 0
        for part, following in with_following(log.parts(names)):
            if "episodes" in part:
                part["truncations"] = labels.truncations(part, following, first)
            yield {name: self._column(name, part[name], first) for name in STORED if name in part}
            first += len(part["rewards"])
        if labels.early:
            warn.warning(log.in_file(labels.early))

    def _column(self, name: str, values: np.ndarray, first: int) -> np.ndarray:
        if name in (*OBSERVATIONS, FRAMES):
            return _stored(name, values, self.layout, np.dtype(self.spec.frame_dtype), first)
        if name in ("allowed_actions", "next_allowed_actions"):
            return masks_by_name(name, values, self.spec, first)
        if name == "rewards":
            return values.astype(np.float32) if values.dtype.kind == "b" else values
        if name != "actions":
            return values
        distinct, numbers = self.actions.distinct, self.actions.numbers
        if distinct is not None and numbers is not None:
            return numbered(values, distinct, numbers, first)
        if self.spec.discrete:
            flat = values.reshape(-1)
            return flat.astype(np.int64) if flat.dtype.kind in "fb" else flat
        return values.reshape(len(values), -1)


def _asked_for(spec: Spec, asked: Asked) -> Spec:
    """The spec that this package wrote, with what the user says otherwise. Bounds of actions and the order of
    an image's axes belong to the numbers in the file, so they cannot be said otherwise."""
    for name, value, there in (
        ("action-low", asked.action_low, spec.action_low),
        ("action-high", asked.action_high, spec.action_high),
        ("channels", asked.channels, "first" if spec.channels_first else "last"),
    ):
        if value is None or (isinstance(value, str) and value == there):
            continue
        bounds = np.empty(0) if isinstance(value, str) else np.atleast_1d(np.asarray(value, np.float32))
        if not there or len(bounds) not in (1, len(there)) or (bounds != np.array(there, np.float32)).any():
            shown = in_one_line(there or "discrete actions")
            raise DataError(f"optimist wrote this file, which says {shown}: leave --{name} out")
    if asked.stack != 1:
        spec = replace(spec, stack=asked.stack)
    if asked.actions_count not in (None, spec.actions) and spec.discrete:
        spec = replace(spec, actions=asked.actions_count, action_names=())
    return spec


def _stored_type(first: np.ndarray) -> np.dtype:
    """The type in which observations like these first ones are stored."""
    if first.dtype in (np.uint8, np.bool_):
        return first.dtype
    if first.dtype.kind in "iu" and first.ndim > 2 and first.min() >= 0 and first.max() <= 255:
        return np.dtype(np.uint8)  # pixels of a wider type
    if first.dtype.kind not in "fiu":
        raise DataError(f"observations have type {first.dtype}: give uint8, bool or other numbers")
    return np.dtype(np.float32)


def _stored(name: str, values: np.ndarray, layout: Layout, dtype: np.dtype, first: int) -> np.ndarray:
    """Rows of observations as they are stored, with the channels of images last; `first` is the number of
    row 0. DataError where a number would be rounded."""
    if values.dtype.kind in "iu":
        values = exact(name, values, first, str(dtype))
    if values.dtype.kind == "f":
        refuse_rounded(name, values, first)
    if values.ndim == 1:
        values = values[:, None]
    if layout.adds_channel and values.ndim == 3:
        values = values[..., None]
    if layout.channels_first and values.ndim == 4:
        values = np.moveaxis(values, 1, -1)
    if dtype.kind != "f" or values.dtype.kind not in "fb":
        return values
    with np.errstate(over="ignore"):  # what is too large is infinite, and refused
        return values.astype(dtype, copy=False)


class EpisodeLabels:
    """The labels of episodes, of which none may come again."""

    def __init__(self, *, is_sorted: bool = False) -> None:
        self.seen: set[Any] = set()
        self.remedy = "correct the mark" if is_sorted else "sort the rows by time (of a table: --order)"
        # A warning about the first episode that goes on after a row that is marked as an end: rows that are
        # not in the order of time look like this, and become many short episodes.
        self.early: str | None = None

    def truncations(self, part: Part, following: Part | None, first: int) -> np.ndarray:
        """Whether a row is truncated: where its column says so, and where the label changes."""
        labels = part["episodes"]
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            row = int((~np.isfinite(labels)).argmax()) + first
            raise DataError(f"episodes hold NaN or infinity (first in row {row}); give every row a label")
        last = np.append(labels[1:] != labels[:-1], True)
        if following is not None:
            last[-1] = following["episodes"][0] != labels[-1]
        self._add(labels, np.flatnonzero(last), first)
        terminal, truncated = (
            checked_rows(name, part.get(name, np.zeros(len(labels), bool)), (), "bool", first)
            for name in ("terminals", "truncations")
        )
        early = np.flatnonzero((terminal | truncated) & ~last)
        if len(early) and self.early is None:
            row = int(early[0])
            self.early = (
                f"episode {in_one_line(labels[row])} goes on after row {row + first}, which is marked as an "
                f"end: the rows after it count as another episode; if they are not, {self.remedy}"
            )
        return (last & ~terminal) | truncated

    def _add(self, labels: np.ndarray, last: np.ndarray, first: int) -> None:
        """Note the labels of these last rows; DataError if one was noted before."""
        ended = labels[last].tolist()  # Python's own values, which may be compared and shown
        distinct = set(ended)
        if len(distinct) == len(ended) and self.seen.isdisjoint(distinct):
            self.seen |= distinct
            return
        for number, label in enumerate(ended):
            if label in self.seen:
                begin = last[number - 1] + 1 if number else 0
                raise DataError(
                    f"episode {in_one_line(label)} appears again near row {begin + first}, after another "
                    "one: sort the rows by episode and time"
                )
            self.seen.add(label)


def _check_ends(log: Log) -> None:
    """Raise DataError unless the log shows where its episodes end: observations and terminals do not show
    where time limits ended them."""
    if log.asked.every_end_is_terminal and "episodes" in log.columns and "truncations" not in log.columns:
        _check_labelled_ends(log)
    if {"truncations", "next_observations", "episodes", FRAMES} & set(log.columns):
        return
    flags = [checked_rows("terminals", part["terminals"], (), "bool", 0) for part in log.parts(["terminals"])]
    terminal = np.concatenate(flags) if flags else np.zeros(0, bool)
    if log.asked.every_end_is_terminal:
        if len(terminal) and not terminal.any():
            raise DataError(
                "--truncations no (truncations=False) says that every episode ends with a terminal step, but "
                "no step is terminal: give episodes, or truncations (all false: one episode without an end)"
            )
    elif not terminal.all():
        raise DataError(
            "terminals do not show where time limits ended episodes: give truncations, episodes or "
            "next_observations; --truncations no (truncations=False) means that every episode ends with a "
            "terminal step"
        )


def _check_labelled_ends(log: Log) -> None:
    """Raise DataError for an episode that ends without a terminal step, although no time limit cut it; or
    whose rows are not together or not in order, which looks alike."""
    labels, first, open_end = EpisodeLabels(is_sorted=log.is_sorted), 0, None
    for part, following in with_following(log.parts(["episodes", "terminals"])):
        ends = labels.truncations(part, following, first)
        if open_end is None and ends.any():
            row = int(ends.argmax())
            open_end = (in_one_line(part["episodes"][row]), row + first)
        first += len(ends)
    if open_end is None:
        return
    if labels.early:
        raise DataError(
            f"{labels.early} (and episode {open_end[0]} ends in row {open_end[1]} without an end)"
        )
    raise DataError(
        f"episode {open_end[0]} ends in row {open_end[1]} without a terminal step, but --truncations no "
        "(truncations=False) says that no episode was cut: mark the row as terminal, or give no truncations"
    )
