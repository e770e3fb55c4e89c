"""Observations of vectors are scaled by the data, and everything that acts with a run scales them alike."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optimist
from little import outcome, small, vectors
from optimist.agents import TableAgent
from optimist.cli.main import main
from optimist.errors import RunError, UsageError
from optimist.training import scaling
from optimist.training.export.numpy_policy import NumpyPolicy
from optimist.training.learner import Learner
from optimist.training.offline import OfflineTraining
from optimist.training.play.acting import Player, Policy
from optimist.training.run import load_run
from optimist.training.scaling import Inputs, measured
from optimist.training.settings import Training
from optimist.training.storage.run_folder import read_config

SHORT = Training(steps=300, evaluate_every=100, batch=16, hold_out=0)
QUICK = {"optimizer.learning_rate": 0.01, "optimizer.epsilon": 1e-5}


def unlike(steps=600) -> optimist.Dataset:
    """The second feature, 0 or 1, says which action pays; the first is near 50,000 and says nothing."""
    random = np.random.default_rng(0)
    flag, action = random.integers(2, size=(2, steps))
    features = np.stack([50_000 + 1000 * random.normal(size=steps), flag], axis=1)
    return optimist.Dataset.from_arrays(features, action, (action == flag) * 1.0, np.ones(steps, bool))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with the default settings, on that log."""
    out = tmp_path_factory.mktemp("runs") / "run"
    OfflineTraining(small("rem", **QUICK), unlike(), SHORT, out=out).run()
    return load_run(out)


def accuracy(run) -> float:
    """How often the policy takes the action that pays, given observations as they were logged."""
    data = unlike()
    features = data.timeline.frames(np.arange(0, 2 * len(data), 2))
    return float((run.policy(features) == features[:, 1]).mean())


def test_a_large_feature_does_not_hide_a_small_one(run, tmp_path):
    assert accuracy(run) > 0.95
    raw = replace(SHORT, observations="none")
    OfflineTraining(small("rem", **QUICK), unlike(), raw, out=tmp_path / "raw").run()
    assert accuracy(load_run(tmp_path / "raw")) < 0.7


def test_the_run_keeps_the_numbers(run):
    config, data = read_config(run.path), unlike()
    features = data.timeline.frames(np.arange(0, 2 * len(data), 2)).astype(np.float64)
    assert config["training"]["observations"] == "standard"
    np.testing.assert_allclose(config["inputs"]["centre"], features.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(config["inputs"]["spread"], features.std(axis=0), rtol=1e-9)
    assert run.learner.inputs.as_config() == config["inputs"]


def test_every_way_to_act_sees_what_training_saw(run):
    raw = unlike().timeline.frames(np.arange(8) * 2)
    scaled, params = run.learner.inputs(jnp.asarray(raw)), jax.tree.map(lambda leaf: leaf[0], run.params)
    expected = Policy(Learner(run.learner.agent, run.learner.spec), params)(scaled)
    assert set(expected) == {0, 1}
    np.testing.assert_array_equal(run.policy(raw), expected)
    played = Player(run.learner, lanes=8)(run.params, raw, np.ones(8, bool), 0.0, jax.random.PRNGKey(0), 0)
    np.testing.assert_array_equal(played[0], expected)


def with_one_absurd_value(row=321) -> optimist.Dataset:
    """The log `unlike`, in which the feature that matters is 1,000,000 in one row."""
    data = unlike(4_000)
    features = data.timeline.frames(np.arange(0, 2 * len(data), 2)).copy()
    features[row, 1] = 1e6
    return optimist.Dataset.from_arrays(
        features, data.timeline.action, data.timeline.reward, np.ones(len(data), bool)
    )


@pytest.mark.parametrize("kind", ["standard", "range"])
def test_one_absurd_value_of_a_feature_decides_no_scale(kind, caplog):
    """The standard deviation was 15,811: the values 0 and 1 were 6e-5 apart."""
    plain, odd = measured([unlike(4_000)], kind), measured([with_one_absurd_value()], kind)
    np.testing.assert_allclose(odd.spread, plain.spread, rtol=1e-3)
    np.testing.assert_allclose(odd.centre, plain.centre, rtol=1e-2)
    assert float(odd(jnp.array([50_000.0, 1e6]))[1]) == 10
    assert [record.message for record in caplog.records] == [
        "feature 1 is 1e+06 in row 321, far beyond its other values: it is read as 10 standard deviations "
        "and decides no scale; mend it, or leave the row out"
    ]


def test_a_policy_and_its_export_use_the_feature_beside_an_absurd_value(tmp_path):
    OfflineTraining(small("dqn", **QUICK), with_one_absurd_value(), SHORT, out=tmp_path / "run").run()
    run = load_run(tmp_path / "run")
    assert accuracy(run) > 0.95
    main(["export", str(tmp_path / "run"), "--to", str(tmp_path / "policy.npz")])
    rows = np.array([[50_000, 0], [50_000, 1], [49_000, 1e6]], np.float32)
    exported = NumpyPolicy(tmp_path / "policy.npz")
    np.testing.assert_array_equal([exported(row) for row in rows], run.policy(rows))


def test_rare_values_of_a_feature_that_hardly_varies_keep_their_scale():
    scale = measured([rare()], "standard")
    np.testing.assert_allclose(scale.spread[1], np.sqrt(3 / 900 * (1 - 3 / 900)), rtol=1e-6)


def rare(steps=900) -> optimist.Dataset:
    """The second feature is 1 in one row of 300; there the other action pays."""
    random = np.random.default_rng(0)
    flag, action = np.arange(steps) % 300 == 0, random.integers(2, size=steps)
    features = np.stack([random.normal(size=steps), flag], axis=1)
    return optimist.Dataset.from_arrays(features, action, (action == flag) * 1.0, np.ones(steps, bool))


def test_a_standardised_feature_ends_at_ten_deviations():
    """A network overrates a state whose feature is 47 (results/reward-scale, the log of a machine)."""
    scale = measured([rare()], "standard")
    assert scale.limit == 10 and 1 / scale.spread[1] > 17
    seen = np.asarray(scale(jnp.array([[0.0, 1.0], [0.0, 0.0], [-1e6, 0.5], [0.3, 1e6]])))
    assert seen[0, 1] == 10 and -0.1 < seen[1, 1] < 0
    assert seen[2, 0] == -10 and seen[3, 1] == 10 and np.abs(seen[3, 0] - 0.3) < 0.1


def test_a_run_acts_as_it_learned_far_from_the_mean(tmp_path):
    """A row beyond the limit is the row at the limit, for the policy and for the loss alike."""
    OfflineTraining(small("dqn", **QUICK), rare(), SHORT, out=tmp_path / "run").run()
    run, far = load_run(tmp_path / "run"), np.array([[0.0, 50.0], [30.0, 0.0], [-40.0, -7.0]], np.float32)
    assert read_config(run.path)["inputs"]["limit"] == 10.0 == run.learner.inputs.limit
    edge = far.clip(
        *(run.learner.inputs.centre + side * 10 * np.array(run.learner.inputs.spread) for side in (-1, 1))
    )
    params = jax.tree.map(lambda leaf: leaf[0], run.params)
    values = [jax.vmap(partial(run.learner.estimate, params))(jnp.asarray(each)) for each in (far, edge)]
    np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-5)
    free = replace(run.learner, inputs=replace(run.learner.inputs, limit=np.inf))
    assert np.abs(jax.vmap(partial(free.estimate, params))(jnp.asarray(far)) - values[0]).max() > 0.1


