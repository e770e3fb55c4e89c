"""Observations of a user's log: their type, and the layout of images."""

from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optimist.data.checking import EXACT, SMALLER, check_finite, refuse_rounded
from optimist.errors import DataError, in_one_line, log

FEW_CHANNELS, LARGE_SIDE = 4, 8  # an axis of up to 4 beside one of at least 8: the first is the channels


class Layout(NamedTuple):
    """How the images of a log lie in its arrays."""

    channels_first: bool = False  # (n, c, h, w)
    adds_channel: bool = False  # (n, h, w)

    @classmethod
    def of(cls, observations: ArrayLike, channels: str | None) -> "Layout":
        """The layout of observations; DataError where it would be a guess."""
        array = np.asarray(observations)
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


def checked_observations(
    name: str, values: ArrayLike, layout: Layout, like: np.ndarray | None = None
) -> np.ndarray:
    """The frames, (n, ...) uint8, bool or float32, with the channels of images last."""
    array = np.asarray(values)
    if array.dtype.kind == "O" and array.ndim > 1 and array.size:
        array = _numbers(name, array)
    if array.dtype.kind in "iu" and array.dtype != np.uint8:
        array = _exact(name, array)
    if array.dtype.kind == "f":
        check_finite(name, array)
        refuse_rounded(name, array, first=0)
        array = array.astype(np.float32)
    if array.dtype not in (np.uint8, np.bool_, np.float32):
        raise DataError(f"{name} have type {array.dtype}: give uint8, bool or other numbers")
    if array.ndim < 2 or not array.size:
        raise DataError(f"{name} have shape {array.shape}: give (steps, ...) with at least one number each")
    if layout.adds_channel and array.ndim == 3:
        array = array[..., None]
    if layout.channels_first and array.ndim == 4:
        array = np.moveaxis(array, 1, -1)
    if like is not None and (array.shape, array.dtype) != (like.shape, like.dtype):
        raise DataError(
            f"{name} are {array.shape} {array.dtype}, observations {like.shape} {like.dtype}: make them alike"
        )
    return array


def _numbers(name: str, array: np.ndarray) -> np.ndarray:
    """Objects as numbers: a data frame whose columns have several types, as floats and flags, is an array
    of objects. Texts are refused, although NumPy would read them as numbers."""
    flat = array.reshape(-1)
    wrong = [not issubclass(kind, (Real, np.bool_)) for kind in map(type, flat)]
    if any(wrong):
        first = wrong.index(True)
        found, row = in_one_line(flat[first], 20), first // (array.size // len(array))
        raise DataError(
            f"{name} hold {found} in row {row}, which is no number: make columns of 0 and 1 of categories "
            "(pandas.get_dummies), and fill what is missing"
        )
    return array.astype(np.float64)


def _exact(name: str, array: np.ndarray) -> np.ndarray:
    """Whole numbers in a stored type, without a change of value: pixels as uint8, others as float32."""
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    is_image = array.ndim > 2
    if is_image and low >= 0 and high <= 255:
        kind = "uint8"
    elif max(-low, high) <= EXACT:
        kind = "float32"
    else:
        row = int((np.abs(array.astype(np.float64)) > EXACT).reshape(len(array), -1).any(axis=1).argmax())
        raise DataError(f"{name} hold whole numbers that float32 cannot hold (first in row {row}): {SMALLER}")
    if name == "observations":
        log.warning("observations of type %s are stored as %s; every value is kept", array.dtype, kind)
    return array.astype(kind)
