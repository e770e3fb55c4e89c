"""Numbers that are not finite stop a run at once and leave something to look at; large ones warn once."""

from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
import pytest

from little import small, small_words, vectors
from optimist.agents._agent import Agent, Objective
from optimist.cli.main import main
from optimist.data import Dataset, Recorder, Spec
from optimist.equations.optimizers import Adam
from optimist.errors import DivergedError
from optimist.training.learner import Learner
from optimist.training.monitor import Monitor
from optimist.training.offline import OfflineTraining, Training
from optimist.training.storage.checkpoint import load_state
from optimist.training.storage.run_folder import RunFolder, read_alarms


@dataclass(frozen=True, kw_only=True)
class Fuse(Agent):
    """Counts its own steps, and burns out after so many."""

    burns_after: float = 45.0
    boasts: float = 0.0

    def check(self, spec):
        pass

    def init(self, key, spec):
        return {"count": jnp.zeros(())}

    def objectives(self, spec):
        def loss(params, targets, batch, key):
            spent = params["count"] <= -self.burns_after
            return params["count"] + jnp.where(spent, jnp.nan, 0.0)

        return (Objective("count", loss),)

    def action(self, spec, params, observation, key):
        return jnp.int32(0)

    def online_action(self, spec, params, observation, key, episode_key):
        return self.action(spec, params, observation, key)

    def estimate(self, spec, params, observation):
        return params["count"] * 0 + self.boasts


FUSE = Fuse(optimizer=Adam(learning_rate=1.0, epsilon=0.0))  # every step is one step down
SHORT = Training(steps=100, evaluate_every=20, batch=4, checkpoint_seconds=0)


def test_the_run_stops_within_the_chunk_in_which_it_happened(tmp_path):
    with pytest.raises(DivergedError, match="loss_count of seed 0 is not finite before step 60"):
        OfflineTraining(FUSE, vectors(), SHORT, out=tmp_path).run()
    learner = Learner(FUSE, vectors().spec)
    assert load_state(tmp_path / "diverged", learner.shapes((0,)))[0] == 60
    assert load_state(tmp_path / "checkpoints", learner.shapes((0,)))[0] == 40
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2
    assert not (tmp_path / "DONE").exists()


@pytest.mark.parametrize("feed", ["device", "compressed"])
def test_too_large_a_learning_rate_is_exit_code_5_and_one_line(log, tmp_path, capsys, feed):
    words = [
        "train",
        "rem",
        log,
        "--out",
        tmp_path / "run",
        "--steps",
        60,
        "--evaluate-every",
        20,
        "--feed",
        feed,
    ]
    words += ["--environment", "none", "--optimizer.learning-rate", 1e30, *small_words("rem")]
    assert main([*map(str, words)]) == 5
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert complaint.startswith("optimist: ") and "not finite" in complaint and "diverged/" in complaint
    assert list((tmp_path / "run" / "diverged").glob("step-*.safetensors"))
    assert not (tmp_path / "run" / "checkpoints").exists()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_seed_that_diverged_is_named(value):
    learner = Learner(FUSE, vectors().spec)
    monitor = Monitor(learner, (4, 9), np.zeros((2, 3, 4), np.float32), largest_return=100.0)
    losses = {"count": np.array([[1.0, 2.0], [3.0, value]])}
    with pytest.raises(DivergedError, match="loss_count of seed 9"):
        monitor.rows(10, learner.init((4, 9)), losses)


def test_rows_hold_mean_losses_and_estimates_seed_by_seed():
    learner = Learner(small("dqn"), vectors().spec)
    observations = np.random.default_rng(0).normal(size=(2, 6, 4)).astype(np.float32)
    state = learner.init((4, 9))
    rows = Monitor(learner, (4, 9), observations, 100.0).rows(10, state, {"q": np.array([[1.0, 2], [3, 6]])})
    assert [row["loss_q"] for row in rows] == [2.0, 4.0]
    for place, row in enumerate(rows):
        params = {
            "q": {"torso": [tuple(leaf[place] for leaf in layer) for layer in state.params["q"]["torso"]]}
        }
        x = observations[place]  # of its own log
        for weight, bias in params["q"]["torso"]:
            x = np.maximum(x @ np.asarray(weight) + np.asarray(bias), 0)
        table = x @ np.asarray(state.params["q"]["weight"][place, :, :, 0])
        np.testing.assert_allclose(row["estimate"], table.max(axis=1).mean(), rtol=1e-4)
        np.testing.assert_allclose(row["largest_estimate"], np.abs(table.max(axis=1)).max(), rtol=1e-4)


def warnings_of(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if "diverging" in record.getMessage()]


