"""Frame stacking: frames are stored singly, and an observation joins several of them.

The arrays may be NumPy's or JAX's."""

from collections.abc import Callable
from typing import Any

import numpy as np


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
    return _side_by_side(
        [_black_unless(each <= age, image) for each, image in zip(back, images, strict=True)]
    )


def _joined(images: np.ndarray, is_black: np.ndarray) -> np.ndarray:
    """Join and blacken NumPy frames; several times as fast as masking and concatenating."""
    images[is_black] = 0
    return np.moveaxis(images, 0, -2).reshape(*images.shape[1:-1], len(images) * images.shape[-1])


def _black_unless(exists: Any, image: Any) -> Any:
    return image * exists.reshape(*exists.shape, *(1,) * (image.ndim - exists.ndim)).astype(image.dtype)


def _side_by_side(images: list[Any]) -> Any:
    """Images joined on their last axis. For four grey images each pixel becomes one 32-bit number, with the
    oldest image in the lowest byte: on a CPU that is three times as fast as interleaving bytes."""
    first = images[0]
    if len(images) == 4 and first.dtype == np.uint8 and first.shape[-1] == 1:
        words = [image[..., 0].astype(np.uint32) << 8 * place for place, image in enumerate(images)]
        pixels = words[0] | words[1] | words[2] | words[3]
        return pixels.view(np.uint8).reshape(*pixels.shape, 4)
    return first.__array_namespace__().concatenate(images, axis=-1)


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
