"""Gymnasium's observation spaces as frames: images stay images, every other space becomes a flat vector."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optimist.errors import UsageError, in_one_line

SUPPORTED = "supported are Box, Discrete, MultiDiscrete, MultiBinary, and Dict or Tuple of these"
IMAGE_RANKS = (2, 3)
LONGEST = 300  # letters of a space in a description
MASK = "action_mask"  # in the infos, as in Gymnasium, or in a Dict observation, as in PettingZoo


@dataclass(frozen=True)
class Encoding:
    """How one observation becomes a frame; `encoding(observation)` is the frame."""

    space: Any
    frame_shape: tuple[int, ...]
    frame_dtype: str
    flatten: Any  # gymnasium's function; None: the space is a Box, which only changes its shape and type
    part: str = ""  # of a Dict observation, if the frame is made of this part alone

    def __call__(self, observation: Any) -> np.ndarray:
        if self.part:
            observation = observation[self.part]
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


class MaskReader:
    """Reads the masks of one environment. Its first observation tells whether it has masks; where one is
    missing later, every action can be chosen."""

    def __init__(self, actions: int, owner: str):
        self._actions, self._owner = actions, owner
        self._masked: bool | None = None

    def __call__(self, observation: Any, info: Any) -> np.ndarray | None:
        """The actions that can be chosen after this observation, (actions,); None without masks."""
        inside = isinstance(observation, dict) and MASK in observation
        given = observation[MASK] if inside else info.get(MASK)
        if not self._actions:  # action vectors have no mask
            return None
        if self._masked is None:
            self._masked = given is not None
        if given is None:
            return np.ones(self._actions, bool) if self._masked else None
        if not self._masked or np.shape(given) != (self._actions,):
            late = "" if self._masked else ", and none at its first reset"
            raise UsageError(
                f"{self._owner} gives an {MASK} of {np.shape(given)} for {self._actions} actions{late}: "
                "wrap the environment to correct it"
            )
        return np.asarray(given).astype(bool)


def encoding_of(gymnasium: Any, space: Any, owner: str, actions: Any) -> Encoding:
    """The encoding of a space; UsageError, which begins with the `owner`, for a space that is no frame.
    A mask of discrete `actions` inside it is no part of the frame."""
    spaces = gymnasium.spaces
    if _has_mask(spaces, space, actions):
        rest = {name: part for name, part in space.items() if name != MASK}
        if len(rest) != 1:
            return encoding_of(gymnasium, spaces.Dict(rest), owner, actions)
        ((part, inside),) = rest.items()
        return replace(encoding_of(gymnasium, inside, owner, None), part=part)
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


def _has_mask(spaces: Any, space: Any, actions: Any) -> bool:
    """Is a part of this space a mask of the actions? Something else has to be there too."""
    if not (isinstance(space, spaces.Dict) and isinstance(actions, spaces.Discrete) and len(space) > 1):
        return False
    return MASK in space.spaces and space[MASK].shape == (actions.n,)


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
