"""A dense layer on a GPU whose weights are read once and rounded to bf16 on the way to the matrix units.

For a minibatch of 32, a layer of 7,744 x 512 weights is nothing but reading them. The library's product reads
them in float32, writes them in bf16, pads them, and reads them again.
"""

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

from optimist.networks.kernels import is_side, kernel_call, pallas

INPUTS = 256  # of one program: all are read at once, so that thousands of reads are on their way
OUTPUTS = 32  # of one program
ROWS = 64  # most examples of one program
LARGEST_BATCH = 256  # a larger one has work enough for the library


def product(features, weight):
    """features @ weight as float32, (inputs,) -> (outputs,); the factors are rounded to bf16."""

    @custom_vmap
    def of_one(features, weight):
        return _library_product(features, weight)

    @of_one.def_vmap
    def of_batch(count, batched, features, weight):
        if batched[0] and not batched[1] and _serves(count, weight.shape):
            return _streamed(features, weight), True
        axes = tuple(0 if each else None for each in batched)
        return jax.vmap(_library_product, axes)(features, weight), True

    return of_one(features, weight)


def _library_product(features, weight):
    return (features.astype(jnp.bfloat16) @ weight.astype(jnp.bfloat16)).astype(jnp.float32)


def _serves(batch: int, weight: tuple[int, int]) -> bool:
    """Whole powers of two; a program of the gradient takes all outputs, which must be few."""
    inputs, outputs = weight
    sides = is_side(batch) and is_side(outputs)
    return sides and batch <= LARGEST_BATCH and OUTPUTS <= outputs <= 512 and inputs % OUTPUTS == 0


@jax.custom_vjp
def _streamed(features, weight):
    return _product(features.astype(jnp.bfloat16), weight)


def _product_and_kept(features, weight):
    rounded = features.astype(jnp.bfloat16)
    return _product(rounded, weight), (rounded, weight, jnp.zeros((), features.dtype))


def _gradients(kept, gradient):
    features, weight, like = kept
    rounded = gradient.astype(jnp.bfloat16)
    weight_gradient = (features.T @ rounded).astype(jnp.float32)
    return _features_gradient(rounded, weight).astype(like.dtype), weight_gradient


_streamed.defvjp(_product_and_kept, _gradients)


def _product(features, weight):
    (batch, inputs), outputs = features.shape, weight.shape[1]
    shares, rows = -(-inputs // INPUTS), min(batch, ROWS)
    out = jax.ShapeDtypeStruct((shares, batch, outputs), jnp.float32)
    call = kernel_call(_product_kernel, out, (shares, outputs // OUTPUTS, batch // rows))
    return call(features, weight).sum(axis=0)


def _product_kernel(features, weight, products):
    """The share of some inputs in the sum, of some outputs, for some examples."""
    pl, triton = pallas()
    share, rows = pl.program_id(0), min(features.shape[0], ROWS)
    examples = pl.program_id(2) * rows + jax.lax.iota(jnp.int32, rows)
    inputs = share * INPUTS + jax.lax.iota(jnp.int32, INPUTS)
    outputs = pl.program_id(1) * OUTPUTS + jax.lax.iota(jnp.int32, OUTPUTS)
    exists = inputs < features.shape[1]

    def read(array, rows, columns, mask):
        mask = jnp.broadcast_to(mask, (rows.size, columns.size))
        return triton.load(array.at[rows[:, None], columns[None, :]], mask=mask, other=0).astype(jnp.bfloat16)

    weights = read(weight, inputs, outputs, exists[:, None])
    seen = read(features, examples, inputs, exists[None, :])
    total = jnp.dot(seen, weights, preferred_element_type=jnp.float32)
    products[share, examples[:, None], outputs[None, :]] = total


def _features_gradient(gradient, weight):
    batch, inputs = len(gradient), len(weight)
    out, rows = jax.ShapeDtypeStruct((batch, inputs), jnp.bfloat16), min(batch, ROWS)
    call = kernel_call(_features_gradient_kernel, out, (inputs // OUTPUTS, batch // rows), warps=8)
    return call(gradient, weight)


def _features_gradient_kernel(gradient, weight, features):
    """Some inputs of some examples, from all outputs."""
    pl, _ = pallas()
    rows = min(gradient.shape[0], ROWS)
    inputs, examples = pl.ds(pl.program_id(0) * OUTPUTS, OUTPUTS), pl.ds(pl.program_id(1) * rows, rows)
    weights = weight[inputs, :].astype(jnp.bfloat16)
    total = jnp.dot(gradient[examples, :], weights.T, preferred_element_type=jnp.float32)
    features[examples, inputs] = total.astype(jnp.bfloat16)
