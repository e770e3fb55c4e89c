"""How the columns of another program's log become those of a dataset."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optimist.data.rules.actions import chosen_actions, numbered
from optimist.data.rules.ends import EpisodeLabels, check_ends
from optimist.data.rules.log import FRAMES, OBSERVATIONS, STORED, Actions, Asked, Log, Part, with_following
from optimist.data.rules.masks import by_name
from optimist.data.rules.observations import Layout, stored, stored_type
from optimist.data.transition import Spec
from optimist.errors import DataError, in_one_line
from optimist.errors import log as warn


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
            check_ends(log)
        asked = log.asked
        if log.spec is not None:
            return cls._of_ours(log.spec, asked, log.actions_are_named)
        first = next(iter(log.parts(["observations"])), {}).get("observations", np.empty((0, 1)))
        if not len(first):
            raise DataError("the log has no rows; check that it is the right file")
        layout, dtype = Layout() if is_verified else Layout.of(first, asked.channels), stored_type(first)
        chosen = log.actions or chosen_actions(log)
        spec = Spec(
            stored("observations", first[:1], layout, dtype, 0).shape[1:],
            str(dtype),
            actions=chosen.number,
            action_low=chosen.low,
            action_high=chosen.high,
            stack=asked.stack,
            action_names=chosen.names,
            channels_first=layout.channels_first,
        )
        return cls(spec, layout, chosen)

    @classmethod
    def _of_ours(cls, spec: Spec, asked: Asked, actions_are_named: bool) -> "Plan":
        spec = _asked_for(spec, asked)
        if not (spec.action_names and actions_are_named):
            return cls(spec)
        names = np.array(spec.action_names, None if len(set(map(type, spec.action_names))) == 1 else str)
        return cls(spec, actions=Actions(distinct=np.sort(names), numbers=np.argsort(names)))

    def parts(self, log: Log) -> Iterator[Part]:
        """The columns as `Joining` takes them."""
        names = {name for name in (*STORED, "episodes") if name in log.columns}
        if FRAMES in names:
            names -= set(OBSERVATIONS)
        labels, first = EpisodeLabels(), 0
        for part, following in with_following(log.parts(names)):
            if "episodes" in part:
                part["truncations"] = labels.truncations(part, following, first)
            yield {name: self._column(name, part[name], first) for name in STORED if name in part}
            first += len(part["rewards"])
        if labels.early:
            warn.warning(log.in_file(labels.early))

    def _column(self, name: str, values: np.ndarray, first: int) -> np.ndarray:
        if name in (*OBSERVATIONS, FRAMES):
            return stored(name, values, self.layout, np.dtype(self.spec.frame_dtype), first)
        if name == "actions":
            return self._actions(values, first)
        if name in ("allowed_actions", "next_allowed_actions"):
            return by_name(name, values, self.spec, first)
        return values.astype(np.float32) if name == "rewards" and values.dtype.kind == "b" else values

    def _actions(self, values: np.ndarray, first: int) -> np.ndarray:
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
