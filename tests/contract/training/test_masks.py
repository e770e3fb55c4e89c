"""Logged action masks limit what agents learn from and how their policies act."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from little import small, vectors
from optimist import agents
from optimist.agents import preset
from optimist.agents._table_agent import Reader, TableAgent
from optimist.agents.rem import Rem
from optimist.data import Dataset, Sampler, Transition, transitions
from optimist.data.warnings import warnings
from optimist.errors import UsageError
from optimist.training.feeding import feed_of
from optimist.training.learner import Learner
from optimist.training.offline import OfflineTraining
from optimist.training.play.acting import Policy
from optimist.training.settings import Training

SPEC = vectors(20, actions_count=3).spec
MAXIMISING = ("dqn", "rem", "c51", "qr_dqn", "discrete_bcq")  # a value, a mixture, atoms, quantiles, a filter


class OwnMixtures(Rem):
    """REM with a mixture for each transition."""

    draws_for_each_step = True


def batch(allowed):
    random = np.random.default_rng(0)
    found = Transition(
        observation=random.normal(size=(4, 4)).astype(np.float32),
        action=np.zeros(4, np.int32),
        reward=np.zeros(4, np.float32),
        discount=np.full(4, 0.9, np.float32),
        next_observation=random.normal(size=(4, 4)).astype(np.float32),
    )
    mask = None if allowed is None else np.broadcast_to(np.array(allowed), (4, 3))
    return found._replace(allowed=mask, next_allowed=mask)


def with_raised(params, action):
    """The parameters with all columns of an action raised, the last ones most."""
    bias = params["q"]["bias"]
    more = jnp.linspace(1, 9, bias.shape[-1])
    return {"q": {**params["q"], "bias": bias.at[..., action, :].add(more)}}


@pytest.mark.parametrize("name", [*MAXIMISING, "own mixtures"])
def test_the_next_value_is_that_of_an_allowed_action(name):
    agent = OwnMixtures(columns=4) if name == "own mixtures" else small(name)
    params = agent.init(jax.random.PRNGKey(0), SPEC)
    (objective,) = agent.objectives(SPEC)
    compiled = jax.jit(objective.loss)

    def loss(allowed, raised):
        others = with_raised(params, 2) if raised else params
        now = others if name == "discrete_bcq" else params  # it chooses by the network, not by the target
        fixed = batch(allowed)._replace(action=np.zeros(4, np.int32))
        return float(compiled(now, others, fixed, jax.random.PRNGKey(1)))

    everything, some = [True, True, True], [True, True, False]
    np.testing.assert_allclose(loss(everything, raised=True), loss(None, raised=True), rtol=1e-6)
    assert loss(None, raised=True) != pytest.approx(loss(None, raised=False), rel=1e-3)
    if name != "discrete_bcq":  # the loss of its cloned policy changes with the network
        np.testing.assert_allclose(loss(some, raised=True), loss(some, raised=False), rtol=1e-6)
    assert loss(some, raised=True) != pytest.approx(loss(None, raised=True), rel=1e-3)


TABLES = {name: preset(name) for name in agents.available() if isinstance(preset(name), TableAgent)}


@pytest.mark.parametrize("name", [name for name, agent in TABLES.items() if agent.next_is_a_maximum])
def test_no_agent_reads_the_next_values_without_their_mask(name):
    agent = small(name)
    params, read = agent.init(jax.random.PRNGKey(0), SPEC), []

    def loss(step):
        def q(observation, allowed=None):
            if observation is step.next_observation:
                read.append(allowed is step.next_allowed)
            return Reader(agent.table(SPEC), params["q"])(observation, allowed)

        return agent.loss(q, q, step, jax.random.PRNGKey(1))

    jax.eval_shape(loss, jax.tree.map(lambda column: column[0], batch([True, True, False])))
    assert all(read) and (read or not agent.has_values)


@pytest.mark.parametrize("name", ["dqn", "discrete_bcq", "discrete_iql", "random"])
def test_a_policy_chooses_among_the_allowed_actions(name):
    agent = small(name)
    policy = Policy(Learner(agent, SPEC), agent.init(jax.random.PRNGKey(0), SPEC))
    observations = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
    masks = np.eye(3, dtype=bool)[np.arange(9) % 3]
    np.testing.assert_array_equal(policy(observations, allowed=masks), np.arange(9) % 3)


def test_a_policy_without_a_mask_prefers_what_a_mask_can_forbid():
    params = small("dqn").init(jax.random.PRNGKey(0), SPEC)
    policy = Policy(Learner(small("dqn"), SPEC), with_raised(with_raised(params, 2), 2))
    here = np.zeros(4, np.float32)
    assert policy(here) == 2 and policy(here, allowed=np.array([True, True, False])) in (0, 1)
    assert policy(here, allowed=[True, True, True]) == 2
    wrong = {r"\(3,\) true or false": [True], "true or false": [1, 1, 1], "at least one": [False] * 3}
    for said, mask in wrong.items():
        with pytest.raises(UsageError, match=said):
            policy(here, allowed=mask)


def masked_log(**ends):
    """Masks that allow what was done, and the log that has them."""
    masks = np.random.default_rng(1).random((40, 3)) < 0.5
    every = vectors(40, truncations=True, next_observations=np.zeros((40, 4)))  # the last row too
    masks[np.arange(40), every.timeline.action] = True
    return masks, vectors(40, actions_count=3, allowed_actions=masks, **ends)


def test_the_masks_of_a_transition_are_those_of_its_row_and_of_the_row_after_it():
    masks, data = masked_log()
    for n_step in (1, 3):
        sampler = Sampler(data, n_step=n_step)
        found = transitions(sampler, np.arange(len(data)), data.timeline.frames)
        np.testing.assert_array_equal(found.allowed, masks[: len(data)])  # the last row has no successor
        for position in range(len(data)):
            stop = int(data.stops[data.ranges_at(np.array([position]))[0]])
            after = min(position + n_step, stop)
            if data.timeline.terminal[after - 1]:  # nothing was logged after this end
                after = after - 1
            np.testing.assert_array_equal(found.next_allowed[position], masks[after])


def test_what_stands_for_the_mask_after_an_end_is_said():
    """It was: every action is allowed. Then values of actions that nobody can take were learned from."""
    ends = {"truncations": True, "next_observations": np.zeros((40, 4))}  # every row is an episode
    masks = {"allowed_actions": np.ones((40, 2), bool)}
    assert not any("stand for it" in line for line in warnings(vectors(40, **ends)))
    data = vectors(40, **masks, **ends)
    (line,) = (line for line in warnings(data) if "stand for it" in line)
    cut = int(data.episodes.truncated.sum())
    assert cut and line.startswith(f"{cut} of {len(data.episodes)} episodes are truncated, and what could be")
    given = vectors(40, **masks, **ends, next_allowed_actions=np.ones((40, 2), bool))
    dropped = vectors(40, **masks, truncations=np.arange(40) % 8 == 7)  # the dropped rows say it
    assert dropped.episodes.truncated.any()
    assert not any("stand for it" in line for known in (given, dropped) for line in warnings(known))


def test_a_part_of_a_log_keeps_the_mask_of_the_row_after_its_last():
    masks, data = masked_log()
    length = int(data.stops[0]) - 2  # the part ends within the first episode
    part = data.first(length)
    found = transitions(Sampler(part), np.array([length - 1]), part.timeline.frames).next_allowed
    assert not masks[length].all()
    np.testing.assert_array_equal(found[0], masks[length])


@pytest.mark.parametrize("name", ["behaviour_cloning", "discrete_bcq", "discrete_iql"])
def test_an_action_that_was_not_allowed_was_not_avoided(name):
    """Its logit, which is in the last column, has no part in the loss, and so no gradient."""
    agent = small(name, logit_decay=0.0) if name == "discrete_bcq" else small(name)
    params = agent.init(jax.random.PRNGKey(0), SPEC)

    def loss(more, mask):
        moved = {"q": {**params["q"], "bias": params["q"]["bias"].at[..., 2, -1].add(more)}}
        return Learner(agent, SPEC).losses(moved, params, batch(mask), jax.random.PRNGKey(1))["q"]

    masked_slope, open_slope = (
        jax.grad(loss)(0.0, mask) for mask in ([True, True, False], [True, True, True])
    )
    assert masked_slope == 0 and open_slope != 0


@pytest.mark.parametrize("name", ["cql", "rem_cql", "qr_cql", "c51_cql"])
def test_the_conservative_term_counts_the_actions_that_could_be_chosen(name):
    agent, random = small(name), np.random.default_rng(2)
    params = with_raised(agent.init(jax.random.PRNGKey(0), SPEC), 2)
    open_steps = batch(None)._replace(action=random.integers(3, size=4).astype(np.int32))
    masks = random.random((4, 3)) < 0.5
    masks[np.arange(4), open_steps.action] = True
    steps, excess = open_steps._replace(allowed=masks, next_allowed=masks), 0.0
    for observation, action, mask in zip(steps.observation, steps.action, masks, strict=True):
        values = np.asarray(agent.values(agent.table(SPEC)(params["q"], observation)), float)
        allowed = [np.exp(value) for value, is_allowed in zip(values, mask, strict=True) if is_allowed]
        excess += (np.log(sum(allowed)) - values[action]) / 4
    with_term, without = (
        Learner(each, SPEC).losses(params, params, steps, jax.random.PRNGKey(1))["q"]
        for each in (agent, replace(agent, conservatism=0.0))
    )
    assert not masks.all()
    np.testing.assert_allclose(with_term - without, agent.conservatism * excess, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("where", ["device", "packed", "memory", "compressed"])
def test_every_feed_gives_the_logged_masks(where):
    _, data = masked_log(truncations=np.arange(40) % 3 == 2)  # and those of dropped rows
    samplers = [Sampler(data, batch=5, seed=seed) for seed in (0, 1)]
    feed = feed_of(samplers, where)
    items = feed.items(0, 2)
    for seed, sampler in enumerate(samplers):
        item = jax.tree.map(lambda leaf, seed=seed: leaf[1, seed], items)
        found = jax.jit(feed.minibatch)(feed.resident, item)
        expected = transitions(sampler, sampler.positions(1, 1)[0], data.timeline.frames)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    plain = feed_of([Sampler(vectors(40), batch=5)], where)
    first = jax.tree.map(lambda leaf: leaf[0, 0], plain.items(0, 1))
    assert jax.jit(plain.minibatch)(plain.resident, first).allowed is None


def test_a_policy_answers_with_the_ids_of_the_log():
    spec = Dataset.from_arrays(np.zeros((3, 4)), [2_000_000, 17, 404], np.zeros(3), np.ones(3)).spec
    policy = Policy(Learner(small("dqn"), spec), small("dqn").init(jax.random.PRNGKey(0), spec))
    only_last = [False, False, True]
    assert policy(np.zeros(4, np.float32), allowed=only_last) == 2_000_000
    answers = policy(np.zeros((2, 4), np.float32), allowed=only_last)
    np.testing.assert_array_equal(answers, [2_000_000] * 2)
    assert policy(np.zeros(4, np.float32)) in (17, 404, 2_000_000)


@pytest.mark.parametrize("shape", [(3, 12, 12), (12, 12)])
def test_a_policy_takes_images_in_the_layout_of_the_log(shape):
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (5, *shape)).astype(np.uint8)
    data = Dataset.from_arrays(pixels, np.arange(5) % 2, np.zeros(5), np.ones(5))
    agent = small("dqn")
    policy = Policy(Learner(agent, data.spec), agent.init(jax.random.PRNGKey(0), data.spec))
    inside, stored = policy.learner.action, np.moveaxis(pixels.reshape(5, -1, 12, 12), 1, -1)
    for row in range(5):
        expected = int(inside(policy.params, stored[row], jax.random.PRNGKey(0)))
        assert policy(pixels[row]) == policy(data.observation(row)) == expected
    assert policy(pixels).tolist() == [policy(each) for each in pixels]


def test_a_training_says_that_its_environment_has_no_masks(tmp_path, caplog):
    data = vectors(40, actions_count=2, allowed_actions=np.ones((40, 2), bool))
    asked = {"out": tmp_path, "environment": "gym/CartPole-v1"}
    OfflineTraining(small("dqn"), data, Training(steps=2), **asked).prepare()
    assert "gym/CartPole-v1 gives none: every action can be chosen there" in caplog.text
