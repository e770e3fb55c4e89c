"""Observations of a log: the type in which they are stored, and the layout of images."""

from typing import NamedTuple

import numpy as np

from optimist.data.rules.checks import EXACT, SMALLER, refuse_rounded
from optimist.errors import DataError

FEW_CHANNELS, LARGE_SIDE = 4, 8  # an axis of up to 4 beside one of at least 8: the first is the channels


class Layout(NamedTuple):
    """How the images of a log lie in its arrays."""

    channels_first: bool = False  # (n, c, h, w)
    adds_channel: bool = False  # (n, h, w)

    @classmethod
    def of(cls, array: np.ndarray, channels: str | None) -> "Layout":
        """The layout of these observations; DataError where it would be a guess."""
        if channels not in (None, "first", "last"):
            raise DataError(
                f'channels="{channels}": give "first" for (n, c, h, w) or "last" for (n, h, w, c)'
            )
        if array.ndim == 3:
            if array.dtype.kind == "f" and channels is None:
                raise DataError(
                    f"observations have shape {array.shape} and type {array.dtype}: give "
                    'channels="last" if they are images of one channel, (steps, numbers) if they are vectors'
                )
            return cls(adds_channel=True)
        if array.ndim != 4:
            if channels is not None:
                raise DataError(
                    f"observations have shape {array.shape}: channels= is for images, (n, h, w, c)"
                )
            return cls()
        if channels is None:
            channels = _plain_layout(array.shape)
        return cls(channels_first=channels == "first")


def _plain_layout(shape: tuple[int, ...]) -> str:
    """ "first" or "last" if the shape allows only one of them."""
    first, last = shape[1], shape[3]
    if first <= FEW_CHANNELS and last >= LARGE_SIDE:
        return "first"
    if last <= FEW_CHANNELS and first >= LARGE_SIDE:
        return "last"
    raise DataError(
        f'images of shape {shape}: give channels="first" if they are (n, c, h, w), channels="last" if they '
        "are (n, h, w, c)"
    )


def stored_type(first: np.ndarray) -> np.dtype:
    """The type in which observations like these first ones are stored."""
    if first.dtype in (np.uint8, np.bool_):
        return first.dtype
    if first.dtype.kind in "iu" and first.ndim > 2 and first.min() >= 0 and first.max() <= 255:
        return np.dtype(np.uint8)  # pixels of a wider type
    if first.dtype.kind not in "fiu":
        raise DataError(f"observations have type {first.dtype}: give uint8, bool or other numbers")
    return np.dtype(np.float32)


def stored(name: str, values: np.ndarray, layout: Layout, dtype: np.dtype, first: int) -> np.ndarray:
    """Rows of observations as they are stored, with the channels of images last; `first` is the number of
    row 0. DataError where a number would be rounded."""
    if values.dtype.kind in "iu":
        values = exact(name, values, first, str(dtype))
    if values.dtype.kind == "f":
        refuse_rounded(name, values, first)
    if values.ndim == 1:
        values = values[:, None]
    if layout.adds_channel and values.ndim == 3:
        values = values[..., None]
    if layout.channels_first and values.ndim == 4:
        values = np.moveaxis(values, 1, -1)
    if dtype.kind != "f" or values.dtype.kind not in "fb":
        return values
    with np.errstate(over="ignore"):  # what is too large is infinite, and refused
        return values.astype(dtype, copy=False)


def exact(name: str, array: np.ndarray, first: int, dtype: str = "float32") -> np.ndarray:
    """Whole numbers in a type that is stored; a DataError names the first row with one that does not fit."""
    if array.dtype == dtype:
        return array
    low, high = (0, 255) if dtype == "uint8" else (-EXACT, EXACT)
    if array.size and not (array.min() >= low and array.max() <= high):
        row = int(((array < low) | (array > high)).reshape(len(array), -1).any(axis=1).argmax()) + first
        raise DataError(
            f"{name} hold whole numbers outside {low:,} to {high:,} (first in row {row}), which "
            f"{dtype} cannot hold: {SMALLER}"
        )
    return array.astype(dtype)
