"""A collection that goes on from an offline run: it begins with that run's agents, and its log grows."""

import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optimist
from little import outcome, played, small
from optimist import envs
from optimist.cli.main import main
from optimist.data import Dataset, Recorder, Sampler, transitions
from optimist.errors import RunError, UsageError
from optimist.training.beginning import ONLINE, beginning
from optimist.training.learner import advance
from optimist.training.play.replay import Mixed, Replay
from optimist.training.resolve import resolve_collection
from optimist.training.settings import Collection
from optimist.training.storage import checkpoint
from optimist.training.storage.configuration import fingerprint
from optimist.training.storage.run_folder import read_config

CART, PENDULUM = "gym/CartPole-v1", "gym/Pendulum-v1"
PLAY = {"steps": 48, "lanes": 4, "window": 40, "batch": 8, "warm_up": 8, "checkpoint_seconds": 1e9}


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    """A run of two seeds with its log: 20 updates, of which the policies of steps 10 and 20 are kept."""
    folder = tmp_path_factory.mktemp("offline")
    played(folder / "log", game=CART, rows=40)
    how = {"steps": 20, "batch": 8, "evaluate_every": 10, "episodes": 1, "gamma": 0.9}
    optimist.train(small("dqn"), folder / "log", seeds=(3, 5), out=folder / "run", **how)
    return folder


def saved(run, seeds):
    """The newest checkpoint of a run, as it is on disk."""
    loaded = optimist.load(run)
    shapes, settings = loaded.learner.shapes(seeds), fingerprint(read_config(run))
    return checkpoint.load_state(run / "checkpoints", shapes, settings)[1]


def same(left, right):
    jax.tree.map(np.testing.assert_array_equal, left, right)


def test_the_newest_checkpoint_gives_everything_that_was_learned(offline):
    found, before = beginning(offline / "run"), saved(offline / "run", (3, 5))
    assert found.seeds == (3, 5) and int(found.state.step) == 0
    for part in ("params", "targets", "slots"):
        same(getattr(found.state, part), getattr(before, part))
    same(found.state.key, jnp.stack([jax.random.fold_in(key, ONLINE) for key in before.key]))


def test_one_seed_of_a_run_can_go_on_alone(offline):
    found, before = beginning(offline / "run", seeds=(5,)), saved(offline / "run", (3, 5))
    same(found.state.params, jax.tree.map(lambda leaf: leaf[1:], before.params))
    with pytest.raises(UsageError, match="has the seeds 3, 5: choose some of these"):
        beginning(offline / "run", seeds=(4,))


def test_a_kept_policy_gives_parameters_only_and_says_so(offline, caplog):
    found = beginning(offline / "run", step=10)
    kept = optimist.load(offline / "run", step=10)
    same(found.state.params, kept.params)
    same(found.state.targets, kept.params)
    same(found.state.slots, kept.learner.init((3, 5)).slots)
    assert "step 10 has parameters only" in caplog.text


def test_the_collection_takes_over_how_rewards_were_trained(offline):
    start = beginning(offline / "run")
    asked = {"start": start, "spec": start.run.learner.spec}
    found = resolve_collection(**asked).settings
    assert (found.gamma, found.clip_rewards) == (0.9, None)
    assert resolve_collection(**asked, settings={"gamma": 0.5}).settings.gamma == 0.5
    with pytest.raises(UsageError, match="leave the agent and the preset out"):
        resolve_collection(**asked, agent="rem")


def test_the_policy_plays_the_warm_up_and_then_half_of_what_it_learns_from_is_its_old_log(offline):
    start = beginning(offline / "run")
    found = resolve_collection(start.run.learner.spec, start=start).settings
    assert (found.mix, found.warm_up, found.epsilon) == (0.5, 1_000, 0.01)
    assert {found.exploration(step) for step in (0, 999, 1_000, 40_000)} == {0.01}
    bolder = resolve_collection(start.run.learner.spec, start=start, settings={"epsilon": 0.2}).settings
    assert bolder.exploration(0) == 0.2


