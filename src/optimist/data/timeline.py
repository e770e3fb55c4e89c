"""All steps of a dataset in one order, lane by lane, with the frames before and after each.

Frames are stored singly, and an observation is a stack of them; its arrays may be NumPy's or JAX's."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np

from optimist.data.transition import NEXT, Columns


class Frames(Protocol):
    """A source of the frames of a timeline, in timeline order."""

    @property
    def frame_bytes(self) -> int: ...  # as they are stored
    @property
    def step_bytes(self) -> int: ...  # everything else on disk

    def take(self, indices: np.ndarray) -> np.ndarray: ...

    def decoded(self) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Masks:
    """Which of the discrete actions were allowed in each step; indexing gives booleans, (..., actions)."""

    bits: np.ndarray  # eight actions share a byte
    actions: int

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

    columns: Columns  # all of COLUMNS that the log has, but for lane and time
    actions: int  # the number of discrete actions
    lanes: np.ndarray  # the number of each lane
    lane_starts: np.ndarray  # the first step of each lane
    clock: Callable[[], np.ndarray]  # reads the time of every step; training does not need it
    source: Frames

    @property
    def action(self) -> np.ndarray:
        return self.columns["action"]

    @property
    def reward(self) -> np.ndarray:
        return self.columns["reward"]

    @property
    def terminal(self) -> np.ndarray:
        return self.columns["terminal"]

    @property
    def truncated(self) -> np.ndarray:
        return self.columns["truncated"]

    @property
    def probability(self) -> np.ndarray | None:
        """With which the logging policy chose the action."""
        return self.columns.get("probability")

    @property
    def allowed(self) -> Masks | None:
        """The actions that could be chosen."""
        return self._masks("allowed")

    @property
    def next_allowed(self) -> Masks | None:
        """Those after the last steps of episodes, where they are known."""
        return self._masks(NEXT)

    @property
    def lane_stops(self) -> np.ndarray:
        """The step after the last one of each lane."""
        return np.append(self.lane_starts[1:], len(self))

    def _masks(self, name: str) -> Masks | None:
        return Masks(self.columns[name], self.actions) if name in self.columns else None

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

    def frame_of(self, steps: np.ndarray) -> np.ndarray:
        """The numbers of the frames with which these steps begin; each step ends with the next frame."""
        return steps + self.episode_of(steps)

    def allowed_after(self, steps: np.ndarray) -> np.ndarray:
        """The actions that could be chosen after each of these steps of a log with masks, as bits,
        (..., bytes); no bits after a terminal step, and where they are not known."""
        masks, following = cast(Masks, self.allowed), steps + 1
        starts = self.episode_starts
        beginning = np.searchsorted(starts, following)  # the first episode that does not begin before it
        ended = (following == len(self)) | (starts.take(beginning, mode="clip") == following)
        within = masks.bits.take(following, axis=0, mode="clip")
        at_ends = np.uint8(0) if self.next_allowed is None else self.next_allowed.bits[steps]
        return np.where(ended[..., None], at_ends, within)

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


def stacked(take: Callable[[int], Any], age: Any, stack: int) -> Any:
    """Frames joined on the last axis, oldest first, black before the episode's start. `take(back)` returns
    the frames `back` steps earlier, (..., *frame_shape). The `age` of an observation, (...), is the number of
    earlier frames in its episode; frames from before the episode are ignored."""
    if stack == 1:
        return take(0)
    back = range(stack - 1, -1, -1)
    images = [take(each) for each in back]
    if isinstance(images[0], np.ndarray):
        return _joined(np.stack(images), np.stack([each > age for each in back]))
    for place, each in enumerate(back):  # black unless the frame exists
        image, exists = images[place], each <= age
        exists = exists.reshape(*exists.shape, *(1,) * (image.ndim - exists.ndim))
        images[place] = image * exists.astype(image.dtype)
    first = images[0]
    if len(images) == 4 and first.dtype == np.uint8 and first.shape[-1] == 1:
        # Four grey images: each pixel becomes one 32-bit number, with the oldest image in the lowest byte. On
        # a CPU that is three times as fast as interleaving bytes.
        words = [image[..., 0].astype(np.uint32) << 8 * place for place, image in enumerate(images)]
        pixels = words[0] | words[1] | words[2] | words[3]
        return pixels.view(np.uint8).reshape(*pixels.shape, 4)
    return first.__array_namespace__().concatenate(images, axis=-1)


def _joined(images: np.ndarray, is_black: np.ndarray) -> np.ndarray:
    """Join and blacken NumPy frames; several times as fast as masking and concatenating."""
    images[is_black] = 0
    return np.moveaxis(images, 0, -2).reshape(*images.shape[1:-1], len(images) * images.shape[-1])


def earlier(frame: Any, age: Any, back: int) -> Any:
    """The number of the frame `back` steps earlier, or of the first frame of its episode."""
    return frame - age.clip(max=back)


def decoded_stacks(
    frames_of: Callable[[np.ndarray], np.ndarray], frame: np.ndarray, age: np.ndarray, stack: int
) -> np.ndarray:
    """The observations that end with these frames. `frames_of` decodes frames by their numbers; each frame is
    decoded once."""
    back = range(stack - 1, -1, -1)
    wanted = np.stack([earlier(frame, age, each) for each in back])
    numbers, places = np.unique(wanted, return_inverse=True)
    return _joined(frames_of(numbers)[places.reshape(wanted.shape)], np.stack([each > age for each in back]))
