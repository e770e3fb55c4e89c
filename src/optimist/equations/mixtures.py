"""Distributions over the simplex: the weights of an ensemble's heads in one minibatch.

The ensembles of the paper mix their heads in different ways: REM draws "uniform" weights for each minibatch,
bootstrapping draws a "one_hot" vector, and the "mean" draws nothing.
"""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp

from optimist.equations.losses import random_convex_weights
from optimist.errors import UsageError, did_you_mean

KINDS = ("uniform", "dirichlet", "one_hot", "mean")


@dataclass(frozen=True)
class Mixture:
    """Weights (heads, count) whose columns are convex combinations."""

    kind: Annotated[str, "uniform draws over their sum (the paper), dirichlet, one_hot or mean"] = "uniform"
    concentration: Annotated[float, "of dirichlet: large is close to mean, small to one_hot"] = 1.0
    count: Annotated[int, "combinations per minibatch"] = 1

    def __post_init__(self):
        if self.kind not in KINDS:
            raise UsageError(f'unknown mixture "{self.kind}": {did_you_mean(self.kind, KINDS)}')
        if not 0 < self.concentration < jnp.inf or self.count < 1:
            raise UsageError(
                f"mixture count {self.count}, concentration {self.concentration}: the count must be at least "
                "1, the concentration above 0"
            )

    def draw(self, key, heads: int):
        """Draw the weights, (heads, count)."""
        return jax.vmap(lambda one: self._one(one, heads))(jax.random.split(key, self.count)).T

    def _one(self, key, heads: int):
        if self.kind == "uniform":
            return random_convex_weights(key, heads)
        if self.kind == "dirichlet":
            return jax.random.dirichlet(key, jnp.full(heads, self.concentration))
        if self.kind == "one_hot":
            return jax.nn.one_hot(jax.random.randint(key, (), 0, heads), heads)
        return jnp.full(heads, 1 / heads)
