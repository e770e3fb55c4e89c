"""Every shared equation equals its paper's definition, written here with plain loops."""

import doctest
import math
from statistics import NormalDist

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optimist.equations.losses
from loss_loops import huber_by_definition, projection_by_loops, quantile_huber_by_loops
from optimist.equations.losses import (
    categorical_projection,
    cross_entropy,
    huber,
    normal_histogram,
    quantile_huber,
    random_convex_weights,
    squashing,
)

SIZES = [(1, 5), (5, 1), (7, 3)]  # (quantiles, targets)


@jax.jit
def plain_gradient(quantiles, targets):
    """What jax.grad makes of the same equation without matrix products and without a given derivative."""

    def loss(quantiles):
        total = 0.0
        for i in range(quantiles.size):
            for j in range(targets.size):
                error, tau = targets[j] - quantiles[i], (i + 0.5) / quantiles.size
                bent = jnp.where(jnp.abs(error) <= 1, 0.5 * error**2, jnp.abs(error) - 0.5)
                total += jnp.abs(tau - (error < 0)) * bent / targets.size
        return total

    return jax.grad(loss)(quantiles)


def quantiles_and_targets(size):
    """Errors on both sides of zero and of kappa."""
    rng = np.random.default_rng(size)
    return tuple(rng.normal(scale=1.5, size=count).astype(np.float32) for count in size)


@pytest.mark.parametrize("delta", [0.5, 1.0, 2.0])
def test_huber_is_its_definition(delta):
    for error in (-7.0, -2.0, -1.0, -0.4, 0.0, 0.3, 1.0, 2.0, 5.0):
        np.testing.assert_allclose(
            huber(jnp.float32(error), delta), huber_by_definition(error, delta), rtol=1e-6
        )


def test_the_slope_of_huber_is_the_clipped_error():
    for error in (-7.0, -1.0, -0.4, 0.0, 0.3, 1.0, 5.0):
        slope = jax.grad(huber)(jnp.float32(error))
        np.testing.assert_allclose(slope, min(max(error, -1.0), 1.0), rtol=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_quantile_huber_is_equation_10(size):
    quantiles, targets = quantiles_and_targets(size)
    expected = quantile_huber_by_loops(quantiles.tolist(), targets.tolist())
    np.testing.assert_allclose(quantile_huber(quantiles, targets), expected, rtol=1e-5)


@pytest.mark.parametrize("size", SIZES)
def test_the_given_derivative_is_the_derived_one(size):
    quantiles, targets = quantiles_and_targets(size)
    gradient = jax.grad(quantile_huber)(quantiles, targets)
    np.testing.assert_allclose(gradient, plain_gradient(quantiles, targets), rtol=1e-5, atol=1e-7)


def random_distribution(rng, count: int) -> np.ndarray:
    return rng.dirichlet(np.ones(count)).astype(np.float32)


@pytest.mark.parametrize(("count", "low", "high"), [(2, 0, 1), (5, -2, 2), (51, -10, 10)])
@pytest.mark.parametrize("spread", [0.3, 1, 3], ids=["inside", "about", "beyond"])
def test_the_projection_is_algorithm_1(spread, count, low, high):
    rng = np.random.default_rng(count)
    atoms = np.linspace(low, high, count, dtype=np.float32)
    support = (rng.normal(size=9) * spread * (high - low) / 2).astype(np.float32)
    probabilities = random_distribution(rng, 9)
    projected = categorical_projection(support, probabilities, jnp.array(atoms))
    expected = projection_by_loops(support.tolist(), probabilities.tolist(), atoms.tolist())
    np.testing.assert_allclose(projected, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shift", [0.0, 0.31, -7.0, 100.0])
def test_the_projection_keeps_all_mass(shift):
    """Also of points on an atom, where the printed algorithm loses it, and of points beyond the last."""
    atoms, probabilities = jnp.linspace(-10, 10, 51), random_distribution(np.random.default_rng(0), 51)
    projected = np.array(categorical_projection(atoms + shift, probabilities, atoms))
    assert projected.min() >= 0
    np.testing.assert_allclose(projected.sum(), 1, rtol=1e-5)


@pytest.mark.parametrize("spread", [0.3, 0.75, 2.0])
@pytest.mark.parametrize("mean", [-3.0, 0.0, 0.31, 9.99])
def test_a_bell_curve_has_its_mass_in_the_bins_and_its_mean_where_there_is_room(spread, mean):
    atoms = np.linspace(-10, 10, 51, dtype=np.float32)
    mass = np.array(normal_histogram(mean, jnp.array(atoms), spread))
    curve = NormalDist(mean, spread * 0.4)
    expected = np.array([curve.cdf(float(atom) + 0.2) - curve.cdf(float(atom) - 0.2) for atom in atoms])
    np.testing.assert_allclose(mass, expected / expected.sum(), rtol=1e-3, atol=1e-6)
    if mean < 9:
        np.testing.assert_allclose(mass @ atoms, mean, rtol=0, atol=0.05 if spread < 0.5 else 1e-4)


def test_a_bell_curve_beyond_the_last_atom_stands_on_it():
    atoms = jnp.linspace(-10, 10, 51)
    far, last = (np.array(normal_histogram(mean, atoms, 0.75)) for mean in (1000.0, 10.0))
    np.testing.assert_array_equal(far, last)
    assert far.argmax() == 50


@pytest.mark.parametrize("scale", [1, 60], ids=["even", "near-certain"])
def test_cross_entropy_is_its_definition(scale):
    rng = np.random.default_rng(scale)
    logits, target = (scale * rng.normal(size=7)).astype(np.float32), random_distribution(rng, 7)
    total = math.fsum(math.exp(logit) for logit in logits.tolist())
    expected = -sum(t * (z - math.log(total)) for t, z in zip(target.tolist(), logits.tolist(), strict=True))
    np.testing.assert_allclose(cross_entropy(logits, target), expected, rtol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 200])
def test_convex_weights_are_uniform_draws_over_their_sum(count):
    for seed in range(5):
        key = jax.random.PRNGKey(seed)
        draws = jax.random.uniform(key, (count,)).tolist()
        weights = random_convex_weights(key, count).tolist()
        assert min(weights) >= 0
        np.testing.assert_allclose(sum(weights), 1, rtol=1e-5)
        np.testing.assert_allclose(weights, [draw / sum(draws) for draw in draws], rtol=1e-5)


def test_one_convex_weight_is_one_even_when_the_draw_is_zero():
    """One draw in 8 million is zero, and 12.5 million steps make so many draws."""
    key = jax.random.PRNGKey(780233)
    assert jax.random.uniform(key, (1,)) == 0
    assert random_convex_weights(key, 1) == 1


def test_the_examples_in_the_docstrings_are_true():
    results = doctest.testmod(optimist.equations.losses)
    assert results.attempted > 0
    assert results.failed == 0


def test_squashing_is_the_logarithm_of_the_tangents_slope():
    for number in (-3.0, -0.4, 0.0, 1.7):
        assert float(squashing(jnp.float32(number))) == pytest.approx(
            math.log(1 - math.tanh(number) ** 2), rel=1e-4, abs=1e-6
        )
    # Where 1 - tanh^2 is zero in float32: log(4) - 2 |number|.
    assert float(squashing(jnp.float32(40.0))) == pytest.approx(math.log(4) - 80)
    assert float(squashing(jnp.float32(-40.0))) == pytest.approx(math.log(4) - 80)