@pytest.mark.parametrize(("boasts", "warned"), [(999.0, 0), (1001.0, 1), (-1001.0, 1)])
def test_estimates_beyond_ten_times_the_largest_return_warn_once(tmp_path, caplog, boasts, warned):
    """Rewards clipped to 1 and a discount of 0.99: no return exceeds 100."""
    fuse = Fuse(optimizer=FUSE.optimizer, burns_after=1e9, boasts=boasts)
    OfflineTraining(fuse, vectors(), replace(SHORT, clip_rewards=1.0), out=tmp_path).run()
    assert len(warnings_of(caplog)) == warned
    assert read_alarms(tmp_path) == ({0: 20} if warned else {})


@dataclass(frozen=True, kw_only=True)
class Boaster(Fuse):
    """Expects what the first number of its observation says."""

    def estimate(self, spec, params, observation):
        return params["count"] * 0 + observation[0]


def test_one_estimate_beyond_the_possible_is_enough_though_the_mean_is_not():
    learner = Learner(Boaster(optimizer=FUSE.optimizer), vectors().spec)
    states = np.zeros((2, 40, 4), np.float32)
    states[1, 7, 0] = -1001.0
    monitor = Monitor(learner, (4, 9), states, largest_return=100.0)
    rows = monitor.rows(10, learner.init((4, 9)), {"count": np.zeros((2, 2))})
    assert monitor.alarms == {9: 10} and abs(rows[1]["estimate"]) < 100


def test_each_seed_is_probed_on_its_own_log(tmp_path):
    log = small_players(tmp_path / "log", finals={3: 1.0, 5: 2.0})
    training = OfflineTraining(
        small("dqn"), log, replace(SHORT, data_per_seed="own"), out=tmp_path / "run", seeds=(3, 5)
    )
    probes = training._monitor()._observations
    training.folder.release()
    assert probes.shape[0] == 2
    assert {float(x) for x in probes[0].ravel()} == {3.0} and {float(x) for x in probes[1].ravel()} == {5.0}


def small_players(path, finals: dict[int, float]) -> Dataset:
    """Players whose observations are their own numbers."""
    spec = Spec((2,), "float32", actions=2)
    provenance = {"seeds": list(finals), "collection": {"lanes": 1}}
    seen = np.array([[seed] * 2 for seed in finals], np.float32)
    with Recorder(path, spec, lanes=len(finals), provenance=provenance) as recorder:
        for row in range(40):
            ends = np.full(len(finals), row % 5 == 4)
            recorder.add(seen, np.zeros(len(finals), int), np.ones(len(finals)), ends, ends & False, seen)
    return Dataset.open(path)


def test_parameters_that_hardly_move_are_warned_of_once_with_the_remedy(caplog):
    agent = small("rem", optimizer=Adam(epsilon=1e3))
    learner = Learner(agent, vectors().spec)
    monitor = Monitor(learner, (4,), np.zeros((1, 3, 4), np.float32), largest_return=100.0)
    state = learner.init((4,))
    for step in (500, 1000, 1500):
        rows = monitor.rows(step, state, {"q": np.zeros((2, 1))})
    told = [record.getMessage() for record in caplog.records if "full Adam step" in record.getMessage()]
    assert len(told) == 2 and all("step 1,000" in line for line in told)  # the torso and the heads
    assert "--optimizer.head-epsilon" in "".join(told)
    assert rows[0]["step_share_heads"] == rows[0]["step_share_torso"] == 0.0


def test_every_seed_warns_by_itself_and_once():
    learner = Learner(Fuse(optimizer=FUSE.optimizer, boasts=2000.0), vectors().spec)
    monitor = Monitor(learner, (4, 9), np.zeros((2, 3, 4), np.float32), largest_return=100.0, alarms={9: 5})
    for step in (10, 20):
        monitor.rows(step, learner.init((4, 9)), {"count": np.zeros((2, 2))})
    assert monitor.alarms == {4: 10, 9: 5}


def test_alarms_after_the_checkpoint_are_forgotten_with_what_led_to_them(tmp_path):
    with RunFolder(tmp_path, {}) as folder:
        folder.write_alarms({3: 100, 5: 250})
        folder.rewind(200)
    assert read_alarms(tmp_path) == {3: 100}


def test_without_clipping_the_largest_reward_counts(tmp_path, caplog):
    data = vectors()
    largest = np.abs(data.timeline.reward).max() / (1 - 0.9)
    for number, factor in enumerate((9.9, 10.1)):
        fuse = Fuse(optimizer=FUSE.optimizer, burns_after=1e9, boasts=float(factor * largest))
        training = Training(steps=20, evaluate_every=20, batch=4, gamma=0.9, clip_rewards=None)
        OfflineTraining(fuse, data, training, out=tmp_path / str(number)).run()
        assert len(warnings_of(caplog)) == number
