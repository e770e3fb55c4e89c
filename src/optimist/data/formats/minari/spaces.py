"""The spaces in a Minari dataset's metadata, and the arrays that they describe.

They are read without gymnasium. A composite observation becomes one vector, in the order of
`gymnasium.spaces.flatten`.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from optimist.data.array_actions import Actions
from optimist.data.disk.records import json_value
from optimist.data.formats._hdf5 import dataset
from optimist.errors import DataError, in_one_line

SMALLEST_IMAGE = 32  # pixels; Minari encodes images as JPEG from this size on


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
        shape = tuple(int(size) for size in record["shape"])
        low, high = (_bounds(record[name], shape) for name in ("low", "high"))
        return Space(kind, shape, str(record["dtype"]), low, high)
    if kind == "Discrete":
        return Space(kind, (), "int64", counts=(int(record["n"]),), starts=(int(record["start"]),))
    if kind == "MultiDiscrete":
        counts = tuple(int(n) for n in np.ravel(record["nvec"]))
        starts = tuple(int(n) for n in np.ravel(record.get("start", np.zeros(len(counts), int))))
        return Space(kind, (len(counts),), str(record["dtype"]), counts=counts, starts=starts)
    if kind == "MultiBinary":
        return Space(kind, tuple(int(size) for size in np.ravel(record["n"])), "int8")
    raise DataError(f"{kind} spaces are not supported: supported are Box, Discrete, MultiDiscrete, "
                    "MultiBinary, Dict and Tuple")  # fmt: skip


def _bounds(value: Any, shape: tuple[int, ...]) -> tuple[float, ...]:
    """The bounds of every number, or one bound if all are equal (those of an image are many)."""
    flat = np.broadcast_to(np.asarray(value, float), shape).ravel()
    return (float(flat[0]),) if len(flat) and (flat == flat[0]).all() else tuple(flat.tolist())


Reader = Callable[[int, int], np.ndarray]


def observations_of(space: Space, group: Any, name: str, file: Path, jpeg: bool) -> Reader:
    """A function that reads rows of an episode's observations, as frames or vectors."""
    if space.is_image:
        return _images(space, dataset(group, name, file), file, jpeg)
    if not space.parts:
        return _vectors(space, dataset(group, name, file))
    inner = group.get(name)
    if inner is None or not hasattr(inner, "keys"):
        raise DataError(f'{file} lacks the group "{name}" in {group.name}; fetch the dataset again')
    readers = [_part(part, inner, key, file) for key, part in space.parts]

    def read(start: int, stop: int) -> np.ndarray:
        columns = [reader(start, stop) for reader in readers]
        return np.concatenate([column.astype(space.vector_type) for column in columns], axis=1)

    return read


def _part(space: Space, group: Any, name: str, file: Path) -> Reader:
    if space.is_image and space.dtype == "uint8":
        raise DataError(
            f'{file} has an image "{name}" beside other observations; leave it out: --drop {name}'
        )
    return _vectors(space, dataset(group, name, file)) if not space.parts else observations_of(
        space, group, name, file, jpeg=False
    )  # fmt: skip


def _vectors(space: Space, array: Any) -> Reader:
    def read(start: int, stop: int) -> np.ndarray:
        values = array[start:stop]
        flat = values.reshape(len(values), -1)
        if not space.counts:
            return flat if flat.dtype.kind in "fi" and space.kind == "Box" else flat.astype(space.vector_type)
        digits = flat.astype(np.int64) - np.array(space.starts)
        if ((digits < 0) | (digits >= np.array(space.counts))).any():
            raise DataError(f"{array.name} holds values outside its {space.kind} space; correct the dataset")
        chosen = enumerate(space.counts)
        return np.concatenate(
            [np.eye(count, dtype=bool)[digits[:, place]] for place, count in chosen], axis=1
        )

    return read


def _images(space: Space, array: Any, file: Path, jpeg: bool) -> Reader:
    if array.shape[1:] == space.shape:
        return lambda start, stop: array[start:stop]
    if not jpeg:
        raise DataError(
            f"{file} holds JPEG images, which differ from the recorded ones by up to 40 grey levels: "
            "make the dataset again with jpeg_encoding=False, or accept the loss with --jpeg yes"
        )

    def read(start: int, stop: int) -> np.ndarray:
        from PIL import Image

        images = [np.asarray(Image.open(io.BytesIO(np.asarray(row).tobytes()))) for row in array[start:stop]]
        return np.stack(images).reshape(len(images), *space.shape)

    return read


def actions_of(space: Space, file: Path) -> Actions | None:
    """The number or the bounds of the actions; None if they are unbounded: the data's bounds count then."""
    nothing = np.empty(0)
    if space.kind == "Discrete":
        count, start = space.counts[0], space.starts[0]
        return Actions(nothing, count, tuple(range(start, start + count)) if start else ())
    if space.kind != "Box" or np.dtype(space.dtype).kind != "f":
        raise DataError(
            f"{file} has {space.kind} actions of {space.dtype}: supported are Discrete ones and float Boxes"
        )
    low, high = (np.broadcast_to(bound, (prod(space.shape),)) for bound in (space.low, space.high))
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return None
    return Actions(nothing, low=tuple(low.tolist()), high=tuple(high.tolist()))
