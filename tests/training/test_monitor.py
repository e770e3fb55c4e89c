"""Numbers that are not finite stop a run at once and leave something to look at; large ones warn once."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest

from little import small, small_words, vectors
from optimist.agent import Agent, Objective
from optimist.cli import main
from optimist.errors import DivergedError
from optimist.optimizers import Adam
from optimist.training.checkpoint import load_state
from optimist.training.learner import Learner
from optimist.training.monitor import Monitor
from optimist.training.offline import OfflineTraining, Training
from optimist.training.run import RunFolder, read_alarms


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


@pytest.mark.parametrize("home", ["device", "compressed"])
def test_too_large_a_learning_rate_is_exit_code_5_and_one_line(log, tmp_path, capsys, home):
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
        "--home",
        home,
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
    monitor = Monitor(learner, (4, 9), np.zeros((3, 4), np.float32), largest_return=100.0)
    losses = {"count": np.array([[1.0, 2.0], [3.0, value]])}
    with pytest.raises(DivergedError, match="loss_count of seed 9"):
        monitor.rows(10, learner.init((4, 9)), losses)


def test_rows_hold_mean_losses_and_estimates_seed_by_seed():
    learner = Learner(small("dqn"), vectors().spec)
    observations = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    state = learner.init((4, 9))
    rows = Monitor(learner, (4, 9), observations, 100.0).rows(10, state, {"q": np.array([[1.0, 2], [3, 6]])})
    assert [(row["step"], row["seed"], row["loss_q"]) for row in rows] == [(10, 4, 2.0), (10, 9, 4.0)]
    for place, row in enumerate(rows):
        params = {
            "q": {"torso": [tuple(leaf[place] for leaf in layer) for layer in state.params["q"]["torso"]]}
        }
        x = observations
        for weight, bias in params["q"]["torso"]:
            x = np.maximum(x @ np.asarray(weight) + np.asarray(bias), 0)
        table = x @ np.asarray(state.params["q"]["weight"][place, :, :, 0])
        np.testing.assert_allclose(row["estimate"], table.max(axis=1).mean(), rtol=1e-4)


def warnings_of(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if "diverging" in record.getMessage()]


@pytest.mark.parametrize(("boasts", "warned"), [(999.0, 0), (1001.0, 1), (-1001.0, 1)])
def test_estimates_beyond_ten_times_the_largest_return_warn_once(tmp_path, caplog, boasts, warned):
    """Rewards clipped to 1 and a discount of 0.99: no return exceeds 100."""
    fuse = Fuse(optimizer=FUSE.optimizer, burns_after=1e9, boasts=boasts)
    OfflineTraining(fuse, vectors(), SHORT, out=tmp_path).run()
    assert len(warnings_of(caplog)) == warned
    assert read_alarms(tmp_path) == ({0: 20} if warned else {})


def test_every_seed_warns_by_itself_and_once():
    learner = Learner(Fuse(optimizer=FUSE.optimizer, boasts=2000.0), vectors().spec)
    monitor = Monitor(learner, (4, 9), np.zeros((3, 4), np.float32), largest_return=100.0, alarms={9: 5})
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
    largest = np.abs(data.tape.reward).max() / (1 - 0.9)
    for number, factor in enumerate((9.9, 10.1)):
        fuse = Fuse(optimizer=FUSE.optimizer, burns_after=1e9, boasts=float(factor * largest))
        training = Training(steps=20, evaluate_every=20, batch=4, gamma=0.9, clip_rewards=None)
        OfflineTraining(fuse, data, training, out=tmp_path / str(number)).run()
        assert len(warnings_of(caplog)) == number
