"""Square convolutions for CPUs: a quarter to a half of the copies that a product of whole windows needs.

A window of size x size pixels is size/stride rows of blocks of stride x stride pixels. Here a row of the
matrix is only one row of blocks, multiplied with the weights of every place that it has in a window. A window
is then a sum of products, one for each of its rows of blocks.
"""

import jax
import jax.numpy as jnp

from optimist.networks.convolutions import Convolution, blocks_of, margins_of
from optimist.networks.joined import joined_product
from optimist.networks.layers import Layer, numbers

LARGE_WINDOW = 256  # numbers; every layer of the Atari network has them, and MinAtar's has 36


def pays(image: tuple[int, ...], convolution: Convolution) -> bool:
    """Whether this form is faster; copies of small windows are cheap."""
    return jax.default_backend() == "cpu" and convolution.size**2 * image[2] >= LARGE_WINDOW


def convolve_by_rows(layer: Layer, image, convolution: Convolution):
    """`convolve`, up to rounding: (H, W, C) -> (H', W', channels). The image may be of bytes."""
    channels, size, stride, _ = convolution
    (above, below), (left, right) = (margins_of(length, convolution) for length in image.shape[:2])
    height = (image.shape[0] + above + below - size) // stride + 1
    # A row of blocks outside of the image is zero, and so is its product.
    empty_above, empty_below = max(above, 0) // stride, max(below, 0) // stride
    margins = [(above - stride * empty_above, below - stride * empty_below, 0), (left, right, 0), (0, 0, 0)]
    image = jax.lax.pad(image, jnp.zeros((), image.dtype), margins)
    rows, kernel = (_of_bytes if image.dtype == jnp.uint8 else _of_numbers)(image, layer.weight, size, stride)
    high, width, _ = rows.shape
    products = joined_product(rows.reshape(high * width, -1), kernel).reshape(high, width, -1)

    def at(place: int):
        """The product of each row of blocks, at the window in which that row has this place."""
        product, before = products[..., place * channels : (place + 1) * channels], empty_above - place
        return jax.lax.pad(
            product, jnp.zeros(()), [(before, height - high - before, 0), (0, 0, 0), (0, 0, 0)]
        )

    return sum(map(at, range(size // stride))) + jnp.broadcast_to(layer.bias, (height, width, channels))


def _of_bytes(image, weight, size: int, stride: int):
    """Rows of blocks and their weights. A line of a row is copied in one piece, as bytes, which have no
    gradient."""
    height, width, inputs = image.shape
    lines, step = image.reshape(height // stride, stride, width * inputs), stride * inputs
    starts = range(0, (width - size + 1) * inputs, step)
    rows = jnp.concatenate([lines[:, None, :, start : start + size * inputs] for start in starts], axis=1)
    kernel = weight.reshape(size // stride, stride * size * inputs, -1).transpose(0, 2, 1)
    return numbers(rows).reshape(*rows.shape[:2], -1), kernel.reshape(-1, stride * size * inputs)


def _of_numbers(image, weight, size: int, stride: int):
    """Rows of blocks and their weights. Blocks are copied whole: the gradient of an image is then a sum of
    size/stride arrays, not of one for each window."""
    blocks, reach = blocks_of(image, stride), size // stride
    width, inputs, channels = blocks.shape[1] - reach + 1, image.shape[2], weight.shape[-1]
    rows = jnp.concatenate([blocks[:, j : j + width] for j in range(reach)], axis=-1)
    kernel = weight.reshape(reach, stride, reach, stride, inputs, channels).transpose(0, 5, 2, 1, 3, 4)
    return rows, kernel.reshape(reach * channels, -1)
