"""The spaces in a Minari dataset's metadata, and the arrays that they describe.

They are read without gymnasium. A composite observation becomes one vector, in the order of
`gymnasium.spaces.flatten`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from optimist.data.disk.records import json_value
from optimist.data.formats._bytes import pixels
from optimist.data.formats._hdf5 import Group
from optimist.data.rules.actions import check_count
from optimist.data.rules.log import Actions
from optimist.errors import DataError, in_one_line

DATA, METADATA = "main_data.hdf5", "metadata.json"  # the files of a dataset
# The allowed actions, also of the final state: among the infos, as in Gymnasium, or a part of the
# observations, as in PettingZoo.
MASK = "action_mask"
SMALLEST_IMAGE = 32  # pixels; Minari encodes images as JPEG from this size on
LARGEST = 2**24  # numbers of one observation; metadata of a few bytes can claim any


@dataclass(frozen=True)
class Space:
    """One space: a Box, Discrete, MultiDiscrete or MultiBinary, or a composition of named spaces."""

    kind: str
    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()  # of a Discrete or MultiDiscrete
    starts: tuple[int, ...] = ()
    parts: tuple[tuple[str, "Space"], ...] = ()  # (name in the file, space)

    @property
    def is_image(self) -> bool:
        """Whether the arrays stay frames; every other observation becomes a vector."""
        return self.kind == "Box" and self.dtype in ("uint8", "bool") and len(self.shape) in (2, 3)

    @property
    def may_be_jpeg(self) -> bool:
        """Minari's own rule."""
        large = self.is_image and min(self.shape[:2]) >= SMALLEST_IMAGE
        full = large and set(self.low) == {0} and set(self.high) == {255}
        return full and self.dtype == "uint8"

    @property
    def vector_type(self) -> str:
        """The type of a flat vector, as the environments of gym/ record it: flags, unless it has numbers."""
        numbers = any(leaf.kind == "Box" and leaf.dtype != "bool" for leaf in self.leaves())
        return "float32" if numbers else "bool"

    def leaves(self) -> list["Space"]:
        return [leaf for _, part in self.parts for leaf in part.leaves()] if self.parts else [self]


def parsed(text: Any, what: str, file: Path) -> Space:
    """A space from its JSON text."""
    try:
        return _space(json_value(text) if isinstance(text, str) else text)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as problem:
        reason = in_one_line(problem)
        raise DataError(f"the {what} in {file} is not readable ({reason}); fetch the dataset again") from None


def _space(record: dict) -> Space:
    kind = str(record["type"])
    if kind == "Dict":  # in the order of the environment's space, in which gymnasium flattens it
        return Space(kind, parts=tuple((name, _space(part)) for name, part in record["subspaces"].items()))
    if kind == "Tuple":
        parts = enumerate(record["subspaces"])
        return Space(kind, parts=tuple((f"_index_{number}", _space(part)) for number, part in parts))
    if kind == "Box":
        shape = _sizes(record["shape"], prod)
        low, high = (_bounds(record[name], shape) for name in ("low", "high"))
        return Space(kind, shape, str(np.dtype(record["dtype"])), low, high)
    if kind == "Discrete":
        return Space(kind, (), "int64", counts=_sizes(record["n"], sum), starts=_starts(record["start"], 1))
    if kind == "MultiDiscrete":
        counts = _sizes(record["nvec"], sum)
        starts = _starts(record.get("start", 0), len(counts))
        return Space(kind, (len(counts),), str(np.dtype(record["dtype"])), counts=counts, starts=starts)
    if kind == "MultiBinary":
        return Space(kind, _sizes(record["n"], prod), "int8")
    raise DataError(f"{kind} spaces are not supported: supported are Box, Discrete, MultiDiscrete, "
                    "MultiBinary, Dict and Tuple")  # fmt: skip


def _sizes(value: Any, together: Callable[[tuple[int, ...]], int]) -> tuple[int, ...]:
    """Sizes that are together at most the largest that is read."""
    sizes = tuple(int(size) for size in np.ravel(value))
    if min(sizes, default=0) < 0 or together(sizes) > LARGEST:
        raise ValueError(f"sizes of {in_one_line(sizes)}, and at most {LARGEST:,} numbers are read")
    return sizes