def test_a_resumed_run_has_the_bits_of_a_straight_one(run, tmp_path):
    for steps in (100, 300):
        OfflineTraining(
            small("rem", **QUICK), unlike(), replace(SHORT, steps=steps), out=tmp_path / "twice"
        ).run()
    assert outcome(tmp_path / "twice") == outcome(run.path)


def test_a_resumed_run_takes_the_stored_numbers_and_does_not_measure_again(run, monkeypatch):
    monkeypatch.setattr(scaling, "_blocks", lambda logs: pytest.fail("the data was measured again"))
    training = OfflineTraining(small("rem", **QUICK), unlike(), SHORT, out=run.path).prepare()
    training.folder.release()
    assert training.learner.inputs == run.learner.inputs


def test_another_scaling_is_another_run(run):
    with pytest.raises(RunError) as caught:
        OfflineTraining(
            small("rem", **QUICK), unlike(), replace(SHORT, observations="range"), out=run.path
        ).prepare()
    assert "(training.observations: 'standard' saved, 'range' requested)" in str(caught.value)


def test_changed_numbers_are_refused(run, tmp_path):
    """A checkpoint belongs to the numbers with which it was trained."""
    config = run.path / "config.toml"
    text = config.read_text()
    try:
        first = repr(run.learner.inputs.centre[0])
        config.write_text(text.replace(first, repr(run.learner.inputs.centre[0] + 1)))
        with pytest.raises(RunError):
            load_run(run.path)
        config.write_text(text.replace(first, "nan"))
        with pytest.raises(RunError, match=r"\[inputs\] that do not fit its spec"):
            load_run(run.path)
    finally:
        config.write_text(text)
    assert load_run(run.path).step == 300


SPEC = vectors().spec


def test_numbers_from_a_file_are_checked():
    good: dict = {"centre": [0.0] * 4, "spread": [1.0] * 4, "limit": 10.0}
    assert Inputs.from_config(None, SPEC) is None and Inputs.from_config(good, SPEC)
    wrong = [3, {}, {"centre": good["centre"]}, {**good, "spread": [1.0] * 3}]
    wrong += [{**good, "spread": [1.0, 1.0, bad, 1.0]} for bad in (0.0, float("inf"))]
    wrong += [{**good, "centre": [0.0, "1", 0.0, 0.0]}]
    wrong += [{**good, "limit": bad} for bad in (0.0, "10", float("nan"), None)]
    for table in wrong:
        with pytest.raises(RunError):
            Inputs.from_config(table, SPEC)


