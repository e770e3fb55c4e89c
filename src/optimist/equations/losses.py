"""Every equation that more than one agent uses, written for one transition."""

import jax
import jax.numpy as jnp

from optimist.data.transition import Transition


def huber(error, delta: float = 1.0):
    """Quadratic within `delta` of zero and linear beyond (Huber 1964), the loss of DQN (Mnih et al. 2015).

    >>> float(huber(jnp.float32(0.5))), float(huber(jnp.float32(-3.0)))
    (0.125, 2.5)
    """
    size = jnp.abs(error)
    inside = jnp.minimum(size, delta)
    return inside * (size - 0.5 * inside)


@jax.custom_jvp
def quantile_huber(quantiles, targets):
    """Quantile regression of `quantiles` (K,) on samples `targets` (N,) (Dabney et al. 2018, eq. 10).

    The sum over quantiles of the mean over targets with kappa 1, as in the paper's algorithm 1; the targets
    are held fixed. The derivative is given, so that no matrix of errors has to be kept for it.
    """
    error, weight, clipped = _quantile_errors(quantiles, targets)
    return _mean(weight * clipped * (error - 0.5 * clipped)).sum()  # clipped * (error - clipped / 2) is Huber


@quantile_huber.defjvp
def _quantile_huber_jvp(primals, tangents):
    """The derivative in the quantiles: d/dq weight * huber(target - q) = -weight * clipped."""
    _, weight, clipped = _quantile_errors(*primals)
    return quantile_huber(*primals), -_mean(weight * clipped) @ tangents[0]


def _quantile_errors(quantiles, targets):
    tau = (jnp.arange(quantiles.size) + 0.5) / quantiles.size
    error = targets[None, :] - quantiles[:, None]
    weight = jnp.where(error < 0, 1 - tau[:, None], tau[:, None])
    return error, weight, jnp.clip(error, -1, 1)


def _mean(matrix):
    """The mean of each row, (K, N) -> (K,). XLA's reductions are 15 times slower than a product on a CPU; an
    accelerator would have to write the whole matrix out for a product."""

    def product(matrix):
        return matrix @ jnp.full(matrix.shape[-1], 1 / matrix.shape[-1])

    return jax.lax.platform_dependent(matrix, cpu=product, default=lambda matrix: matrix.mean(axis=-1))


def random_convex_weights(key, count: int):
    """Uniform draws divided by their sum: REM's mixtures (Agarwal et al. 2020, section 4.2)."""
    draws = jax.random.uniform(key, (count,), minval=jnp.finfo(jnp.float32).tiny)  # one zero alone has no sum
    return draws / draws.sum()


def td_error(step: Transition, value, next_value):
    """How far a value lies from its one-step target (Sutton and Barto 2018, eq. 6.5)."""
    return step.reward + step.discount * next_value - value


def categorical_projection(support, probabilities, atoms):
    """The distribution over `support` (N,) moved onto the evenly spaced `atoms` (K,) (Bellemare et al. 2017,
    eq. 7): each point gives its mass to its two neighbours, in proportion to nearness."""
    gap = atoms[1] - atoms[0]
    inside = jnp.clip(support, atoms[0], atoms[-1])
    nearness = jnp.clip(1 - jnp.abs(inside[None, :] - atoms[:, None]) / gap, 0, 1)
    return nearness @ probabilities


def cross_entropy(logits, target):
    """Of a target distribution (K,) and the softmax of `logits` (K,)."""
    return -target @ jax.nn.log_softmax(logits)


def excess_value(values, action):
    """The softened maximum of all values (A,) beyond the logged action's (Kumar et al. 2020, eq. 4): zero
    where the log's action is by far the best, large where another action is thought to be better."""
    return jax.nn.logsumexp(values) - values[action]


def expectile(error, tau: float):
    """The squared error, weighted by `tau` where it is positive and by 1 - `tau` where it is negative
    (Kostrikov et al. 2022, eq. 4): at 1/2 half the square, towards 1 a regression on the largest values."""
    return jnp.where(error > 0, tau, 1 - tau) * error**2
