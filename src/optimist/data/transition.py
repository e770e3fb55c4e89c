"""The two records that the whole package shares: a transition, and the shapes of its parts."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from optimist.errors import DataError, in_one_line, some_of

LARGEST_OBSERVATION = 2**26  # bytes, stacked: the most that a file can make us allocate for one
MOST_ACTIONS = 2**20
LARGEST_BOUND = float(np.finfo(np.float32).max)  # of an action, which is stored as float32
ROUNDING = 1e-6  # relative to the largest bound: how far a float32 action may be outside its box


class Transition(NamedTuple):
    """One step as the losses get it: `discount` already includes gamma, n-step and terminal."""

    observation: Any
    action: Any
    reward: Any
    discount: Any
    next_observation: Any
    allowed: Any = None  # true for the actions that could be chosen, (A,), in a log with masks
    next_allowed: Any = None  # and for those that can be chosen in the next state
    next_action: Any = None  # the action that was logged next, for agents that ask for it
    next_logged: Any = None  # false where there is none: at the last step of an episode or a view


@dataclass(frozen=True)
class Spec:
    """Shapes and types of observations and actions, common to a dataset, an environment and a network."""

    frame_shape: tuple[int, ...]  # one observation as it is recorded, unstacked
    frame_dtype: str  # "uint8", "bool" or "float32"
    actions: int = 0  # how many discrete actions; 0 means that actions are vectors
    action_low: tuple[float, ...] = ()  # the bounds of a vector action
    action_high: tuple[float, ...] = ()
    stack: int = 1  # frames joined on the last axis when sampled, oldest first
    action_names: tuple[int | str, ...] = ()  # the user's own ids of the discrete actions, in order
    channels_first: bool = False  # the user's images are (c, h, w); frames are (h, w, c) all the same

    def __post_init__(self) -> None:
        if self.frame_dtype not in ("uint8", "bool", "float32"):
            kind = in_one_line(self.frame_dtype)
            raise DataError(f"observations of type {kind}: store uint8, bool or float32")
        if bool(self.actions) == bool(self.action_low):
            raise DataError(
                "a spec needs either a number of discrete actions or the bounds of vector actions"
            )
        pairs = list(zip(self.action_low, self.action_high, strict=False))
        if len(self.action_low) != len(self.action_high) or not all(
            -math.inf < low <= high < math.inf for low, high in pairs
        ):
            raise DataError(
                f"vector actions from {self.action_low} to {self.action_high}: give as many low bounds as "
                "high ones, finite, none above its high one"
            )
        if not 0 <= self.actions <= MOST_ACTIONS:
            raise DataError(f"{self.actions} discrete actions: there may be up to {MOST_ACTIONS:,}")
        names = self.action_names
        if names and (len(names) != self.actions or len(set(names)) != len(names)):
            raise DataError(
                f"{len(names)} action names for {self.actions} discrete actions: give each action one name"
            )
        if self.channels_first and len(self.frame_shape) != 3:
            raise DataError(f"frames of shape {self.frame_shape} have no channels; leave channels_first out")
        self._check_size()

    def _check_size(self) -> None:
        stacked = f"a stack of {self.stack} frames of shape {self.frame_shape}"
        if self.stack < 1 or not self.frame_shape or min(self.frame_shape) < 1:
            raise DataError(f"{stacked} makes no observation")
        size = math.prod(self.frame_shape) * self.stack * np.dtype(self.frame_dtype).itemsize
        if size > LARGEST_OBSERVATION:
            raise DataError(f"{stacked} takes {size:,} bytes: at most {LARGEST_OBSERVATION:,} are supported")

    @property
    def discrete(self) -> bool:
        return self.actions > 0

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The input shape of a network: frames joined on the last axis."""
        return (*self.frame_shape[:-1], self.frame_shape[-1] * self.stack)

    @property
    def action_shape(self) -> tuple[int, ...]:
        return () if self.discrete else (len(self.action_low),)

    @property
    def action_dtype(self) -> np.dtype:
        return np.dtype(np.int32 if self.discrete else np.float32)

    def outside(self, actions: np.ndarray) -> np.ndarray:
        """Which of these actions, (n, *action_shape), are not in the discrete set or not in the box, (n,)."""
        if self.discrete:
            return (actions < 0) | (actions >= self.actions)
        low, high = self._box
        inside = (actions >= low) & (actions <= high)  # false for NaN
        return np.any(~inside, axis=-1)

    @cached_property
    def _box(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.array(self.action_low), np.array(self.action_high)
        slack = ROUNDING * np.maximum(abs(low), abs(high))
        return low - slack, high + slack

    def named(self, actions: Any) -> Any:
        """The user's own ids of actions 0 to n - 1, for one or an array of them; without names the same."""
        if not self.action_names:
            return actions
        if np.ndim(actions) == 0:
            return self.action_names[int(actions)]
        return np.array(self.action_names, None if self._names_are_alike else object)[np.asarray(actions)]

    @cached_property
    def _names_are_alike(self) -> bool:
        return len(set(map(type, self.action_names))) == 1

    def arranged(self, observation: Any) -> Any:
        """An observation, or a batch of them, in the user's layout, as a network takes it: (h, w, c)."""
        shape = self.observation_shape
        if self.channels_first and observation.ndim in (3, 4):
            return observation.__array_namespace__().moveaxis(observation, -3, -1)
        without_channels = len(shape) == 3 and shape[2] == 1 and observation.ndim in (2, 3)
        if without_channels and observation.shape != shape and observation.shape[-2:] == shape[:2]:
            return observation[..., None]
        return observation

    def in_users_layout(self, observations: np.ndarray) -> np.ndarray:
        """Observations as a network takes them, in the user's layout, which is (c, h, w) if the images of the
        log were. A policy takes these."""
        return np.moveaxis(observations, -1, -3) if self.channels_first else observations

    def in_words(self) -> str:
        """A description: "84x84x1 uint8 frames, 4 stacked; 6 actions"."""
        shape, stack = (
            "x".join(map(str, self.frame_shape)),
            f", {self.stack} stacked" if self.stack > 1 else "",
        )
        one = len(self.frame_shape) == 1
        frames = f"vectors of {shape} {self.frame_dtype}" if one else f"{shape} {self.frame_dtype} frames"
        named = f" ({some_of([in_one_line(name, 20) for name in self.action_names], 4)})"
        actions = (
            f"{self.actions} actions{named if self.action_names else ''}"
            if self.discrete
            else f"action vectors of {len(self.action_low)}"
        )
        return f"{frames}{stack}; {actions}"

    def as_json(self) -> dict[str, Any]:
        """The fields as a record for a file; those of later versions only if they are used."""
        record = asdict(self)
        for name in ("action_names", "channels_first"):
            if not record[name]:
                del record[name]
        return record

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Spec":
        """The spec in a record from a file, after a check of every type."""
        known = {field.name: _TYPES[field.name] for field in fields(cls)}
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in dict(record).items()
        }
        for name, value in given.items():
            if name not in known or not known[name](value):
                raise DataError(
                    f"the spec's {in_one_line(name)} cannot be {in_one_line(value)}; restore it from a copy"
                )
        if "frame_shape" not in given or "frame_dtype" not in given:
            raise DataError("the spec lacks its frame_shape or frame_dtype; restore it from a copy")
        return cls(**given)


def _whole(value: Any) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _bounds(value: Any) -> bool:
    return isinstance(value, tuple) and all(
        type(each) in (int, float) and -LARGEST_BOUND <= each <= LARGEST_BOUND for each in value
    )


_TYPES: dict[str, Callable[[Any], bool]] = {
    "frame_shape": lambda value: isinstance(value, tuple) and all(map(_whole, value)),
    "frame_dtype": lambda value: isinstance(value, str),
    "actions": _whole,
    "action_low": _bounds,
    "action_high": _bounds,
    "stack": _whole,
    "action_names": lambda value: (
        isinstance(value, tuple) and all(_whole(x) or type(x) is str for x in value)
    ),
    "channels_first": lambda value: type(value) is bool,
}
