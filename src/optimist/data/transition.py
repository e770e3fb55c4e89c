"""What the whole package shares: a transition, the shapes of its parts, and the columns of a log."""

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from optimist.errors import DataError, UsageError, in_one_line, some_of

LARGEST_OBSERVATION = 2**26  # bytes, stacked: the most that a file can make us allocate for one
MOST_ACTIONS = 2**20
LARGEST = 2**63  # nobody means a whole number beyond it, and arithmetic with floats would overflow
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
            -LARGEST_BOUND <= low <= high <= LARGEST_BOUND for low, high in pairs
        ):
            raise DataError(
                f"vector actions from {self.action_low} to {self.action_high}: give as many low bounds as "
                "high ones, finite, none above its high one"
            )
        if not 0 <= self.actions <= MOST_ACTIONS:
            raise DataError(f"{self.actions} discrete actions: there may be up to {MOST_ACTIONS:,}")
        names = self.action_names
        if any(isinstance(name, int) and not -LARGEST <= name < LARGEST for name in names):
            raise DataError(f"an action is named by a number from 2**63 on, which cannot be stored: {names}")
        if names and (len(names) != self.actions or len(set(names)) != len(names)):
            raise DataError(
                f"{len(names)} action names for {self.actions} discrete actions: give each action one name"
            )
        if self.channels_first and len(self.frame_shape) != 3:
            raise DataError(f"frames of shape {self.frame_shape} have no channels; leave channels_first out")
        stacked = f"a stack of {self.stack} frames of shape {self.frame_shape}"
        if self.stack < 1 or not self.frame_shape or min(self.frame_shape) < 1:
            raise DataError(f"{stacked} makes no observation")
        size = self.frame_bytes * self.stack
        if size > LARGEST_OBSERVATION:
            raise DataError(f"{stacked} takes {size:,} bytes: at most {LARGEST_OBSERVATION:,} are supported")

    @property
    def discrete(self) -> bool:
        return self.actions > 0

    @property
    def frame_bytes(self) -> int:
        """The memory of one frame."""
        return math.prod(self.frame_shape) * np.dtype(self.frame_dtype).itemsize

    @property
    def mask_bytes(self) -> int:
        """The bytes of a mask over the discrete actions; eight actions share a byte."""
        return (self.actions + 7) // 8

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
        return self._names[np.asarray(actions)]

    @cached_property
    def _names(self) -> np.ndarray:
        are_alike = len(set(map(type, self.action_names))) == 1
        return np.array(self.action_names, None if are_alike else object)

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
        shape = "x".join(map(str, self.frame_shape))
        one = len(self.frame_shape) == 1
        frames = f"vectors of {shape} {self.frame_dtype}" if one else f"{shape} {self.frame_dtype} frames"
        stack = f", {self.stack} stacked" if self.stack > 1 else ""
        names = some_of([in_one_line(name, 20) for name in self.action_names], 4)
        discrete = f"{self.actions} actions{f' ({names})' if names else ''}"
        return (
            f"{frames}{stack}; {discrete if self.discrete else f'action vectors of {len(self.action_low)}'}"
        )

    def as_json(self) -> dict[str, Any]:
        """The fields as a record for a file; the last two only if they are used."""
        record = asdict(self)
        for name in ("action_low", "action_high"):
            record[name] = tuple(map(float, record[name]))  # as they are read back
        for name in ("action_names", "channels_first"):
            if not record[name]:
                del record[name]
        return record


class Column(NamedTuple):
    """A column of a log: a value for every step, beside its frames."""

    name: str  # of one value: in the files of a dataset
    plural: str  # of many: in arrays that people give, and in files of other programs; "" if it is not there
    kind: str = "float32"  # or "int32", "int64", "bool"; "action" is as the spec says, "mask" a bit an action
    is_optional: bool = False  # all steps of a dataset have it, or none has

    def shape(self, spec: Spec) -> tuple[int, ...]:
        """The shape of one value, as it is stored."""
        return {"action": spec.action_shape, "mask": (spec.mask_bytes,)}.get(self.kind, ())

    def dtype(self, spec: Spec) -> np.dtype:
        return {"action": spec.action_dtype, "mask": np.dtype(np.uint8)}.get(self.kind) or np.dtype(self.kind)

    def empty(self, count: int, spec: Spec) -> np.ndarray:
        """An array for the values of `count` steps."""
        return np.empty((count, *self.shape(spec)), self.dtype(spec))


Columns = dict[str, np.ndarray]  # by the names of single values

# A new line here is a new column of all logs: files, checks, views, exports and imports follow.
COLUMNS = (
    Column("lane", "", "int32"),
    Column("time", "", "int64"),  # counted over all lanes
    Column("action", "actions", "action"),
    Column("reward", "rewards"),
    Column("terminal", "terminals", "bool"),
    Column("truncated", "truncations", "bool"),
    Column("probability", "probabilities", is_optional=True),  # with which the policy chose the action
    Column("allowed", "allowed_actions", "mask", is_optional=True),
    # The mask of the state after a step, where the next step lacks it; without bits where nobody knows it.
    Column("next_allowed", "next_allowed_actions", "mask", is_optional=True),
)
NEXT = "next_allowed"
OPTIONAL = tuple(column.name for column in COLUMNS if column.is_optional)
OF_STEPS = tuple(column for column in COLUMNS if column.plural)


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """The whole number that this value is, 1000 for 1e3; UsageError for any other value, or a smaller one."""
    value = value.item() if isinstance(value, np.generic) else value
    if (
        isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST or value % 1
    ):  # NaN is not below anything
        raise UsageError(f"{name} is {in_one_line(repr(value))}, not a whole number")
    if least is not None and value < least:
        raise UsageError(f"{name} is {value:g}: it must be at least {least}")
    return int(value)


def number(name: str, value: Any) -> float:
    """The float that this value is; UsageError for what is no number, such as text."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{name} is {in_one_line(repr(value))}, not a number")
    return float(value)
