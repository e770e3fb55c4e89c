"""A loop over stretches without moves of the target takes the same steps as a loop over all steps."""

from functools import partial

import jax
import numpy as np
import pytest

from optimist.agents.rem import Rem
from optimist.data.transition import Spec, Transition
from optimist.equations.optimizers import Adam
from optimist.training.learner import Learner, pays, scan_in_stretches

SPEC = Spec(frame_shape=(5,), frame_dtype="float32", actions=3)
PERIOD = 7
LEARNER = Learner(Rem(columns=4, optimizer=Adam(learning_rate=1e-3), target_period=PERIOD), SPEC)
# Each is compiled once for a number of steps, whatever was before them.
WALK = jax.jit(partial(scan_in_stretches, LEARNER.descended, follow=LEARNER.followed, period=PERIOD))
SCAN = jax.jit(partial(jax.lax.scan, LEARNER.update))


def batches(steps: int) -> Transition:
    random = np.random.default_rng(1)
    observation, next_observation = random.normal(size=(2, steps, 8, 5)).astype(np.float32)
    return Transition(
        observation=observation,
        action=random.integers(3, size=(steps, 8)).astype(np.int32),
        reward=random.normal(size=(steps, 8)).astype(np.float32),
        discount=np.full((steps, 8), 0.9, np.float32),
        next_observation=next_observation,
    )


@pytest.mark.parametrize("before", [0, 1, 6], ids=lambda steps: f"after {steps} steps")
@pytest.mark.parametrize("steps", [1, 6, 23])
def test_stretches_take_the_steps_of_a_scan(steps, before):
    """From the first step, where the target moves at once, and from the middle and the end of a period."""
    one = jax.tree.map(lambda leaf: leaf[0], LEARNER.init((3,))._replace(step=np.zeros(1, np.int32)))
    begun, _ = SCAN(one, batches(before)) if before else (one, None)
    found, expected = WALK(begun, batches(steps)), SCAN(begun, batches(steps))
    assert int(found[0].step) == before + steps
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


def test_stretches_pay_for_the_atari_network_and_not_for_a_small_one():
    atari, minatar = Spec((84, 84, 1), "uint8", actions=18, stack=4), Spec((10, 10, 4), "bool", actions=6)
    targets = [Learner(Rem(), spec).shapes((0, 1)).targets for spec in (atari, minatar)]
    assert [pays(each, seeds=2, period=2_000) for each in targets] == [True, False]
    assert not pays(targets[0], seeds=2, period=1)
