"""The features of a torso on a GPU with factors in bf16, by kernels of our own where they serve.

For a minibatch of 32, reading the weights takes nearly all the time of a dense layer of 7,744 x 512. The
library's product reads them in float32, writes them in bf16, pads them, and reads them again. Here they are
read once and rounded on the way to the matrix units.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

from optimist.networks import implicit
from optimist.networks.layers import Layer
from optimist.networks.precision import kernel_call, pallas

PART = 64  # inputs or outputs that a program takes at once
BATCHES = (16, 32, 64)  # for a larger minibatch the library's product is as good
MOST_SHARES = 16  # of a sum over inputs


def rounded_features(torso: Any, params: list[Layer], observation):
    """`plain` of a `LayeredTorso`, up to the rounding of factors."""
    images, dense = params[: len(torso.convolutions)], params[len(torso.convolutions) :]
    if implicit.serves(observation.shape, torso.convolutions):
        x = observation if observation.dtype == jnp.uint8 else observation.astype(jnp.bfloat16)
        for layer, convolution in zip(images, torso.convolutions, strict=True):
            x = implicit.convolved(layer, x, convolution)
    else:
        x = replace(torso, hidden=()).plain(images, observation)
    x = x.reshape(-1)
    for layer in dense:
        x = jax.nn.relu(product(x, layer.weight) + layer.bias)
    return x


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
    return batch in BATCHES and all(size % PART == 0 for size in weight)


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
    parts = inputs // PART
    shares = max(share for share in range(1, MOST_SHARES + 1) if parts % share == 0)
    out = jax.ShapeDtypeStruct((shares, batch, outputs), jnp.float32)
    call = kernel_call(partial(_product_kernel, parts // shares), out, (shares, outputs // PART))
    return call(features, weight).sum(axis=0)


def _product_kernel(parts: int, features, weight, products):
    """The sum over a share of the inputs, of some outputs, for the whole minibatch."""
    pl, _ = pallas()
    share, outputs = pl.program_id(0), pl.ds(pl.program_id(1) * PART, PART)

    def add(part, total):
        inputs = pl.ds((share * parts + part) * PART, PART)
        weights = weight[inputs, outputs].astype(jnp.bfloat16)
        return total + jnp.dot(features[:, inputs], weights, preferred_element_type=jnp.float32)

    nothing = jnp.zeros((features.shape[0], PART), jnp.float32)
    products[share, :, outputs] = jax.lax.fori_loop(0, parts, add, nothing)


def _features_gradient(gradient, weight):
    batch, inputs = len(gradient), len(weight)
    out = jax.ShapeDtypeStruct((batch, inputs), jnp.bfloat16)
    return kernel_call(_features_gradient_kernel, out, (inputs // PART,))(gradient, weight)


def _features_gradient_kernel(gradient, weight, features):
    """Some inputs of the whole minibatch, from all outputs."""
    pl, _ = pallas()
    inputs = pl.ds(pl.program_id(0) * PART, PART)

    def add(part, total):
        outputs = pl.ds(part * PART, PART)
        weights = weight[inputs, outputs].astype(jnp.bfloat16)
        return total + jnp.dot(gradient[:, outputs], weights.T, preferred_element_type=jnp.float32)

    nothing = jnp.zeros((gradient.shape[0], PART), jnp.float32)
    total = jax.lax.fori_loop(0, gradient.shape[1] // PART, add, nothing)
    features[:, inputs] = total.astype(jnp.bfloat16)
