"""All steps of a dataset in one order, lane by lane, with the frames before and after each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np


class Frames(Protocol):
    """A source of the frames of a timeline, in timeline order."""

    @property
    def frame_bytes(self) -> int:
        """The size of the frames as they are stored."""
        ...

    @property
    def step_bytes(self) -> int:
        """The size of everything else on disk."""
        ...

    def take(self, indices: np.ndarray) -> np.ndarray: ...

    def decoded(self) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Masks:
    """Which of the discrete actions were allowed in each step; indexing gives booleans, (..., actions)."""

    bits: np.ndarray  # eight actions share a byte
    actions: int

    @classmethod
    def of(cls, allowed: np.ndarray) -> "Masks":
        return cls(np.packbits(allowed, axis=-1), allowed.shape[-1])

    def __len__(self) -> int:
        return len(self.bits)

    def __getitem__(self, which: Any) -> np.ndarray:
        return np.unpackbits(self.bits[which], axis=-1, count=self.actions).view(bool)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype)

    def allow(self, actions: np.ndarray) -> np.ndarray:
        """Whether the mask of each step allows this action of it, (n,) -> (n,)."""
        byte = self.bits[np.arange(len(actions)), actions >> 3]
        return (byte >> (7 - (actions & 7)).astype(np.uint8) & 1).astype(bool)


@dataclass(frozen=True, eq=False)
class Timeline:
    """Every step in lane order. An episode of n steps has n + 1 frames; the last is its final observation.
    Step i begins at frame i + episode(i), and its successor is the next frame."""

    action: np.ndarray
    reward: np.ndarray
    terminal: np.ndarray
    truncated: np.ndarray
    lanes: np.ndarray  # the number of each lane
    lane_starts: np.ndarray  # the first step of each lane
    clock: Callable[[], np.ndarray]  # reads the time of every step; training does not need it
    source: Frames
    probability: np.ndarray | None = None  # with which the logging policy chose the action
    allowed: Masks | None = None  # the actions that could be chosen
    next_allowed: Masks | None = None  # those after the last steps of episodes, where they are known

    def __len__(self) -> int:
        return len(self.reward)

    @cached_property
    def time(self) -> np.ndarray:
        """The time of each step, counted over all lanes."""
        return self.clock()

    @cached_property
    def lane(self) -> np.ndarray:
        return np.repeat(self.lanes, np.diff(self.lane_starts, append=len(self)))

    @cached_property
    def episode_starts(self) -> np.ndarray:
        begins = np.zeros(len(self), bool)
        np.logical_or(self.terminal[:-1], self.truncated[:-1], out=begins[1:])
        begins[self.lane_starts] = True
        return np.flatnonzero(begins)

    @property
    def frame_count(self) -> int:
        return len(self) + len(self.episode_starts)

    def episode_of(self, steps: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.episode_starts, steps, side="right") - 1

    def allowed_after(self, steps: np.ndarray) -> np.ndarray:
        """The actions that could be chosen after each of these steps of a log with masks, as bits,
        (..., bytes); no bits after a terminal step, and where they are not known."""
        masks, following = cast(Masks, self.allowed), steps + 1
        starts = self.episode_starts
        beginning = np.searchsorted(starts, following)  # the first episode that does not begin before it
        ended = (following == len(self)) | (starts.take(beginning, mode="clip") == following)
        found = masks.bits.take(following, axis=0, mode="clip")
        at_ends = np.uint8(0) if self.next_allowed is None else self.next_allowed.bits[steps]
        return np.where(ended[..., None], at_ends, found)

    def frames(self, indices: np.ndarray) -> np.ndarray:
        """The frames with these numbers, in this order, (..., *frame_shape)."""
        flat = np.asarray(indices).ravel()
        if flat.size and not (flat.min() >= 0 and flat.max() < self.frame_count):
            raise IndexError(f"frame numbers go from 0 to {self.frame_count - 1}")
        frames = self.source.take(flat)
        return frames.reshape(*np.shape(indices), *frames.shape[1:])

    def decoded(self) -> np.ndarray:
        """All frames in memory; every byte of their files is checked."""
        return self.source.decoded()


@dataclass(frozen=True, eq=False)
class MemoryFrames:
    """Frames in an array in memory."""

    array: np.ndarray
    step_bytes: int = 0

    @property
    def frame_bytes(self) -> int:
        return self.array.nbytes

    def take(self, indices: np.ndarray) -> np.ndarray:
        return self.array[indices]

    def decoded(self) -> np.ndarray:
        return self.array
