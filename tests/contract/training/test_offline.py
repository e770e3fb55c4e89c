"""Training on a log: evaluated when it is due, done when it is done, and the same wherever the log lives."""

import json
import signal
from dataclasses import replace

import jax
import numpy as np
import pytest

from little import GAME, outcome, small, vectors
from optimist.agents import from_description
from optimist.data import Dataset
from optimist.errors import DataError, OptimistError, RunError, UsageError
from optimist.training.measures import Measures
from optimist.training.offline import OfflineTraining
from optimist.training.run import load_run
from optimist.training.settings import Training
from optimist.training.storage.rows import read_episodes, read_metrics
from optimist.training.storage.run_folder import read_config
from optimist.training.terminal import Interrupted

CART = "gym/CartPole-v1"
SHORT = Training(steps=60, evaluate_every=20, episodes=2, batch=8, checkpoint_seconds=0)


def train(log, out, training=SHORT, *, agent="rem", **options):
    options = {"seeds": (0, 1), "environment": GAME, **options}
    return OfflineTraining(small(agent), Dataset.open(log), training, out=out, **options).run()


@pytest.fixture(scope="module")
def finished(log, tmp_path_factory):
    run = tmp_path_factory.mktemp("finished")
    return run, train(log, run)


def test_every_seed_is_evaluated_when_it_is_due(finished):
    run, _ = finished
    expected = [(step, seed, n) for step in (20, 40, 60) for seed in (0, 1) for n in (0, 1)]
    assert [row[:3] for row in read_episodes(run)] == expected


def test_every_chunk_has_one_row_of_metrics_per_seed(finished):
    rows = read_metrics(finished[0])
    assert [(row["step"], row["seed"]) for row in rows] == [
        (s, seed) for s in (20, 40, 60) for seed in (0, 1)
    ]
    assert all(np.isfinite(row["loss_q"]) and np.isfinite(row["estimate"]) for row in rows)


def test_a_signal_that_comes_too_late_for_a_checkpoint_waits_for_the_next(log, tmp_path, monkeypatch):
    """It comes after the loop has decided not to save: "saved" must not be said of what is not."""
    calls = []

    def interrupting(measures):
        calls.append(measures)
        if len(calls) == 2:  # the first is before the loop
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Measures, "leave_if_diverged", interrupting)
    with pytest.raises(Interrupted, match="stopped at gradient step 40 of 60, saved"):
        train(log, tmp_path, replace(SHORT, checkpoint_seconds=1000))
    assert load_run(tmp_path).step == 40


def test_the_folder_says_what_was_asked_and_with_what(finished, log):
    run, _ = finished
    config = read_config(run)
    assert from_description(config["agent"]) == small("rem").settled()
    assert config["dataset"]["fingerprint"] == Dataset.open(log).fingerprint
    assert config["training"]["steps"] == 60
    versions = json.loads((run / "versions.json").read_text())
    assert {"python", "jax", "numpy", "device", "dataset", "minatar"} <= versions.keys()
    assert (run / "DONE").exists()
    events = [*(run / "tensorboard").rglob("events*")]
    assert {path.parent.name for path in events} == {"seed-0", "seed-1"}


def test_the_learner_multiplies_with_the_precision_that_was_asked_for(log, tmp_path):
    asked = replace(SHORT, precision="float32")
    training = OfflineTraining(small("rem"), Dataset.open(log), asked, out=tmp_path).prepare()
    assert training.learner.precision == "float32"


def test_the_same_command_again_is_done_at_once(finished, log):
    run, state = finished
    before, stamps = outcome(run), [path.stat().st_mtime_ns for path in (run / "checkpoints").iterdir()]
    again = train(log, run)
    assert outcome(run) == before
    assert [path.stat().st_mtime_ns for path in (run / "checkpoints").iterdir()] == stamps
    jax.tree.map(np.testing.assert_array_equal, again, state)


def test_more_steps_go_on_as_if_they_had_been_asked_for_at_once(finished, log, tmp_path):
    """Fifty steps end between two evaluations; what follows is evaluated where it always would have been."""
    train(log, tmp_path, replace(SHORT, steps=50))
    train(log, tmp_path)
    longer, straight = outcome(tmp_path), outcome(finished[0])
    assert longer["checkpoint"] == straight["checkpoint"]
    assert {row.step for row in read_episodes(tmp_path)} == {20, 40, 50, 60}
    assert [row for row in read_episodes(tmp_path) if row.step != 50] == read_episodes(finished[0])


