"""Gymnasium's observation spaces as frames: images stay images, every other space becomes a flat vector."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimist.errors import UsageError, in_one_line

SUPPORTED = "supported are Box, Discrete, MultiDiscrete, MultiBinary, and Dict or Tuple of these"
IMAGE_RANKS = (2, 3)
LONGEST = 300  # letters of a space in a description


@dataclass(frozen=True)
class Encoding:
    """How one observation becomes a frame; `encoding(observation)` is the frame."""

    space: Any
    frame_shape: tuple[int, ...]
    frame_dtype: str
    flatten: Any  # gymnasium's function; None: the space is a Box, which only changes its shape and type

    def __call__(self, observation: Any) -> np.ndarray:
        if self.flatten is not None:
            observation = self.flatten(self.space, observation)
        return np.asarray(observation, self.frame_dtype).reshape(self.frame_shape)

    @property
    def words(self) -> str:
        """The encoding in words, for a dataset's provenance; "" for a Box."""
        if self.flatten is None:
            return ""
        what = in_one_line(self.space, LONGEST)
        return f"one-hot vectors of {what}" if self.frame_dtype == "bool" else f"flat vectors of {what}"


def encoding_of(gymnasium: Any, space: Any, owner: str) -> Encoding:
    """The encoding of a space; UsageError, which begins with the `owner`, for a space that is no frame."""
    spaces = gymnasium.spaces
    if isinstance(space, spaces.Box):
        return Encoding(space, *_frame_of_box(space), flatten=None)
    parts = list(_parts(spaces, space))
    for part in parts:
        if not isinstance(part, (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)):
            raise UsageError(f"{owner} has {type(part).__name__} observations: {SUPPORTED}")
        if isinstance(part, spaces.Box) and part.dtype == np.uint8 and len(part.shape) in IMAGE_RANKS:
            raise UsageError(
                f"{owner} has an image inside its {type(space).__name__} observations: wrap the environment "
                "so that it shows the image alone, or leaves it out (gymnasium.wrappers.FilterObservation)"
            )
    size = int(spaces.flatdim(space))
    numbers = any(isinstance(part, spaces.Box) and part.dtype != np.bool_ for part in parts)
    return Encoding(space, (size,), "float32" if numbers else "bool", flatten=spaces.flatten)


def _frame_of_box(space: Any) -> tuple[tuple[int, ...], str]:
    """Shape and type of one recorded frame."""
    rank, kind = len(space.shape), space.dtype.name
    if kind in ("uint8", "bool") and rank in IMAGE_RANKS:
        return (*space.shape, 1)[:3], kind
    size = int(np.prod(space.shape, dtype=int))
    return (size,), "bool" if kind == "bool" else "float32"


def _parts(spaces: Any, space: Any) -> Iterator[Any]:
    """The spaces inside a Dict or Tuple, however deep; any other space is its own part."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        inside = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        for part in inside:
            yield from _parts(spaces, part)
    else:
        yield space
