"""The optimisers of the paper as TensorFlow 1 computes them, unlike the defaults of optax and PyTorch.

Epsilon is inside instead of outside the square root (RMSProp), or before instead of after the bias correction
(Adam). This matters because the paper's epsilons are large: with 3e-4 the first thousands of steps differ.

An optimiser of your own has a method `transform` too; what it returns may be a transformation of optax.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp

from optimist.errors import UsageError

HEADS = ("weight", "bias")  # the last layer of a table of values, as `MultiHead` names its parts


class Transform(NamedTuple):
    """How gradients become changes of the weights: `slots = init(params)`, and for each step
    `changes, slots = update(gradients, slots, params)`."""

    init: Callable[[Any], Any]
    update: Callable[..., tuple[Any, Any]]


def changed(params, changes):
    """The weights after a step."""
    return jax.tree.map(lambda weight, change: weight + change, params, changes)


def check_positive(optimizer) -> None:
    """Raise UsageError for a negative epsilon, or a learning rate that is not positive."""
    rate, epsilon = optimizer.learning_rate, optimizer.epsilon
    if not (0 < rate < math.inf and 0 <= epsilon < math.inf):
        raise UsageError(
            f"learning rate {rate}, epsilon {epsilon}: the rate must be above 0, and epsilon at least 0"
        )


class RmsPropSlots(NamedTuple):
    mu: Any  # the mean gradient; checkpoints have these names
    nu: Any  # the mean squared gradient


@dataclass(frozen=True)
class RmsProp:
    """Centred RMSProp: step = rate * g / sqrt(mean(g^2) - mean(g)^2 + epsilon), mean(g^2) starting at one."""

    learning_rate: Annotated[float, "the size of a step"] = 2.5e-4
    decay: Annotated[float, "share of the running means kept at each step"] = 0.95
    epsilon: Annotated[float, "added to the divisor of a step"] = 1e-5

    def __post_init__(self):
        check_positive(self)

    def transform(self) -> Transform:
        return Transform(self._init, self._update)

    def _init(self, params) -> tuple[RmsPropSlots]:
        mean, square = jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.ones_like, params)
        return (RmsPropSlots(mean, square),)

    def _update(self, gradients, slots: tuple[RmsPropSlots], params=None):
        kept, new = self.decay, 1 - self.decay
        mean = jax.tree.map(lambda g, m: new * g + kept * m, gradients, slots[0].mu)
        square = jax.tree.map(lambda g, s: new * g**2 + kept * s, gradients, slots[0].nu)

        def change(gradient, mean, square):
            return -self.learning_rate * (jax.lax.rsqrt(square - mean**2 + self.epsilon) * gradient)

        return jax.tree.map(change, gradients, mean, square), (RmsPropSlots(mean, square),)


class AdamSlots(NamedTuple):
    count: Any
    mean: Any
    square: Any


@dataclass(frozen=True)
class Adam:
    """Adam with Kingma and Ba's "epsilon hat": step = rate_t * mean / (sqrt(square) + epsilon),
    rate_t = rate * sqrt(1 - b2^t) / (1 - b1^t).

    The effect of epsilon depends on the loss: in a mean over K heads each head gets 1/K of the gradient that
    a single head gets, so with a large epsilon its weights take 1/K of the step. `head_epsilon` = epsilon / K
    undoes that in the last layer.
    """

    learning_rate: Annotated[float, "the size of a step"] = 5e-5
    epsilon: Annotated[float, "added to the divisor of a step"] = 0.01 / 32
    b1: Annotated[float, "share of the mean gradient kept at each step"] = 0.9
    b2: Annotated[float, "share of the mean squared gradient kept at each step"] = 0.999
    head_epsilon: Annotated[float | None, "epsilon of the last layer; none: the same as elsewhere"] = None
    weight_decay: Annotated[float | None, "share of the weight added to its gradient, as in PyTorch"] = None

    def __post_init__(self):
        check_positive(self)
        for name in ("head_epsilon", "weight_decay"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise UsageError(f"{name} is {value}: it must be a finite number of at least 0, or none")

    def transform(self) -> Transform:
        return Transform(self._init, self._update)

    def _init(self, params) -> AdamSlots:
        mean, square = jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params)
        return AdamSlots(jnp.zeros((), jnp.int32), mean, square)

    def _update(self, gradients, slots: AdamSlots, params=None):
        if self.weight_decay is not None:
            gradients = jax.tree.map(lambda g, p: g + self.weight_decay * p, gradients, params)
        count = slots.count + 1
        rate = self.learning_rate * jnp.sqrt(1 - self.b2**count) / (1 - self.b1**count)
        mean = jax.tree.map(lambda m, g: self.b1 * m + (1 - self.b1) * g, slots.mean, gradients)
        square = jax.tree.map(lambda s, g: self.b2 * s + (1 - self.b2) * g * g, slots.square, gradients)
        epsilon = self._epsilons(square)
        updates = jax.tree.map(lambda m, s, e: -rate * m / (jnp.sqrt(s) + e), mean, square, epsilon)
        return updates, AdamSlots(count, mean, square)

    def _epsilons(self, group) -> Any:
        """The epsilon of every weight of a group."""

        def of_leaf(path, leaf):
            return self.epsilon if self.head_epsilon is None or not _is_head(path) else self.head_epsilon

        return jax.tree_util.tree_map_with_path(of_leaf, group)

    def step_shares(self, slots: AdamSlots) -> dict[str, Any]:
        """The mean share of a full step that each part of a group takes, sqrt(square) / (sqrt(square) +
        epsilon): near 1 epsilon has no effect, near 0 the gradients are small compared with it."""
        smallest = jnp.finfo(jnp.float32).tiny  # no 0 / 0 where epsilon and the gradient are zero

        def share(square, epsilon):
            return jnp.sqrt(square) / jnp.maximum(jnp.sqrt(square) + epsilon, smallest)

        shares = jax.tree.map(share, slots.square, self._epsilons(slots.square))
        parts: dict[str, list] = {}
        for path, leaf in jax.tree_util.tree_leaves_with_path(shares):
            parts.setdefault("heads" if _is_head(path) else "torso", []).append(leaf.ravel())
        return {part: jnp.concatenate(found).mean() for part, found in parts.items()}


def _is_head(path: tuple) -> bool:
    """Whether this path leads to the last layer of a table."""
    return len(path) == 1 and getattr(path[0], "key", None) in HEADS
