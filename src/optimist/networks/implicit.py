"""Convolutions on a GPU that read every window from the image without a copy, for products in bf16.

`convolve` copies all windows before its matrix product: about a megabyte for an Atari image, which the
product then reads. Here a program takes some windows of one image, reads a part of each, and multiplies it
with the weights of that part. The factors are bf16 and the sums float32. Bias, ReLU, padding and the scale of
bytes belong to the same program, so a layer is one kernel, and its gradient two.

Arrays are flat inside a kernel. A window is `size` lines of size * C neighbouring numbers.
"""

from functools import partial
from math import gcd
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

from optimist.networks.convolutions import Convolution, margins_of
from optimist.networks.layers import Layer
from optimist.networks.precision import interpreted, is_side, kernel_call, pallas

BYTE = 1 / 255  # images of bytes are read as they are; the sum is scaled
PART = 64  # numbers of a window, or windows, in one product
PROGRAMS = 256  # programs that share the sum of a weight's gradient: enough for the whole GPU


class Shape(NamedTuple):
    """The sizes of one layer, all known before it is compiled."""

    height: int  # of the image
    width: int
    channels: int
    rows: int  # of windows
    columns: int
    outputs: int
    size: int
    stride: int
    above: int  # zeros before the first line
    left: int

    @classmethod
    def of(cls, image: tuple[int, ...], convolution: Convolution) -> "Shape":
        (height, width, channels), (outputs, size, stride, _) = image, convolution
        above, left = (margins_of(length, convolution) for length in (height, width))
        rows, columns = (height + sum(above) - size) // stride + 1, (width + sum(left) - size) // stride + 1
        return cls(height, width, channels, rows, columns, outputs, size, stride, above[0], left[0])

    @property
    def windows(self) -> int:
        return self.rows * self.columns

    @property
    def window(self) -> int:
        """The numbers of a window."""
        return self.size**2 * self.channels

    @property
    def block(self) -> int:
        """The numbers of stride x stride pixels."""
        return self.stride**2 * self.channels


def serves(image: tuple[int, ...], convolutions: tuple[Convolution, ...]) -> bool:
    """Whether the matrix units can take every layer: windows of whole parts, and powers of two."""
    for convolution in convolutions:
        shape = Shape.of(image, convolution)
        if shape.window % PART or not all(is_side(number) for number in (shape.block, shape.outputs)):
            return False
        image = (shape.rows, shape.columns, shape.outputs)
    return bool(convolutions)


def convolved(layer: Layer, image, convolution: Convolution):
    """relu(convolution of the image), (H, W, C) -> (H', W', channels) in bf16. The image is bytes or bf16."""

    @custom_vmap
    def of_one(layer, image):
        return _of_many(layer, image[None], convolution)[0]

    @of_one.def_vmap
    def of_batch(_, batched, layer, image):
        # One program for all images, if they share the weights: their gradients are then summed inside it.
        if not any(batched[0]):
            return _of_many(layer, image, convolution), True
        axes = (Layer(*(0 if each else None for each in batched[0])), 0 if batched[1] else None)
        one = partial(_of_many, convolution=convolution)
        return jax.vmap(lambda layer, image: one(layer, image[None])[0], axes)(layer, image), True

    return of_one(layer, image)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _of_many(layer: Layer, images, convolution: Convolution):
    return _outputs(layer, images, convolution)


def _outputs_and_kept(layer: Layer, images, convolution: Convolution):
    outputs = _outputs(layer, images, convolution)
    return outputs, (layer.weight, images, outputs)


def _gradients(convolution: Convolution, kept, gradient):
    weight, images, outputs = kept
    shape = Shape.of(images.shape[1:], convolution)
    layer = _layer_gradient(images, outputs, gradient, shape)
    if images.dtype == jnp.uint8:
        return layer, None
    return layer, _image_gradient(weight, outputs, gradient, shape)


_of_many.defvjp(_outputs_and_kept, _gradients)


