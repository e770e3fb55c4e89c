"""The optimisers take the steps of TensorFlow 1, written here in plain floats."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optimist.equations.optimizers import Adam, RmsProp
from optimist.errors import UsageError

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


def adam_by_tf1(gradients, rate: float, epsilon: float, b1: float, b2: float) -> list[float]:
    """tf.train.AdamOptimizer: epsilon is added before the bias is corrected ("epsilon hat")."""
    mean, square, steps = 0.0, 0.0, []
    for t, g in enumerate(gradients, start=1):
        mean = b1 * mean + (1 - b1) * g
        square = b2 * square + (1 - b2) * g * g
        rate_now = rate * math.sqrt(1 - b2**t) / (1 - b1**t)
        steps.append(-rate_now * mean / (math.sqrt(square) + epsilon))
    return steps


def steps_of(transform, gradients) -> np.ndarray:
    """The updates of a tree of two parameters, the second with gradients of twice the size; (steps, 2)."""
    params = {"a": jnp.zeros(()), "b": jnp.zeros(1)}
    slots, steps = transform.init(params), []
    for g in gradients:
        updates, slots = transform.update({"a": jnp.float32(g), "b": jnp.full(1, 2 * g)}, slots, params)
        steps.append((updates["a"], updates["b"][0]))
    return np.array(steps)


@pytest.mark.parametrize(
    ("optimizer", "by_tf1"),
    [
        (RmsProp(), rmsprop_by_tf1),
        (RmsProp(learning_rate=0.01, decay=0.5, epsilon=0.1), rmsprop_by_tf1),
        (Adam(), adam_by_tf1),
        (Adam(learning_rate=0.01, epsilon=0.1, b1=0.5, b2=0.9), adam_by_tf1),
    ],
)
def test_an_optimiser_is_tensorflows(optimizer, by_tf1):
    steps, (rate, *more) = steps_of(optimizer.transform(), GRADIENTS), vars(optimizer).values()
    for column, scale in enumerate((1, 2)):
        expected = by_tf1([scale * g for g in GRADIENTS], rate, *more[: 2 if by_tf1 is rmsprop_by_tf1 else 3])
        # 1 - 0.999^t loses four digits in float32, in TensorFlow as here.
        np.testing.assert_allclose(steps[:, column], expected, rtol=1e-4)


HEADS = Adam(learning_rate=0.01, epsilon=0.1, head_epsilon=0.002)


def test_the_last_layer_of_a_table_may_have_an_epsilon_of_its_own():
    """Heads and torso take the steps of two Adams with two epsilons."""
    params = {
        "torso": [{"weight": jnp.zeros(()), "bias": jnp.zeros(())}],
        "weight": jnp.zeros(()),
        "bias": jnp.zeros(()),
    }
    slots, steps = HEADS.transform().init(params), []
    for g in GRADIENTS:
        gradients = jax.tree.map(lambda _, g=g: jnp.float32(g), params)
        updates, slots = HEADS.transform().update(gradients, slots, params)
        steps.append(
            [updates["torso"][0]["weight"], updates["torso"][0]["bias"], updates["weight"], updates["bias"]]
        )
    for column, epsilon in enumerate((0.1, 0.1, 0.002, 0.002)):
        expected = adam_by_tf1(GRADIENTS, rate=0.01, b1=0.9, b2=0.999, epsilon=epsilon)
        np.testing.assert_allclose(np.array(steps)[:, column], expected, rtol=1e-4)


def test_the_share_of_a_full_step_is_root_square_over_root_square_plus_epsilon():
    params = {"torso": [jnp.zeros(3)], "weight": jnp.zeros(2), "bias": jnp.zeros(1)}
    slots = (
        HEADS.transform()
        .init(params)
        ._replace(
            square={
                "torso": [jnp.array([0.01, 0.04, 0.0])],
                "weight": jnp.array([4e-6, 0.0]),
                "bias": jnp.array([1.0]),
            }
        )
    )
    shares = HEADS.step_shares(slots)
    np.testing.assert_allclose(shares["torso"], np.mean([0.1 / 0.2, 0.2 / 0.3, 0.0]), rtol=1e-6)
    np.testing.assert_allclose(shares["heads"], np.mean([0.002 / 0.004, 0.0, 1 / 1.002]), rtol=1e-6)
    assert Adam(epsilon=0.0).step_shares(slots)["torso"] == np.float32(2 / 3)  # no epsilon: full steps


def test_weight_decay_is_pytorchs():
    """The gradient gains the decay's share of the weight before anything else is made of it."""
    optimizer, weight, slots = Adam(learning_rate=0.1, epsilon=1e-8, weight_decay=0.5), jnp.float32(2.0), None
    slots, gradients = optimizer.transform().init(weight), []
    by_hand = 2.0
    for number, g in enumerate(GRADIENTS):
        gradients.append(g + 0.5 * by_hand)
        update, slots = optimizer.transform().update(jnp.float32(g), slots, weight)
        weight = weight + update
        by_hand += adam_by_tf1(gradients, rate=0.1, b1=0.9, b2=0.999, epsilon=1e-8)[number]
        np.testing.assert_allclose(weight, by_hand, rtol=1e-4)


@pytest.mark.parametrize("changes", [{"head_epsilon": -1.0}, {"weight_decay": math.inf}])
def test_settings_of_adam_that_make_no_sense_are_refused(changes):
    with pytest.raises(UsageError, match=f"{next(iter(changes))} is"):
        Adam(**changes)