def _starts(value: Any, count: int) -> tuple[int, ...]:
    return tuple(np.broadcast_to(np.ravel(np.asarray(value, np.int64)), (count,)).tolist())


def _bounds(value: Any, shape: tuple[int, ...]) -> tuple[float, ...]:
    """The bounds of every number, or one bound if all are equal (those of an image are many)."""
    flat = np.broadcast_to(np.asarray(value, float), shape).ravel()
    return (float(flat[0]),) if len(flat) and (flat == flat[0]).all() else tuple(flat.tolist())


Reader = Callable[[int, int], np.ndarray]


def observations_of(space: Space, group: Group, name: str, jpeg: bool) -> Reader:
    """A function that reads rows of an episode's observations, as frames or vectors."""
    if space.is_image:
        return _images(space, group.array(name, of="files"), f"{group.place}/{name}", jpeg)
    if not space.parts:
        return _vectors(space, group.array(name), f"{group.place}/{name}")
    inner = group.group(name)
    readers = []
    for key, part in space.parts:
        if part.is_image and part.dtype == "uint8":
            raise DataError(
                f'{inner.place} has an image "{key}" beside other observations; leave it out: --drop {key}'
            )
        if part.parts:
            readers.append(observations_of(part, inner, key, jpeg=False))
        else:
            readers.append(_vectors(part, inner.array(key), f"{inner.place}/{key}"))

    def read(start: int, stop: int) -> np.ndarray:
        columns = [reader(start, stop) for reader in readers]
        return np.concatenate([column.astype(space.vector_type) for column in columns], axis=1)

    return read


def _vectors(space: Space, array: Any, place: str) -> Reader:
    if prod(array.shape[1:]) != (len(space.counts) or prod(space.shape)):
        raise DataError(f"{place} has rows of shape {array.shape[1:]}, not of its space; correct the dataset")

    def read(start: int, stop: int) -> np.ndarray:
        values = array[start:stop]
        flat = values.reshape(len(values), -1)
        if not space.counts:
            return flat if flat.dtype.kind in "fi" and space.kind == "Box" else flat.astype(space.vector_type)
        digits = flat.astype(np.int64) - np.array(space.starts)
        if ((digits < 0) | (digits >= np.array(space.counts))).any():
            raise DataError(f"{place} holds values outside its {space.kind} space; correct the dataset")
        hot = np.zeros((len(digits), sum(space.counts)), bool)
        first = np.cumsum((0, *space.counts[:-1]))
        np.put_along_axis(hot, digits + first, values=True, axis=1)
        return hot

    return read


def _images(space: Space, array: Any, place: str, jpeg: bool) -> Reader:
    if array.shape[1:] == space.shape:
        return lambda start, stop: array[start:stop]
    if array.ndim > 2:
        raise DataError(
            f"{place} has images of shape {array.shape[1:]}, not of its space; correct the dataset"
        )
    if not jpeg:
        raise DataError(
            f"{place} holds JPEG images, which differ from the recorded ones by up to 40 grey levels: "
            "make the dataset again with jpeg_encoding=False, or accept the loss with --jpeg yes"
        )

    def read(start: int, stop: int) -> np.ndarray:
        frames = np.empty((min(stop, len(array)) - start, *space.shape), np.uint8)
        for number, row in enumerate(array[start:stop]):
            picture = pixels(np.asarray(row).tobytes(), place, jpeg=True, like=space.shape)
            if picture.size != prod(space.shape) or picture.dtype != np.uint8:
                raise DataError(f"{place} holds an image of shape {picture.shape}; fetch the dataset again")
            frames[number] = picture.reshape(space.shape)
        return frames

    return read


def actions_of(space: Space, file: Path) -> Actions | None:
    """The number or the bounds of the actions; None if they are unbounded: the data's bounds count then."""
    if space.kind == "Discrete":
        count, start = space.counts[0], space.starts[0]
        check_count(count)
        return Actions(count, tuple(range(start, start + count)) if start else ())
    if space.kind != "Box" or np.dtype(space.dtype).kind != "f":
        raise DataError(
            f"{file} has {space.kind} actions of {space.dtype}: supported are Discrete ones and float Boxes"
        )
    low, high = (np.broadcast_to(bound, (prod(space.shape),)) for bound in (space.low, space.high))
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return None
    return Actions(low=tuple(low.tolist()), high=tuple(high.tolist()))