@pytest.mark.parametrize("block", [8, 200, 2**24])
def test_a_log_is_measured_in_blocks_of_any_size(block, monkeypatch):
    monkeypatch.setattr(scaling, "BLOCK", 32 * block)
    random = np.random.default_rng(0)
    features = (random.normal(size=(500, 4)) * [1, 1e-3, 1e6, 0] + [1e6, 0, 3, 7]).astype(np.float32)
    ends = random.random(500) < 0.1
    ends[-1] = True
    log = (features, np.zeros(500, int), np.zeros(500), ends)
    data = optimist.Dataset.from_arrays(*log, truncations=np.zeros(500, bool))
    exact = features.astype(np.float64)
    found = measured([data], "standard")
    np.testing.assert_allclose(found.centre, exact.mean(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.spread, [*exact.std(axis=0)[:3], 1.0], rtol=1e-9)
    scaled = np.asarray(measured([data], "range")(jnp.asarray(features)))
    np.testing.assert_allclose(scaled.min(axis=0), [-1, -1, -1, 0], atol=1e-5)
    np.testing.assert_allclose(scaled.max(axis=0), [1, 1, 1, 0], atol=1e-5)


def test_only_what_is_learned_from_is_measured_and_each_log_once():
    data = optimist.Dataset.from_arrays(
        np.arange(100.0)[:, None], np.zeros(100, int), np.zeros(100), np.ones(100, bool)
    )
    assert measured([data.first(10)], "standard").centre == (4.5,)
    assert measured([data.first(10)] * 3 + [data.last(10)], "standard").centre == (49.5,)


def test_a_missing_frame_of_a_stack_is_the_centre():
    scaled = Inputs((10.0, -4.0), (2.0, 0.5))(jnp.array([[0.0, 0.0, 12.0, -4.0], [8.0, 0.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(scaled, [[0, 0, 1, 0], [-1, 8, -5, 8]])


@pytest.mark.parametrize("kind", ["standard", "range"])
def test_images_are_not_scaled(kind, tmp_path):
    images = optimist.Dataset.from_arrays(
        np.zeros((10, 3, 3, 1), np.uint8), np.zeros(10, int), np.zeros(10), np.ones(10, bool), channels="last"
    )
    assert measured([images], "none") is None
    with pytest.raises(UsageError, match="needs vectors of float32; these are 3x3x1 uint8 frames"):
        OfflineTraining(
            small("dqn"), images, replace(SHORT, observations=kind), out=tmp_path / "run"
        ).prepare()
    assert not (tmp_path / "run").exists()


def program(learner: Learner, method: str, prepared=lambda observations: observations) -> str:
    """What a method of a learner computes from observations that were `prepared`."""
    params = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), learner.shapes((0,)))
    state, key = params._replace(step=jax.ShapeDtypeStruct((), jnp.int32)), jax.random.PRNGKey(0)
    data = jax.tree.map(jnp.asarray, RAW[learner.spec.discrete].batch(4))

    def called(state, batch):
        if method == "update":
            observations = [prepared(each) for each in (batch.observation, batch.next_observation)]
            return learner.update(
                state, batch._replace(observation=observations[0], next_observation=observations[1])
            )
        more = {"action": (key,), "online_action": (key, key), "estimate": ()}[method]
        return getattr(learner, method)(state.params, prepared(batch.observation[0]), *more)

    return str(jax.make_jaxpr(called)(state, data))


def logged(discrete: bool) -> optimist.Dataset:
    random = np.random.default_rng(0)
    features, rewards, ends = (
        random.normal(size=(50, 3)) * 100 + 500,
        random.normal(size=50),
        np.ones(50, bool),
    )
    actions = random.integers(2, size=50) if discrete else random.uniform(-1, 1, (50, 1))
    return optimist.Dataset.from_arrays(features, actions, rewards, ends)


RAW = {kind: logged(discrete=kind) for kind in (True, False)}


@pytest.mark.parametrize("name", ["rem", "td3", "bcq", "cloned_actor"])
def test_every_agent_computes_what_it_would_on_data_scaled_beforehand(name):
    agent = small(name)
    data = RAW[isinstance(agent, TableAgent)]
    scale = measured([data], "standard")
    scaled, plain = Learner(agent, data.spec, scale), Learner(agent, data.spec)
    every = ("update", "action", "online_action", "estimate") if name == "rem" else ("update", "action")
    for method in every:
        assert program(scaled, method) == program(plain, method, prepared=scale)


def test_learners_without_inputs_are_one_learner():
    """They share the programs, and so the bits, of all earlier versions."""
    one, other = Learner(small("dqn"), SPEC), Learner(small("dqn"), SPEC, Inputs((0.0,) * 4, (1.0,) * 4))
    assert Learner(small("dqn"), SPEC, None) == one != other and hash(one) == hash(Learner(one.agent, SPEC))
    observation = jnp.ones(4)
    assert one.read(observation) is observation