def test_an_evaluation_that_was_stopped_is_made_up_for(finished, log, tmp_path):
    """On disk: the state of a step is saved, its episodes are missing."""
    train(log, tmp_path, replace(SHORT, steps=40))
    rows = (tmp_path / "episodes.csv").read_text().splitlines(keepends=True)
    (tmp_path / "episodes.csv").write_text("".join(row for row in rows if not row.startswith("40,")))
    train(log, tmp_path, replace(SHORT, steps=40))
    assert (tmp_path / "episodes.csv").read_text() == "".join(rows)


def test_a_fresh_evaluation_at_the_last_step_repeats_the_last_rows(finished):
    run = load_run(finished[0])
    assert run.evaluate(episodes=2) == [row for row in read_episodes(finished[0]) if row.step == 60]


def test_a_run_that_is_resumed_with_other_feeds_ends_with_the_same_checkpoint(log, tmp_path, finished):
    """The other run kept its frames decoded on the device."""
    for steps, feed in ((20, "packed"), (40, "compressed"), (60, "memory")):
        train(log, tmp_path, replace(SHORT, steps=steps, feed=feed, memory_gib=1e-5))
    assert outcome(tmp_path) == outcome(finished[0])


def test_without_an_environment_a_log_is_trained_on_alone_and_an_awkward_distance_shortens_no_chunk(tmp_path):
    training = Training(steps=600, evaluate_every=257, batch=4)
    OfflineTraining(small("dqn"), vectors(), training, out=tmp_path).run()
    assert not (tmp_path / "episodes.csv").exists()
    assert load_run(tmp_path).step == 600 and load_run(tmp_path).episodes() == []
    assert [row["step"] for row in read_metrics(tmp_path)] == [250, 257, 507, 514, 600]


def test_restart_begins_anew(log, tmp_path, finished):
    train(log, tmp_path, replace(SHORT, steps=20, batch=4))
    with pytest.raises(RunError, match="training.batch: 4 saved, 8 requested"):
        train(log, tmp_path)
    train(log, tmp_path, restart=True)
    assert outcome(tmp_path) == outcome(finished[0])


def test_a_damaged_checkpoint_costs_one_interval_and_no_bit(log, tmp_path, finished, caplog):
    train(log, tmp_path)
    newest = max((tmp_path / "checkpoints").iterdir())
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    train(log, tmp_path)
    assert f"{newest} is damaged" in caplog.text
    assert outcome(tmp_path) == outcome(finished[0])


def test_senseless_settings_are_refused():
    for name, value in (
        ("steps", 0),
        ("steps", -5),
        ("steps", 1e6),
        ("evaluate_every", 0),
        ("episodes", 0),
        ("batch", 0),
        ("n_step", 0),
        ("gamma", 1.01),
        ("gamma", float("nan")),
        ("evaluation_epsilon", -0.1),
        ("clip_rewards", 0.0),
        ("memory_gib", 0.0),
        ("memory_gib", float("inf")),
        ("checkpoint_seconds", -1.0),
    ):
        with pytest.raises(UsageError, match=f"{name} is "):
            Training(**{name: value})


@pytest.mark.parametrize(
    "options",
    [{"seeds": (-1,)}, *({"environment": game} for game in ("minatar/freeway", "minatar/brekout", CART))],
    ids=str,
)
def test_what_cannot_work_is_refused_before_anything_is_written(log, tmp_path, options):
    with pytest.raises(UsageError):
        train(log, tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_vector_actions_are_refused_before_anything_is_written(control_log, tmp_path):
    with pytest.raises(DataError, match="discrete actions"):
        train(control_log, tmp_path / "run", environment="")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("changes", [{"initializer": "glorrot"}, {"network.torso": "nature"}], ids=str)
def test_a_mistake_found_late_does_not_bind_the_folder(tmp_path, changes):
    with pytest.raises(OptimistError):
        OfflineTraining(small("dqn", **changes), vectors(), SHORT, out=tmp_path / "run").run()
    training = Training(steps=5, batch=4)
    OfflineTraining(small("dqn"), vectors(), training, out=tmp_path / "run").run()
    assert load_run(tmp_path / "run").step == 5
