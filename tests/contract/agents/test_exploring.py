"""Collecting: one mixture of the heads plays a whole episode; evaluating: their mean."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optimist import agents
from optimist.training.learner import Learner
from optimist.training.play.acting import Policy, act, act_online
from small_agents import (
    CONTROL,
    VECTORS,
)

# Collecting: one mixture of the heads plays an episode from its beginning to its end; evaluating: their mean.


LANES = 40
COMPROMISE = [[1.0, 0.0, 0.6], [0.0, 1.0, 0.6]]  # each head wants an action of its own, their mean a third


def voters(explore: str = "mean") -> tuple[Learner, dict]:
    """Two separate networks that value the three actions as above, whatever they see."""
    agent = agents.EnsembleDqn(columns=2, networks=2, network="linear", explore=explore)
    params = {
        "torso": [],
        "weight": jnp.zeros((1, 2, 6, 3, 1)),
        "bias": jnp.array(COMPROMISE)[None, :, :, None],
    }
    return Learner(agent, VECTORS), {"q": params}


def collect(learner, params, episode: int, turn: int, epsilon: float = 0.0) -> np.ndarray:
    """The action of each lane, all in the same episode by number."""
    observations = np.random.default_rng(turn).normal(size=(1, LANES, 6)).astype(np.float32)
    episodes = np.full((1, LANES), episode, np.int32)
    key = jax.random.PRNGKey(0)
    return np.array(act_online(learner, params, observations, epsilon, key, turn, episodes))[0]


def evaluate(learner, params, turn: int, epsilon: float = 0.0) -> np.ndarray:
    observations = np.random.default_rng(turn).normal(size=(1, LANES, 6)).astype(np.float32)
    return np.array(act(learner, params, observations, epsilon, jax.random.PRNGKey(0), turn))[0]


def chi_square(actions) -> float:
    """Pearson's distance from even use of three actions; above 13.8 once in a thousand."""
    actions = np.ravel(actions).tolist()
    expected = len(actions) / 3
    return sum((actions.count(a) - expected) ** 2 / expected for a in range(3))


@pytest.mark.parametrize(("explore", "wanted"), [("one_hot", {0, 1}), ("uniform", {0, 1, 2})])
def test_one_mixture_plays_a_whole_episode_and_another_the_next(explore, wanted):
    """A head is never the compromise; a mixture of REM can want what no head wants."""
    learner, params = voters(explore=explore)
    played = []
    for episode in range(12):
        heads = collect(learner, params, episode, turn=episode)
        for later in (episode + 50, episode + 1000):
            np.testing.assert_array_equal(collect(learner, params, episode, turn=later), heads)
        played.append(heads)
    assert {*np.ravel(played)} == wanted
    if explore == "one_hot":
        np.testing.assert_allclose(np.mean(played), 0.5, atol=0.07)  # 3 deviations of 480 fair coins
    lanes = [tuple(heads) for heads in np.array(played).T.tolist()]
    assert all(len(set(heads)) > 1 for heads in lanes)  # within 12 episodes each lane has had several
    assert len(set(lanes)) > LANES / 2  # and the lanes do not change heads together


def test_evaluation_plays_the_mean_whatever_explores_and_so_does_a_collection_without_a_mixture():
    assert {*evaluate(*voters(explore="one_hot"), turn=0)} == {2}
    assert {*collect(*voters(explore="mean"), episode=3, turn=0)} == {2}


@pytest.mark.parametrize(
    "play", [evaluate, functools.partial(collect, episode=0)], ids=["evaluate", "collect"]
)
def test_epsilon_one_is_any_action_and_a_smaller_one_mostly_the_best(play):
    learner, params = voters(explore="one_hot")
    assert chi_square([play(learner, params, turn=turn, epsilon=1.0) for turn in range(30)]) < 13.8
    best = play(learner, params, turn=0, epsilon=0.0)
    mostly = [play(learner, params, turn=turn, epsilon=0.3) == best for turn in range(30)]
    np.testing.assert_allclose(np.mean(mostly), 0.7 + 0.3 / 3, atol=0.035)  # 3 deviations of 1,200


def test_the_random_agent_plays_every_action_equally_often():
    learner = Learner(agents.Random(), VECTORS)
    played = np.array([evaluate(learner, {}, turn=turn) for turn in range(30)])
    assert chi_square(played) < 13.8
    assert len({tuple(lane) for lane in played.T.tolist()}) == LANES  # lanes play each for itself
    assert chi_square([0] * 20 + [1] * 40 + [2] * 60) > 13.8


def test_the_random_agent_plays_every_corner_of_a_box_equally_often():
    box = dataclasses.replace(CONTROL, action_low=(-2.0, 0.0), action_high=(2.0, 1.0))
    learner = Learner(agents.Random(), box)
    learner.agent.check(box)
    observations = np.zeros((1, LANES, 6), np.float32)
    played = [act(learner, {}, observations, 0.0, jax.random.PRNGKey(0), turn)[0] for turn in range(30)]
    low, high = np.array(box.action_low), np.array(box.action_high)
    shares = (np.concatenate(played) - low) / (high - low)
    assert shares.min() >= 0 and shares.max() <= 1
    for part in range(2):
        np.testing.assert_allclose(
            np.quantile(shares[:, part], (0.25, 0.5, 0.75)), (0.25, 0.5, 0.75), atol=0.06
        )
    assert abs(np.corrcoef(shares.T)[0, 1]) < 0.1


def test_the_policy_of_a_table_agent_says_the_same_each_time():
    learner, params = voters()
    policy = Policy(learner, jax.tree.map(lambda leaf: leaf[0], params))
    assert [policy(np.zeros(6, np.float32)) for _ in range(3)] == [2, 2, 2]
