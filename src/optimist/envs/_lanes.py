"""Shared by the families: single environments stepped together, and the check of actions."""

import importlib
import json
import os
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from optimist.data import machine
from optimist.data.disk.records import json_value
from optimist.data.transition import Spec
from optimist.envs._environment import Step
from optimist.errors import UsageError


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
        self,
        name: str,
        spec: Spec,
        members: Sequence[Lane],
        versions: dict[str, str],
        encoding: str = "",
    ):
        self.name = name
        self.spec = spec
        self.lanes = len(members)
        self._members = members
        self._versions = versions
        self.encoding = encoding
        self._started = False
        self.allowed: np.ndarray | None = None
        self.resumable = all(hasattr(member, "saved") for member in members)

    def reset(self) -> np.ndarray:
        self._started = True
        frames = np.array([member.reset() for member in self._members], self.spec.frame_dtype)
        self.allowed = self._checked(self._masks())
        return frames

    def step(self, actions: Any) -> Step:
        if not self._started:
            raise UsageError(f"{self.name}: call reset() before the first step()")
        actions = checked_actions(actions, self.spec, self.lanes)
        rows = actions.tolist() if self.spec.discrete else actions
        outcomes = [member.step(row) for member, row in zip(self._members, rows, strict=True)]
        frames, rewards, terminals, truncations = zip(*outcomes, strict=True)
        following = np.array(frames, self.spec.frame_dtype)
        terminal = np.array(terminals, bool)
        truncated = np.array(truncations, bool) & ~terminal
        next_allowed = self._masks()
        observation = self._restarted(following, terminal | truncated)
        self.allowed = self._checked(self._masks())
        return Step(
            observation=observation,
            reward=np.array(rewards, np.float32),
            terminal=terminal,
            truncated=truncated,
            next_observation=following,
            next_allowed=next_allowed,
        )

    def _masks(self) -> np.ndarray | None:
        """The actions that each lane allows now, (lanes, A); None if the lanes have no masks."""
        masks = [getattr(member, "allowed", None) for member in self._members]
        return None if any(mask is None for mask in masks) else np.array(masks, bool)

    def _checked(self, masks: np.ndarray | None) -> np.ndarray | None:
        if masks is not None and not masks.any(axis=1).all():
            raise UsageError(
                f"{self.name} allows no action, and its episode goes on: correct its mask, or end the episode"
            )
        return masks

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

    def _restarted(self, frames: np.ndarray, ended: np.ndarray) -> np.ndarray:
        """The frames to act on: the first of a new episode where one `ended`."""
        if not ended.any():
            return frames
        frames = frames.copy()
        for lane in np.flatnonzero(ended).tolist():
            frames[lane] = self._members[lane].reset()
        return frames


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
    return _within_set(actions, spec.actions) if spec.discrete else _within_bounds(actions, spec)


def _within_set(actions: np.ndarray, count: int) -> np.ndarray:
    if actions.min() < 0 or actions.max() >= count:
        lane = int(np.flatnonzero((actions < 0) | (actions >= count))[0])
        raise UsageError(f"action {actions[lane]} in lane {lane} is not one of 0 to {count - 1}")
    return actions


def _within_bounds(actions: np.ndarray, spec: Spec) -> np.ndarray:
    actions = actions.astype(spec.action_dtype)
    outside = spec.outside(actions)  # by more than rounding
    low = np.array(spec.action_low, spec.action_dtype)
    high = np.array(spec.action_high, spec.action_dtype)
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