def test_the_defaults_are_in_the_configuration_and_one_line_says_them(offline, tmp_path, capfd):
    """And another beginning is another run."""
    optimist.collect(CART, out=tmp_path, start_from=offline / "run", **PLAY)
    training = read_config(tmp_path / "agent")["training"]
    defaults = {"mix": 0.5, "warm_up": 8, "epsilon": 0.01, "epsilon_start": 0.0}
    assert {name: training[name] for name in defaults} == defaults
    assert (
        f"goes on from {offline / 'run'} at step 20: learns after 8 steps, 50% of each minibatch from the "
        "run's log; 1.0% of the actions are random (--warm-up, --mix, --epsilon)\n"
    ) in capfd.readouterr().err
    with pytest.raises(RunError, match=r"start\.step: 20 saved, 10 requested"):
        optimist.collect(CART, out=tmp_path, start_from=offline / "run", step=10, **PLAY)
    with pytest.raises(RunError, match="start: "):
        optimist.collect(CART, out=tmp_path, agent=small("dqn"), seeds=(3, 5), **PLAY)


def controlled(path, rows=1000, lanes=4):
    """A scripted controller that balances the pole; half of its actions are random."""
    play, random = envs.make(CART, lanes=lanes, seed=0), np.random.default_rng(0)
    provenance = {"environment": CART, "collection": {}}
    with Recorder(path, play.spec, lanes=lanes, provenance=provenance) as recorder:
        frame = play.reset()
        for _ in range(rows):
            position, speed, angle, turning = frame.T
            right = angle + 0.5 * turning + 0.05 * position + 0.1 * speed > 0
            noisy = random.random(lanes) < 0.5
            action = np.where(noisy, random.integers(2, size=lanes), right).astype(np.int32)
            taken = play.step(action)
            recorder.add(frame, action, *taken[1:4], taken.next_observation)
            frame = taken.observation


def test_what_the_log_taught_is_not_forgotten(tmp_path):
    """With an empty window, no warm-up and its own play only, its episodes fell from 189 steps to 20."""
    controlled(tmp_path / "log")
    length = {"steps": 600, "evaluate_every": 600, "environment": ""}
    options = {"network.hidden": "32,32", "optimizer.learning_rate": 2e-3, "target_period": 50}
    optimist.train("cql", tmp_path / "log", out=tmp_path / "run", options=options, **length)
    play = {"steps": 2000, "lanes": 4, "update_period": 1, "batch": 32}
    optimist.collect(CART, out=tmp_path / "more", start_from=tmp_path / "run", **play)
    before, after = (optimist.load(tmp_path / path) for path in ("run", "more/agent"))
    assert mean_return(before) > 100 and mean_return(after) > 100


def mean_return(run):
    return np.mean([episode.score for episode in run.evaluate(5, environment=CART)])


def test_the_first_row_is_played_by_the_offline_policy(offline, tmp_path):
    """Without random actions and before any gradient step, each action is the policy's."""
    log = optimist.collect(
        CART, out=tmp_path, start_from=offline / "run", seeds=(5,), epsilon=0.0, update_period=1000, **PLAY
    )
    policy = optimist.load(offline / "run").policy_of(5)
    seen = transitions(Sampler(log), np.arange(len(log)), log.timeline.frames)
    np.testing.assert_array_equal(seen.action, [policy(each) for each in seen.observation])
    assert log.provenance["start"]["step"] == 20


def test_command_line_and_python_give_equal_collections(offline, tmp_path):
    words = [f"--{name.replace('_', '-')}={value}" for name, value in PLAY.items()]
    line = ["collect", CART, "--from", str(offline / "run"), "--step", "last", f"--out={tmp_path / 'line'}"]
    assert main([*line, *words]) == 0
    optimist.collect(CART, out=tmp_path / "python", start_from=offline / "run", **PLAY)
    line, python = (outcome(tmp_path / name / "agent") for name in ("line", "python"))
    assert line["checkpoint"] == python["checkpoint"]


