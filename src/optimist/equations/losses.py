"""Every equation that more than one agent uses, written for one transition."""

import jax
import jax.numpy as jnp


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
    are constants. The derivative is defined explicitly, so that no matrix of errors is kept for it.
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
    """The mean of each row, (K, N) -> (K,). On a CPU a product is 15 times as fast as XLA's reduction; on an
    accelerator a product would have to write the whole matrix to memory."""

    def product(matrix):
        return matrix @ jnp.full(matrix.shape[-1], 1 / matrix.shape[-1])

    return jax.lax.platform_dependent(matrix, cpu=product, default=lambda matrix: matrix.mean(axis=-1))


def random_convex_weights(key, count: int):
    """Uniform draws divided by their sum: REM's mixtures (Agarwal et al. 2020, section 4.2)."""
    draws = jax.random.uniform(key, (count,), minval=jnp.finfo(jnp.float32).tiny)  # the sum must not be zero
    return draws / draws.sum()


def categorical_projection(support, probabilities, atoms):
    """The distribution over `support` (N,) projected onto the evenly spaced `atoms` (K,) (Bellemare et al.
    2017, eq. 7): the mass of each point is split between its two neighbours, in proportion to nearness."""
    gap = atoms[1] - atoms[0]
    inside = jnp.clip(support, atoms[0], atoms[-1])
    nearness = jnp.clip(1 - jnp.abs(inside[None, :] - atoms[:, None]) / gap, 0, 1)
    return nearness @ probabilities


def cross_entropy(logits, target):
    """The cross-entropy of a target distribution (K,) and the softmax of `logits` (K,)."""
    return -target @ jax.nn.log_softmax(logits)


def normal_histogram(mean, atoms, spread: float):
    """The mass of a normal distribution in the bins around the evenly spaced `atoms` (K,) (Farebrother et al.
    2024, eq. 3.4). Its standard deviation is `spread` bins; what lies outside all bins is left out."""
    gap = atoms[1] - atoms[0]
    edges = jnp.append(atoms, atoms[-1] + gap) - gap / 2
    inside = jnp.clip(mean, atoms[0], atoms[-1])
    below = jax.scipy.stats.norm.cdf((edges - inside) / (spread * gap))
    return jnp.diff(below) / (below[-1] - below[0])


def excess_value(values, action):
    """The soft maximum of all values (A,) minus the value of the logged action (Kumar et al. 2020, eq. 4):
    zero if the logged action has by far the highest value, large if another action has a higher one."""
    return jax.nn.logsumexp(values) - values[action]


def expectile(error, tau: float):
    """The squared error, weighted by `tau` where it is positive and by 1 - `tau` where it is negative
    (Kostrikov et al. 2022, eq. 4). At 1/2 it is half the square; near 1 it is a regression on the largest
    values."""
    return jnp.where(error > 0, tau, 1 - tau) * error**2


def gaussian_surprise(distance, deviation):
    """The negative logarithm of the density of independent normal numbers at this distance (A,) from their
    means, for these standard deviations (A,)."""
    return (0.5 * (distance / deviation) ** 2 + jnp.log(deviation) + 0.5 * jnp.log(2 * jnp.pi)).sum()


def squashing(number):
    """log(1 - tanh(number)^2), the logarithm of the slope of the tangent, in a form that does not lose its
    digits where the slope is near zero (Haarnoja et al. 2018, appendix C)."""
    return 2 * (jnp.log(2.0) - number - jax.nn.softplus(-2 * number))
