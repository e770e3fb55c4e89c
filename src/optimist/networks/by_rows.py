"""Square convolutions for CPUs: a quarter to a half of the copies that a product of whole windows needs.

A window of size x size pixels is size/stride rows of blocks of stride x stride pixels. Here a row of the
matrix is only one row of blocks, multiplied with the weights of every place that it has in a window. A window
is then a sum of products, one for each of its rows of blocks.
"""

import jax
import jax.numpy as jnp

from optimist.networks.convolutions import Convolution, blocks_of, margins_of
from optimist.networks.joined import joined_product
from optimist.networks.layers import Layer

LARGE_WINDOW = 256  # numbers; every layer of the Atari network has them, and MinAtar's has 36


def pays(image: tuple[int, ...], convolution: Convolution) -> bool:
    """Whether this form is faster; copies of small windows are cheap."""
    return jax.default_backend() == "cpu" and convolution.size**2 * image[2] >= LARGE_WINDOW


def convolve_by_rows(layer: Layer, image, convolution: Convolution):
    """`convolve`, up to rounding: (H, W, C) -> (H', W', channels)."""
    channels, size, stride, _ = convolution
    (above, below), (left, right) = (margins_of(length, convolution) for length in image.shape[:2])
    height = (image.shape[0] + above + below - size) // stride + 1
    # A row of blocks outside of the image is zero, and so is its product.
    empty_above, empty_below = max(above, 0) // stride, max(below, 0) // stride
    margins = [(above - stride * empty_above, below - stride * empty_below, 0), (left, right, 0), (0, 0, 0)]
    blocks, reach = blocks_of(jax.lax.pad(image, jnp.zeros((), image.dtype), margins), stride), size // stride
    rows, width = blocks.shape[0], blocks.shape[1] - reach + 1
    neighbours = jnp.concatenate([blocks[:, j : j + width] for j in range(reach)], axis=-1)
    kernel = layer.weight.reshape(reach, stride, reach, stride, -1, channels)
    kernel = kernel.transpose(0, 5, 2, 1, 3, 4).reshape(reach * channels, -1)
    products = joined_product(neighbours.reshape(rows * width, -1), kernel).reshape(rows, width, -1)

    def at(place: int):
        """The product of each row of blocks, at the window in which that row has this place."""
        product, before = products[..., place * channels : (place + 1) * channels], empty_above - place
        return jax.lax.pad(
            product, jnp.zeros(()), [(before, height - rows - before, 0), (0, 0, 0), (0, 0, 0)]
        )

    return sum(map(at, range(reach))) + jnp.broadcast_to(layer.bias, (height, width, channels))
