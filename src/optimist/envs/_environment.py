"""What an environment is: lanes of one game that are stepped together. `Lanes` makes one of single games."""

import importlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np

from optimist.data import machine
from optimist.data.disk.records import json_value
from optimist.data.transition import Spec
from optimist.errors import OptimistError, RunError, UsageError


class Step(NamedTuple):
    """One step of every lane; arrays with a leading lane axis, frames single and unstacked.

    A step ends its episode as `terminal` or as `truncated`, never both. The two observations may be the
    same array where no episode ended: read them, do not write into them.
    """

    observation: np.ndarray  # what the lane acts on next: already reset where an episode ended
    reward: np.ndarray  # float32, unclipped
    terminal: np.ndarray
    truncated: np.ndarray
    next_observation: np.ndarray  # the true successor: the final observation where an episode ended
    next_allowed: Any = None  # the actions that could be chosen in it, (lanes, A), if the environment says so


class Environment(Protocol):
    """`lanes` copies of one game that are stepped together and reset automatically.

    An environment with the optional attribute `resumable` returns its whole state as arrays from `saved()`,
    and continues from that state after `restore()`, which checks the arrays because they come from a file.
    The optional attribute `encoding` says in words how frames are made of the game's own observations.
    The optional attribute `allowed` is the mask of the actions that can be chosen now, (lanes, A), after each
    reset and step; None before the first reset, and where the environment has no masks."""

    name: str
    spec: Spec
    lanes: int

    def reset(self) -> np.ndarray:
        """Begin a new episode in every lane; the random streams continue and do not start over."""
        ...

    def step(self, actions: Any) -> Step: ...

    def render(self) -> np.ndarray:
        """A picture of lane 0, uint8 (H, W, 3)."""
        ...

    def versions(self) -> dict[str, str]:
        """The versions of the packages that determine what happens in this environment."""
        ...

    def close(self) -> None: ...


class EnvironmentFailed(RunError):
    """An environment raised an exception, which is the cause of this one."""


@contextmanager
def named_failures(name: str) -> Iterator[None]:
    """Turn whatever an environment raises into one line that names the environment."""
    try:
        yield
    except OptimistError:
        raise
    except (Exception, SystemExit) as problem:
        raise EnvironmentFailed(
            f"the environment {name} failed ({type(problem).__name__}: {problem}): mend it, and the same "
            "command continues; --debug shows where it failed"
        ) from problem


class Lane(Protocol):
    """One environment, which does not reset automatically. The optional attribute `allowed` is the mask of
    the actions that can be chosen now, (A,)."""

    def reset(self) -> np.ndarray: ...

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool]:
        """Frame, reward, terminal, truncated."""
        ...

    def render(self) -> np.ndarray: ...

    def close(self) -> None: ...


