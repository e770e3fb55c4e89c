"""A mixture is a distribution over the simplex: each kind is what its name says, at any number of heads."""

import jax
import numpy as np
import pytest

from optimist.equations.losses import random_convex_weights
from optimist.equations.mixtures import KINDS, Mixture
from optimist.errors import UsageError

MANY = 2000


def draws(mixture: Mixture, heads: int) -> np.ndarray:
    """Two thousand independent mixtures, one per row."""
    many = Mixture(mixture.kind, mixture.concentration, count=MANY)
    return np.array(many.draw(jax.random.PRNGKey(0), heads)).T


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_every_column_is_a_convex_combination(kind, count, heads):
    weights = Mixture(kind, count=count).draw(jax.random.PRNGKey(heads), heads)
    assert weights.shape == (heads, count)
    assert np.min(weights) >= 0
    np.testing.assert_allclose(np.sum(weights, axis=0), np.ones(count), rtol=1e-5)


def test_uniform_is_the_papers_construction():
    """Uniform draws over their sum (Agarwal et al. 2020, section 4.2); each combination has its own key."""
    key = jax.random.PRNGKey(4)
    for column, own_key in zip(
        Mixture("uniform", count=3).draw(key, 4).T, jax.random.split(key, 3), strict=True
    ):
        np.testing.assert_allclose(column, random_convex_weights(own_key, 4), rtol=1e-6)


@pytest.mark.parametrize("kind", ["uniform", "dirichlet"])
def test_a_continuous_mixture_comes_near_every_corner_and_the_middle(kind):
    """Full support, which the paper's proposition 1 asks for."""
    weights = draws(Mixture(kind), heads=3)
    assert np.min(weights) > 0
    for place in (*np.eye(3), np.full(3, 1 / 3), np.array([0.5, 0.5, 0])):
        assert np.abs(weights - place[None]).max(axis=1).min() < 0.1


def test_one_hot_is_a_corner_and_every_corner_is_as_likely():
    weights = draws(Mixture("one_hot"), heads=4)
    assert {*np.ravel(weights)} == {0, 1}
    np.testing.assert_allclose(weights.sum(axis=1), np.ones(MANY))
    np.testing.assert_allclose(weights.mean(axis=0), np.full(4, 1 / 4), atol=0.03)  # 3 deviations


@pytest.mark.parametrize("kind", KINDS)
def test_no_head_is_favoured(kind):
    weights = draws(Mixture(kind), heads=4)
    deviation = weights.std() / np.sqrt(MANY)
    np.testing.assert_allclose(weights.mean(axis=0), np.full(4, 1 / 4), atol=4 * deviation + 1e-6)


@pytest.mark.parametrize("concentration", [0.3, 1.0, 20.0])
def test_a_dirichlet_spreads_as_its_formula_says(concentration):
    """The variance of one weight of K is (K - 1) / (K^2 (K c + 1))."""
    weights = draws(Mixture("dirichlet", concentration), heads=4)
    np.testing.assert_allclose(weights.var(), 3 / (16 * (4 * concentration + 1)), rtol=0.1)


@pytest.mark.parametrize("kind", ["uniform", "dirichlet", "one_hot"])
def test_a_draw_is_its_keys_alone_and_its_columns_are_independent(kind):
    mixture = Mixture(kind, count=50)
    first, again, other = (np.array(mixture.draw(jax.random.PRNGKey(seed), 4)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)
    assert len({tuple(column) for column in first.T.tolist()}) == (4 if kind == "one_hot" else 50)
    correlation = np.corrcoef(draws(Mixture(kind), heads=4)[:, 0].reshape(-1, 2).T)[0, 1]
    assert abs(correlation) < 0.1  # of neighbouring draws: 3 deviations of 1,000 pairs


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "unifrom"}, 'unknown mixture "unifrom": did you mean "uniform"'),
        ({"kind": "zzz"}, "known: dirichlet, mean, one_hot, uniform"),
        ({"kind": "dirichlet", "concentration": 0.0}, "concentration 0.0.*above 0"),
        ({"kind": "dirichlet", "concentration": float("nan")}, "concentration nan"),
        ({"kind": "dirichlet", "concentration": float("inf")}, "concentration inf"),
        ({"count": 0}, "count 0.*at least 1"),
    ],
    ids=str,
)
def test_a_mixture_that_makes_no_sense_is_refused_in_one_line(settings, message):
    with pytest.raises(UsageError, match=message) as refusal:
        Mixture(**settings)
    assert "\n" not in str(refusal.value)