def _outputs(layer: Layer, images, convolution: Convolution):
    shape, count = Shape.of(images.shape[1:], convolution), len(images)
    kernel = partial(_outputs_kernel, shape, _scale(images))
    out = jax.ShapeDtypeStruct((count, shape.windows * shape.outputs), jnp.bfloat16)
    call = kernel_call(kernel, out, (count, -(-shape.windows // PART)))
    found = call(images.reshape(count, -1), layer.weight.astype(jnp.bfloat16).ravel(), layer.bias)
    return found.reshape(count, shape.rows, shape.columns, shape.outputs)


def _outputs_kernel(shape: Shape, scale: float, images, weight, bias, outputs):
    """Some windows of one image."""
    pl, triton = pallas()
    image, window = pl.program_id(0), pl.program_id(1) * PART + _first(PART)

    def add(part, total):
        number = part * PART + _first(PART)
        place, inside = _in_image(shape, window, number)
        seen = triton.load(images.at[image, place], mask=inside, other=0).astype(jnp.bfloat16)
        weights = weight[_in_rows(number, shape.outputs)]
        return total + jnp.dot(seen, weights, preferred_element_type=jnp.float32)

    nothing = jnp.zeros((PART, shape.outputs), jnp.float32)
    total = jax.lax.fori_loop(0, shape.window // PART, add, nothing)
    values = jnp.maximum(total * scale + bias[...][None, :], 0).astype(jnp.bfloat16)
    place = _in_rows(window, shape.outputs)
    exists = jnp.broadcast_to((window < shape.windows)[:, None], place.shape)
    _store(outputs, image, place, values, exists)


def _layer_gradient(images, outputs, gradient, shape: Shape) -> Layer:
    count, parts = len(images), shape.window // PART
    shares = gcd(count, PROGRAMS >> (parts - 1).bit_length())
    kernel = partial(_layer_gradient_kernel, shape, _scale(images), count // shares)
    sizes = ((shares, shape.window * shape.outputs), (shares, shape.outputs))
    out = [jax.ShapeDtypeStruct(size, jnp.float32) for size in sizes]
    flat = (each.reshape(count, -1) for each in (images, outputs, gradient))
    weight, bias = (share.sum(axis=0) for share in kernel_call(kernel, out, (shares, parts))(*flat))
    return Layer(weight.reshape(shape.size, shape.size, shape.channels, shape.outputs), bias)


def _layer_gradient_kernel(shape: Shape, scale: float, count: int, images, outputs, gradient, weight, bias):
    """One part of the window, summed over all windows of some images."""
    pl, triton = pallas()
    share, part_of_window = pl.program_id(0), pl.program_id(1)
    number, parts = part_of_window * PART + _first(PART), -(-shape.windows // PART)

    def add(step, totals):
        image, part = _divided(step, parts)
        image, window = share * count + image, part * PART + _first(PART)
        place, inside = _in_image(shape, window, number)
        seen = triton.load(images.at[image, place], mask=inside, other=0).astype(jnp.bfloat16)
        row, column = _divided(window, shape.columns)
        sent = _sent_back(shape, image, row, column, outputs, gradient)
        product = jnp.dot(seen.T, sent, preferred_element_type=jnp.float32)
        return totals[0] + product, totals[1] + sent.astype(jnp.float32)

    nothing = jnp.zeros((PART, shape.outputs), jnp.float32)
    total, sums = jax.lax.fori_loop(0, count * parts, add, (nothing, nothing))
    weight[share, _in_rows(number, shape.outputs)] = total * scale

    @pl.when(part_of_window == 0)
    def _():
        bias[share, _first(shape.outputs)] = sums.sum(axis=0)


def _image_gradient(weight, outputs, gradient, shape: Shape):
    count = len(outputs)
    down, across = (
        -(-(shape.height + shape.above) // shape.stride),
        -(-(shape.width + shape.left) // shape.stride),
    )
    kernel = partial(_image_gradient_kernel, shape, across)
    out = jax.ShapeDtypeStruct((count, shape.height * shape.width * shape.channels), jnp.bfloat16)
    flat = (each.reshape(count, -1) for each in (outputs, gradient))
    call = kernel_call(kernel, out, (count, -(-down * across // PART)))
    found = call(weight.astype(jnp.bfloat16).ravel(), *flat)
    return found.reshape(count, shape.height, shape.width, shape.channels)


def _image_gradient_kernel(shape: Shape, across: int, weight, outputs, gradient, images):
    """The gradient of some blocks of stride x stride pixels of one image: the sum over their windows."""
    pl, _ = pallas()
    image = pl.program_id(0)
    row, column = _divided(pl.program_id(1) * PART + _first(PART), across)
    line_of_block = shape.stride * shape.channels
    line, along = _divided(_first(shape.block), line_of_block)

    def add(step, total):
        down, right = _divided(step, shape.size // shape.stride)
        sent = _sent_back(shape, image, row - down, column - right, outputs, gradient)
        number = (shape.stride * down + line) * shape.size * shape.channels + right * line_of_block + along
        weights = weight[_in_rows(number, shape.outputs)]
        return total + jnp.dot(sent, weights.T, preferred_element_type=jnp.float32)

    steps, nothing = (shape.size // shape.stride) ** 2, jnp.zeros((PART, shape.block), jnp.float32)
    total = jax.lax.fori_loop(0, steps, add, nothing)
    line = (shape.stride * row)[:, None] + line[None, :]
    along = (line_of_block * column)[:, None] + along[None, :]
    place, inside = _inside(shape, line, along)
    _store(images, image, place, total.astype(jnp.bfloat16), inside)


def _sent_back(shape: Shape, image, row, column, outputs, gradient):
    """The gradient of these windows' outputs before the ReLU, (windows, outputs); 0 where no window is."""
    _, triton = pallas()
    exists = (row >= 0) & (row < shape.rows) & (column >= 0) & (column < shape.columns)
    place = _in_rows(row * shape.columns + column, shape.outputs)
    exists = jnp.broadcast_to(exists[:, None], place.shape)
    output = triton.load(outputs.at[image, place], mask=exists, other=0)
    sent = triton.load(gradient.at[image, place], mask=exists, other=0)
    return jnp.where(output > 0, sent, jnp.zeros_like(sent))


def _in_image(shape: Shape, window, number) -> tuple[Any, Any]:
    """The places of these numbers of these windows, (windows, numbers), and which are inside the image."""
    row, column = _divided(window, shape.columns)
    line, along = _divided(number, shape.size * shape.channels)
    line = (shape.stride * row)[:, None] + line[None, :]
    along = (shape.stride * shape.channels * column)[:, None] + along[None, :]
    return _inside(shape, line, along)


def _inside(shape: Shape, line, along) -> tuple[Any, Any]:
    """Places in the image, given in the padded image, and which exist."""
    length = shape.width * shape.channels
    line, along = line - shape.above, along - shape.left * shape.channels
    return line * length + along, (line >= 0) & (line < shape.height) & (along >= 0) & (along < length)


def _in_rows(row, width: int):
    """The places of these rows of a matrix, (rows, width)."""
    return (row * width)[:, None] + _first(width)[None, :]


def _first(count: int):
    """0, 1, ..., count - 1."""
    return jax.lax.iota(jnp.int32, count)


def _divided(numbers, divisor: int) -> tuple[Any, Any]:
    """Quotient and remainder of numbers that are not negative."""
    divisors = jnp.full_like(numbers, divisor)
    return jax.lax.div(numbers, divisors), jax.lax.rem(numbers, divisors)


def _scale(images) -> float:
    return BYTE if images.dtype == jnp.uint8 else 1.0


def _store(array, image, place, values, mask) -> None:
    if interpreted():  # the interpreter also writes where the mask is false; let it write outside
        place = jnp.where(mask, place, array.shape[1])
    pallas()[1].store(array.at[image, place], values, mask=mask)
