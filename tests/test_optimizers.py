"""The optimisers take the steps of TensorFlow 1, written here in plain floats, and not those of optax."""

import math

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from optimist.optimizers import Adam, RmsProp

# Small, large, sign-changing and zero: epsilon matters in the first, the moments in the rest.
GRADIENTS = [0.003, -0.4, 2.0, 0.0, -0.05, 0.001]


def rmsprop_by_tf1(gradients, rate: float, decay: float, epsilon: float) -> list[float]:
    """tf.train.RMSPropOptimizer(centered=True, momentum=0), ApplyCenteredRMSProp."""
    square, mean, steps = 1.0, 0.0, []
    for g in gradients:
        square = decay * square + (1 - decay) * g * g
        mean = decay * mean + (1 - decay) * g
        steps.append(-rate * g / math.sqrt(square - mean * mean + epsilon))
    return steps


def adam_by_tf1(gradients, rate: float, b1: float, b2: float, epsilon: float) -> list[float]:
    """tf.train.AdamOptimizer: epsilon is added before the bias is corrected ("epsilon hat")."""
    mean, square, steps = 0.0, 0.0, []
    for t, g in enumerate(gradients, start=1):
        mean = b1 * mean + (1 - b1) * g
        square = b2 * square + (1 - b2) * g * g
        rate_now = rate * math.sqrt(1 - b2**t) / (1 - b1**t)
        steps.append(-rate_now * mean / (math.sqrt(square) + epsilon))
    return steps


def steps_of(transform: optax.GradientTransformation, gradients) -> np.ndarray:
    """The updates of a tree of two parameters, the second with gradients of twice the size; (steps, 2)."""
    params = {"a": jnp.zeros(()), "b": jnp.zeros(1)}
    slots, steps = transform.init(params), []
    for g in gradients:
        updates, slots = transform.update({"a": jnp.float32(g), "b": jnp.full(1, 2 * g)}, slots, params)
        steps.append((updates["a"], updates["b"][0]))
    return np.array(steps)


@pytest.mark.parametrize("optimizer", [RmsProp(), RmsProp(learning_rate=0.01, decay=0.5, epsilon=0.1)])
def test_rmsprop_is_tensorflows(optimizer):
    steps = steps_of(optimizer.transform(), GRADIENTS)
    for column, scale in enumerate((1, 2)):
        gradients = [scale * g for g in GRADIENTS]
        expected = rmsprop_by_tf1(
            gradients, rate=optimizer.learning_rate, decay=optimizer.decay, epsilon=optimizer.epsilon
        )
        np.testing.assert_allclose(steps[:, column], expected, rtol=1e-5)


@pytest.mark.parametrize("optimizer", [Adam(), Adam(learning_rate=0.01, epsilon=0.1, b1=0.5, b2=0.9)])
def test_adam_is_tensorflows(optimizer):
    steps = steps_of(optimizer.transform(), GRADIENTS)
    for column, scale in enumerate((1, 2)):
        expected = adam_by_tf1(
            [scale * g for g in GRADIENTS],
            rate=optimizer.learning_rate,
            b1=optimizer.b1,
            b2=optimizer.b2,
            epsilon=optimizer.epsilon,
        )
        # 1 - 0.999^t loses four digits in float32, in TensorFlow as here.
        np.testing.assert_allclose(steps[:, column], expected, rtol=1e-4)


def test_the_first_step_of_rmsprop_is_not_that_of_optax():
    """From ones the first step is about rate * g; from zeros it is 4 times the rate, whatever g."""
    ours = steps_of(RmsProp().transform(), GRADIENTS[:1])[0, 0]
    theirs = steps_of(optax.rmsprop(2.5e-4, decay=0.95, eps=1e-5), GRADIENTS[:1])[0, 0]
    np.testing.assert_allclose(ours, -2.5e-4 * 0.003 / math.sqrt(0.95), rtol=1e-3)
    assert theirs < 100 * ours < 0


def test_the_first_step_of_adam_is_not_that_of_optax():
    """g / (|g| + 31.6 epsilon), where optax has g / (|g| + epsilon)."""
    epsilon = 0.01 / 32
    ours = steps_of(Adam().transform(), GRADIENTS[:1])[0, 0]
    theirs = steps_of(optax.adam(5e-5, eps=epsilon), GRADIENTS[:1])[0, 0]
    np.testing.assert_allclose(ours, -5e-5 * 0.003 / (0.003 + epsilon / math.sqrt(0.001)), rtol=1e-4)
    np.testing.assert_allclose(theirs, -5e-5 * 0.003 / (0.003 + epsilon), rtol=1e-4)
    assert theirs < 3 * ours < 0


def test_the_defaults_are_the_papers():
    assert RmsProp() == RmsProp(learning_rate=0.00025, decay=0.95, epsilon=0.00001)
    assert Adam() == Adam(learning_rate=0.00005, epsilon=0.0003125, b1=0.9, b2=0.999)
