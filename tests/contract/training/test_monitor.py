"""Numbers that are not finite stop a run at once and leave something to look at; small steps warn once."""

import jax
import numpy as np
import pytest

from fuse import Fuse
from little import small, small_words, vectors
from optimist.cli.main import main
from optimist.equations.optimizers import Adam
from optimist.errors import DivergedError
from optimist.training.learner import Learner
from optimist.training.measures import Monitor, check_finite
from optimist.training.offline import OfflineTraining
from optimist.training.settings import Training
from optimist.training.storage.checkpoint import load_state

BOTH = np.array([True, True])
FUSE = Fuse()
SHORT = Training(steps=100, evaluate_every=20, batch=4, clip_rewards=1.0, checkpoint_seconds=0)


def test_the_run_stops_within_the_chunk_in_which_it_happened(tmp_path):
    with pytest.raises(DivergedError, match="loss_count of seed 0 is not finite before step 60"):
        OfflineTraining(FUSE, vectors(), SHORT, out=tmp_path).run()
    learner = Learner(FUSE, vectors().spec)
    assert load_state(tmp_path / "diverged", learner.shapes((0,)))[0] == 60
    assert load_state(tmp_path / "checkpoints", learner.shapes((0,)))[0] == 40
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2
    assert not (tmp_path / "DONE").exists()


def test_too_large_a_learning_rate_is_exit_code_5_and_one_line(log, tmp_path, capsys):
    words = ["train", "rem", log, "--out", tmp_path / "run", "--steps", 60, "--evaluate-every", 20]
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
    losses = {"count": np.array([[1.0, 2.0], [3.0, value]])}
    rows = Monitor(learner, (4, 9)).rows(10, learner.init((4, 9)), losses, BOTH)
    assert rows[0]["loss_count"] == 2.0
    with pytest.raises(DivergedError, match="loss_count of seed 9"):
        check_finite(10, (4, 9), rows)


def test_a_seed_that_learns_no_more_has_no_losses():
    learner = Learner(FUSE, vectors().spec)
    losses = {"count": np.array([[1.0, np.nan]])}
    rows = Monitor(learner, (4, 9)).rows(10, learner.init((4, 9)), losses, np.array([True, False]))
    assert rows[0]["loss_count"] == 1.0 and rows[1] == {}


def test_parameters_that_hardly_move_are_warned_of_once_with_the_remedy(caplog):
    agent = small("rem", optimizer=Adam(epsilon=1e3))
    learner = Learner(agent, vectors().spec)
    monitor = Monitor(learner, (4,))
    state = learner.init((4,))
    for step in (500, 1000, 1500):
        rows = monitor.rows(step, state, {"q": np.zeros((2, 1))}, np.array([True]))
    told = [record.getMessage() for record in caplog.records if "full Adam step" in record.getMessage()]
    assert len(told) == 2 and all("step 1,000" in line for line in told)  # the torso and the heads
    assert "--optimizer.head-epsilon" in "".join(told)
    assert rows[0]["step_share_heads"] == rows[0]["step_share_torso"] == 0.0


@pytest.mark.parametrize(("epsilon", "warns"), [(18.9, False), (19.1, True)])
def test_below_a_twentieth_of_a_full_step_is_slow(caplog, epsilon, warns):
    """A step is sqrt(v) / (sqrt(v) + epsilon) of a full one: with v = 1 a twentieth where epsilon is 19."""
    learner = Learner(small("dqn", optimizer=Adam(epsilon=epsilon)), vectors().spec)
    state = learner.init((4,))
    slots = jax.tree.map(np.ones_like, state.slots)
    rows = Monitor(learner, (4,)).rows(
        1000, state._replace(slots=slots), {"q": np.zeros((2, 1))}, np.array([True])
    )
    assert rows[0]["step_share_torso"] == pytest.approx(1 / (1 + epsilon))
    assert any("full Adam step" in record.getMessage() for record in caplog.records) is warns
