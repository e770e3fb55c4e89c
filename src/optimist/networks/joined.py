"""A product of rows and weights in which the rows of all images of a minibatch are one matrix.

`vmap` of an ordinary product keeps the axis of images apart, and the gradient of shared weights is then a sum
over two axes, images and rows. Before such a sum XLA's CPU compiler copies a transposed matrix; before a sum
over one axis it does not. So this product has its own rule for `vmap`, which joins the two axes.
"""

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

NAME = "joined_product"


def joined_product(rows, weight):
    """rows @ weight.T, (R, I) and (O, I) -> (R, O)."""
    return _joined.bind(rows, weight)


def _product(rows, weight):
    return rows @ weight.T


def _of_batch(arguments, axes):
    rows, weight = arguments
    if axes[1] is not None:  # weights that are not shared
        return jax.vmap(_product, axes)(rows, weight), 0
    rows = jnp.moveaxis(rows, axes[0], 0)
    found = joined_product(rows.reshape(-1, rows.shape[-1]), weight)
    return found.reshape(*rows.shape[:-1], -1), 0


# A primitive, because a function with `custom_vmap` has no gradient outside of `vmap`.
_joined = Primitive(NAME)
_joined.def_impl(jax.jit(_product))
_joined.def_abstract_eval(
    lambda rows, weight: jax.core.ShapedArray((rows.shape[0], weight.shape[0]), rows.dtype)
)
mlir.register_lowering(_joined, mlir.lower_fun(_product, multiple_results=False))
batching.primitive_batchers[_joined] = _of_batch
ad.defbilinear(
    _joined,
    lambda gradient, rows, weight: gradient @ weight,
    lambda gradient, rows, weight: gradient.T @ rows,
)
