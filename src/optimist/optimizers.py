"""The optimisers of the paper as TensorFlow 1 computes them, which is not how optax or PyTorch default to.

Both differences matter because the paper's epsilons are large: with 3e-4 inside or outside a square root,
or before or after bias correction, the first thousands of steps are different steps.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from optimist.errors import UsageError


def check_positive(optimizer) -> None:
    """Refuse what would climb."""
    rate, epsilon = optimizer.learning_rate, optimizer.epsilon
    if not (0 < rate < math.inf and 0 <= epsilon < math.inf):
        raise UsageError(
            f"a learning rate of {rate} and an epsilon of {epsilon}: neither is negative, and the rate not 0"
        )


@dataclass(frozen=True)
class RmsProp:
    """Centred RMSProp: step = rate * g / sqrt(mean(g^2) - mean(g)^2 + epsilon), mean(g^2) starting at one."""

    learning_rate: float = 2.5e-4
    decay: float = 0.95
    epsilon: float = 1e-5

    def __post_init__(self):
        check_positive(self)

    def transform(self) -> optax.GradientTransformation:
        return optax.rmsprop(
            self.learning_rate,
            decay=self.decay,
            eps=self.epsilon,
            initial_scale=1.0,  # TF1 starts the mean square at ones
            eps_in_sqrt=True,
            centered=True,
        )


class AdamSlots(NamedTuple):
    count: Any
    mean: Any
    square: Any


@dataclass(frozen=True)
class Adam:
    """Adam with Kingma and Ba's "epsilon hat": step = rate_t * mean / (sqrt(square) + epsilon),
    rate_t = rate * sqrt(1 - b2^t) / (1 - b1^t)."""

    learning_rate: float = 5e-5
    epsilon: float = 0.01 / 32
    b1: float = 0.9
    b2: float = 0.999

    def __post_init__(self):
        check_positive(self)

    def transform(self) -> optax.GradientTransformation:
        return optax.GradientTransformation(self._init, self._update)

    def _init(self, params) -> AdamSlots:
        mean, square = jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params)
        return AdamSlots(jnp.zeros((), jnp.int32), mean, square)

    def _update(self, gradients, slots: AdamSlots, params=None):
        count = slots.count + 1
        rate = self.learning_rate * jnp.sqrt(1 - self.b2**count) / (1 - self.b1**count)
        mean = jax.tree.map(lambda m, g: self.b1 * m + (1 - self.b1) * g, slots.mean, gradients)
        square = jax.tree.map(lambda s, g: self.b2 * s + (1 - self.b2) * g * g, slots.square, gradients)
        updates = jax.tree.map(lambda m, s: -rate * m / (jnp.sqrt(s) + self.epsilon), mean, square)
        return updates, AdamSlots(count, mean, square)