def test_half_of_a_mixed_minibatch_is_from_the_old_log(offline):
    start = beginning(offline / "run", seeds=(3,))
    settings = Collection(**{**PLAY, "warm_up": 0}, gamma=0.9, mix=0.5, clip_rewards=None)
    replay = Replay(start.run.learner, start.state, settings, (3,), start.logs())
    on = np.zeros(4, bool)
    for _ in range(4):
        replay.add(np.full((4, 4), 7, np.float32), np.ones(4, np.int32), np.full(4, 9, np.float32), on, on)
    minibatch = Mixed(replay.recall, replay._older.minibatch)
    ours, older = replay.draw(0, 1, replay._batch)[0, 0], replay._older.items(0, 1)[0, 0]
    found = minibatch((replay._window, replay._older.resident), (ours, older))
    log = start.logs()[0]
    sampler = Sampler(log, 4, gamma=0.9, seed=3)
    expected = transitions(sampler, sampler.positions(0, 1)[0], log.timeline.frames)
    np.testing.assert_array_equal(found.reward, [9.0] * 4 + expected.reward.tolist())
    np.testing.assert_array_equal(found.observation[4:], expected.observation)
    state, _ = advance(
        start.run.learner,
        jax.tree.map(jnp.copy, start.state),
        minibatch,
        (replay._window, replay._older.resident),
        (ours[None, None], older[None, None]),
    )
    replay.learn(4)
    same(replay.state.params, state.params)  # what it learns from is this minibatch


def test_another_environment_and_other_networks_are_refused_in_one_line(offline, tmp_path):
    for game in (PENDULUM, "gym/MountainCar-v0"):
        with pytest.raises(UsageError, match="has frames of") as problem:
            optimist.collect(game, out=tmp_path / "other", start_from=offline / "run", **PLAY)
        assert "\n" not in str(problem.value)
    other = {"start_from": offline / "run", "options": {"network.hidden": "7"}, **PLAY}
    with pytest.raises(UsageError, match="change the networks or the optimiser"):
        optimist.collect(CART, out=tmp_path, **other)


def test_a_mix_needs_a_run_and_its_log(offline, tmp_path):
    with pytest.raises(UsageError, match="name that run with --from RUN"):
        optimist.collect(CART, out=tmp_path / "a", mix=0.5, **PLAY)
    with pytest.raises(UsageError, match="mix is 0.01, which is none of 8 transitions"):
        optimist.collect(CART, out=tmp_path / "a", start_from=offline / "run", mix=0.01, **PLAY)
    shutil.copytree(offline, tmp_path / "moved")
    config = tmp_path / "moved" / "run" / "config.toml"
    config.write_text(config.read_text().replace(str(offline / "log"), str(tmp_path / "nowhere")))
    asked = {"start_from": tmp_path / "moved" / "run", **PLAY}
    with pytest.raises(RunError, match="cannot be mixed in .* give --mix 0 to learn from play only"):
        optimist.collect(CART, out=tmp_path / "b", **asked)
    assert len(optimist.collect(CART, out=tmp_path / "c", mix=0, **asked)) == 48 * 2


@pytest.mark.slow
def test_an_actor_critic_with_scaled_observations_goes_on_and_again(tmp_path):
    """ReBRAC, which reads the next action; then its collection is itself a run to go on from."""
    played(tmp_path / "log", game=PENDULUM, rows=30)
    how = {"steps": 4, "batch": 4, "evaluate_every": 4, "environment": "", "reward_scale": 0.5}
    log = tmp_path / "log"
    optimist.train(small("rebrac"), log, out=tmp_path / "run", observations="standard", **how)
    inputs = optimist.load(tmp_path / "run").learner.inputs
    short = {**PLAY, "steps": 16}
    optimist.collect(PENDULUM, out=tmp_path / "more", start_from=tmp_path / "run", **short)
    more = optimist.load(tmp_path / "more" / "agent")
    assert more.learner.inputs == inputs is not None
    assert read_config(tmp_path / "more" / "agent")["training"]["reward_scale"] == 0.5
    optimist.collect(PENDULUM, out=tmp_path / "again", start_from=tmp_path / "more" / "agent", **short)
    grown = Dataset.open(tmp_path / "more").save(tmp_path / "log", append=True)
    assert len(grown) == 120 + 16
