"""Probes are states of each seed's own log; values and agreement are those of plain loops over them."""

import jax
import numpy as np
import pytest

from little import small, vectors
from optimist.data import Dataset, Recorder, Sampler, Spec
from optimist.training.guard import COMPARED, COUNT, agreement, answers, probes_of
from optimist.training.learner import Learner


def small_players(path, players: tuple[int, ...]) -> Dataset:
    """Players whose observations are their own numbers."""
    spec = Spec((2,), "float32", actions=2)
    provenance = {"seeds": list(players), "collection": {"lanes": 1}}
    seen = np.array([[seed] * 2 for seed in players], np.float32)
    with Recorder(path, spec, lanes=len(players), provenance=provenance) as recorder:
        for row in range(40):
            ends = np.full(len(players), row % 5 == 4)
            recorder.add(seen, np.zeros(len(players), int), np.ones(len(players)), ends, ends & False, seen)
    return Dataset.open(path)


def test_each_seed_is_probed_on_its_own_log(tmp_path):
    log = small_players(tmp_path, (3, 5))
    probes = probes_of([Sampler(log.played_by(seed), seed=seed) for seed in (3, 5)])
    assert probes.observation.shape == (2, COUNT, 2)
    assert [set(np.unique(each)) for each in probes.observation] == [{3.0}, {5.0}]


def test_the_probes_of_a_seed_are_the_same_for_every_batch_and_neighbour():
    one, both = (
        probes_of([Sampler(vectors(), 8, seed=4)]),
        probes_of([Sampler(vectors(), 32, seed=9), Sampler(vectors(), 32, seed=4)]),
    )
    np.testing.assert_array_equal(one.observation[0], both.observation[1])
    assert (np.asarray(both.observation[0]) != np.asarray(both.observation[1])).any()


def test_values_and_agreement_are_those_of_each_seeds_own_network():
    learner, data = Learner(small("dqn"), vectors().spec), vectors()
    probes, state = probes_of([Sampler(data, seed=seed) for seed in (4, 9)]), learner.init((4, 9))
    found = answers(learner, 2, state.params, probes)
    for place in (0, 1):
        x = np.asarray(probes.observation[place])
        for weight, bias in state.params["q"]["torso"]:
            x = np.maximum(x @ np.asarray(weight[place]) + np.asarray(bias[place]), 0)
        table = x @ np.asarray(state.params["q"]["weight"][place, :, :, 0])
        np.testing.assert_allclose(found.values[place], table.max(axis=1), rtol=1e-4)
        share = (table.argmax(axis=1) == np.asarray(probes.action[place])).mean()
        np.testing.assert_allclose(found.agreement[place], share, rtol=1e-6)


def test_only_allowed_actions_count_where_masks_were_logged():
    """Of two actions the logged one alone is allowed: agreement is full, and the value is that action's."""
    plain = vectors()
    data = vectors(allowed_actions=np.eye(2, dtype=bool)[plain.timeline.action])
    learner = Learner(small("dqn"), data.spec)
    probes, state = probes_of([Sampler(data)]), learner.init((0,))
    masked, free = (
        answers(learner, 1, state.params, each) for each in (probes, probes._replace(allowed=None))
    )
    assert masked.agreement[0] == 1 > free.agreement[0]
    agrees = np.asarray(masked.values) == np.asarray(free.values)
    assert agrees.mean() == pytest.approx(float(free.agreement[0]), abs=1e-6)
    assert (np.asarray(masked.values) <= np.asarray(free.values)).all()


@pytest.mark.parametrize("agent", ["behaviour_cloning", "random"])
def test_an_agent_without_values_has_only_its_agreement(agent):
    learner = Learner(small(agent), vectors().spec)
    found = answers(learner, 2, learner.init((0, 1)).params, probes_of([Sampler(vectors())] * 2))
    assert found.values is None and found.agreement.shape == (2,)


def test_an_actor_is_compared_in_some_states_and_judged_in_all():
    random = np.random.default_rng(0)
    columns = (random.normal(size=(60, 3)), random.uniform(-1, 1, (60, 2)), random.normal(size=60))
    data = Dataset.from_arrays(*columns, np.arange(60) % 6 == 5, truncations=False)
    learner, probes = Learner(small("td3"), data.spec), probes_of([Sampler(data)])
    params = learner.init((0,)).params
    alone = jax.tree.map(lambda leaf: leaf[0], params)
    found = answers(learner, 1, params, probes)
    observations, logged = np.asarray(probes.observation[0]), np.asarray(probes.action[0])
    values = jax.vmap(lambda seen: learner.estimate(alone, seen))(observations)
    np.testing.assert_allclose(found.values[0], values, rtol=1e-4, atol=1e-6)
    acted = jax.vmap(lambda seen: learner.action(alone, seen, None))(observations[:COMPARED])
    width = np.subtract(data.spec.action_high, data.spec.action_low)
    expected = 1 - (np.abs(acted - logged[:COMPARED]) / width).mean()
    np.testing.assert_allclose(found.agreement[0], expected, rtol=1e-5)


def test_vectors_agree_as_far_as_they_are_close():
    spec = Spec((2,), "float32", action_low=(-1.0, 0.0), action_high=(1.0, 4.0))
    ours = np.array([-1.0, 1.0])
    assert agreement(spec, ours, ours) == 1
    assert agreement(spec, np.array(spec.action_low), np.array(spec.action_high)) == 0
    assert agreement(spec, ours, np.array([0.0, 2.0])) == 1 - (0.5 + 0.25) / 2