class Lanes:
    """An `Environment` of single ones, each reset as soon as its episode ends."""

    def __init__(
        self, name: str, spec: Spec, members: Sequence[Lane], versions: dict[str, str], encoding: str = ""
    ):
        self.name, self.spec, self.lanes, self.encoding = name, spec, len(members), encoding
        self._members, self._versions, self._started = members, versions, False
        self.allowed: np.ndarray | None = None
        self.resumable = all(hasattr(member, "saved") for member in members)

    def reset(self) -> np.ndarray:
        self._started = True
        frames = np.array([member.reset() for member in self._members], self.spec.frame_dtype)
        self._read_masks()
        return frames

    def step(self, actions: Any) -> Step:
        if not self._started:
            raise UsageError(f"{self.name}: call reset() before the first step()")
        actions = checked_actions(actions, self.spec, self.lanes)
        rows = actions.tolist() if self.spec.discrete else actions
        outcomes = [member.step(row) for member, row in zip(self._members, rows, strict=True)]
        frames, rewards, terminals, truncations = zip(*outcomes, strict=True)
        observation = following = np.array(frames, self.spec.frame_dtype)
        terminal = np.array(terminals, bool)
        truncated = np.array(truncations, bool) & ~terminal
        next_allowed, ended = self._masks(), terminal | truncated
        if ended.any():
            observation = following.copy()
            for lane in np.flatnonzero(ended).tolist():
                observation[lane] = self._members[lane].reset()
        self._read_masks()
        reward = np.array(rewards, np.float32)
        return Step(observation, reward, terminal, truncated, following, next_allowed)

    def _masks(self) -> np.ndarray | None:
        """The actions that each lane allows now, (lanes, A); None if the lanes have no masks."""
        masks = [getattr(member, "allowed", None) for member in self._members]
        return None if any(mask is None for mask in masks) else np.array(masks, bool)

    def _read_masks(self) -> None:
        self.allowed = self._masks()
        if self.allowed is not None and not self.allowed.any(axis=1).all():
            raise UsageError(
                f"{self.name} allows no action, and its episode goes on: correct its mask, or end the episode"
            )

    def saved(self) -> dict[str, np.ndarray]:
        """The state of every lane; only for lanes that are `resumable`."""
        members: Any = self._members
        return {"lanes": as_array([member.saved() for member in members])}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        members: Any = self._members
        for member, state in zip(members, from_array(arrays["lanes"]), strict=True):
            member.restore(state)
        self._started, self.allowed = True, self._masks()

    def render(self) -> np.ndarray:
        return self._members[0].render()

    def versions(self) -> dict[str, str]:
        return dict(self._versions)

    def close(self) -> None:
        for member in self._members:
            member.close()


def as_array(states: list) -> np.ndarray:
    """The states of single lanes, which consist of plain values, as bytes of JSON."""
    return np.frombuffer(json.dumps(states).encode(), np.uint8)


def from_array(array: np.ndarray) -> list:
    states = json_value(array.astype(np.uint8).tobytes())
    if not isinstance(states, list):
        raise ValueError("the states of lanes are not a list")
    return states


def checked_actions(actions: Any, spec: Spec, lanes: int) -> np.ndarray:
    """The actions in the spec's type; UsageError for invalid ones, on which some environments hang."""
    actions = np.asarray(actions)
    expected = (lanes, *spec.action_shape)
    if actions.shape != expected:
        raise UsageError(f"actions have shape {actions.shape}, this environment takes {expected}")
    if actions.dtype.kind not in ("iu" if spec.discrete else "iuf"):
        wanted = "whole numbers" if spec.discrete else "numbers"
        raise UsageError(f"actions are of type {actions.dtype}, this environment takes {wanted}")
    if spec.discrete:
        outside = (actions < 0) | (actions >= spec.actions)
        if outside.any():
            lane = int(np.flatnonzero(outside)[0])
            raise UsageError(f"action {actions[lane]} in lane {lane} is not one of 0 to {spec.actions - 1}")
        return actions
    actions = actions.astype(spec.action_dtype)
    low, high = np.array([spec.action_low, spec.action_high], spec.action_dtype)
    outside = spec.outside(actions)  # by more than rounding
    if outside.any():
        inside = (actions >= low) & (actions <= high)  # false for NaN
        lane, part = np.argwhere(outside[:, None] & ~inside)[0].tolist()
        value, bounds = actions[lane, part], f"{low[part]} to {high[part]}"
        raise UsageError(f"action {value} in lane {lane}, part {part}, is outside its bounds {bounds}")
    return np.clip(actions, low, high)


def free_cores() -> int:
    """The cores for environments. Of more than four cores, two are left to the learner. NPROC, which XLA
    reads too, is the share of a process that does not have the whole machine."""
    cores = int(os.environ.get("NPROC") or machine.cores())
    return cores - 2 if cores > 4 else cores


def first_line(error: Exception) -> str:
    """The first line of a simulator's error, for a message of one line."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def package(name: str, *, extra: str) -> ModuleType:
    """Import an optional package; UsageError with the command that installs it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UsageError(f'{name} is not installed: pip install "optimist-rl[{extra}]"') from error
