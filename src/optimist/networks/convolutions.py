"""Square convolutions as matrix products.

`convolve` multiplies all windows at once: the form for every platform and size. `convolve_by_rows` is faster
on a CPU where `rows_pay`: it needs a quarter to a half of the copies. `implicit` is faster for bf16 on a GPU.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from optimist.networks.layers import Layer, numbers

LARGE_WINDOW = 256  # numbers; every layer of the Atari network has them, and MinAtar's has 36
JOINED_PRODUCT = "joined_product"


class Convolution(NamedTuple):
    """A square convolution; `size` is a multiple of `stride`."""

    channels: int
    size: int
    stride: int = 1
    padding: str = "SAME"


def convolve(layer: Layer, image, convolution: Convolution):
    """(H, W, C) -> (H', W', channels), as one matrix product.

    Moving each stride x stride block into the channels turns a strided convolution into one of stride 1 with
    a kernel of size/stride. The numbers are the same, and the shape is fast on GPUs and on CPUs, whose
    convolutions inside a scan are 15 times slower.
    """
    size, stride = convolution.size, convolution.stride
    margins = [(*margins_of(length, convolution), 0) for length in image.shape[:2]]
    image = jax.lax.pad(image, jnp.zeros((), image.dtype), [*margins, (0, 0, 0)])  # a negative margin crops
    blocks, reach = blocks_of(image, stride), size // stride
    height, width = blocks.shape[0] - reach + 1, blocks.shape[1] - reach + 1
    windows = [blocks[i : i + height, j : j + width] for i in range(reach) for j in range(reach)]
    kernel = layer.weight.reshape(reach, stride, reach, stride, -1, convolution.channels)
    kernel = kernel.transpose(0, 2, 1, 3, 4, 5).reshape(-1, convolution.channels)
    return jnp.concatenate(windows, axis=-1) @ kernel + jnp.broadcast_to(
        layer.bias, (height, width, layer.bias.size)
    )


def margins_of(length: int, convolution: Convolution) -> tuple[int, int]:
    """How many zeros to add before and after so that whole blocks remain; negative: rows to remove."""
    _, size, stride, padding = convolution
    if padding == "VALID":
        windows, before = (length - size) // stride + 1, 0
    else:
        windows = -(-length // stride)
        before = max((windows - 1) * stride + size - length, 0) // 2
    return before, (windows - 1) * stride + size - length - before


def blocks_of(image, stride: int):
    """(H, W, C) -> (H/s, W/s, s*s*C)."""
    height, width, channels = image.shape
    split = image.reshape(height // stride, stride, width // stride, stride, channels)
    return split.transpose(0, 2, 1, 3, 4).reshape(height // stride, width // stride, -1)


def rows_pay(image: tuple[int, ...], convolution: Convolution) -> bool:
    """Whether `convolve_by_rows` is faster; copies of small windows are cheap."""
    return jax.default_backend() == "cpu" and convolution.size**2 * image[2] >= LARGE_WINDOW


def convolve_by_rows(layer: Layer, image, convolution: Convolution):
    """`convolve`, up to rounding: (H, W, C) -> (H', W', channels). The image may be of bytes.

    A window of size x size pixels is size/stride rows of blocks of stride x stride pixels. Here a row of the
    matrix is only one row of blocks, multiplied with the weights of every place that it has in a window. A
    window is then a sum of products, one for each of its rows of blocks.
    """
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


def joined_product(rows, weight):
    """rows @ weight.T, (R, I) and (O, I) -> (R, O); the rows of all images of a minibatch are one matrix.

    `vmap` of an ordinary product keeps the axis of images apart, and the gradient of shared weights is then
    a sum over two axes, images and rows. Before such a sum XLA's CPU compiler copies a transposed matrix;
    before a sum over one axis it does not. So this product has its own rule for `vmap`, which joins the two.
    """
    return _joined.bind(rows, weight)


def _product(rows, weight):
    return rows @ weight.T


def _product_of_batch(arguments, axes):
    rows, weight = arguments
    if axes[1] is not None:  # weights that are not shared
        return jax.vmap(_product, axes)(rows, weight), 0
    rows = jnp.moveaxis(rows, axes[0], 0)
    products = joined_product(rows.reshape(-1, rows.shape[-1]), weight)
    return products.reshape(*rows.shape[:-1], -1), 0


# A primitive, because a function with `custom_vmap` has no gradient outside of `vmap`.
_joined = Primitive(JOINED_PRODUCT)
_joined.def_impl(jax.jit(_product))
_joined.def_abstract_eval(
    lambda rows, weight: jax.core.ShapedArray((rows.shape[0], weight.shape[0]), rows.dtype)
)
mlir.register_lowering(_joined, mlir.lower_fun(_product, multiple_results=False))
batching.primitive_batchers[_joined] = _product_of_batch
ad.defbilinear(
    _joined,
    lambda gradient, rows, weight: gradient @ weight,
    lambda gradient, rows, weight: gradient.T @ rows,
)
