"""A power loss takes nothing that was reported as saved. The disk of these tests forgets what was not synced,
so that each of them fails if a sync of a file or of a folder is missing."""

import itertools
import os

import numpy as np
import pytest

from little import PIXELS, add_metrics, outcome, random_play, small, vectors
from optimist.data import Dataset, Recorder
from optimist.data.verify import verify
from optimist.training.evaluation import EpisodeScore
from optimist.training.offline import OfflineTraining
from optimist.training.settings import Training
from optimist.training.storage import rows
from optimist.training.storage.checkpoint import load_state, save_state
from optimist.training.storage.rows import read_episodes
from optimist.training.storage.run_folder import RunFolder
from power_loss import ForgetfulDisk, after_every


@pytest.fixture
def disk(tmp_path, monkeypatch):
    (tmp_path / "disk").mkdir()
    disk = ForgetfulDisk(tmp_path / "disk")
    monkeypatch.setattr(os, "fsync", disk.fsync)
    yield disk
    disk.close()


@pytest.fixture
def left(disk, tmp_path):
    """What a power loss leaves now, in a new folder each time."""
    numbers = itertools.count()
    return lambda: disk.after_loss(tmp_path / f"left-{next(numbers)}")


def state(step: int) -> dict:
    return {"w": np.full(1000, step, np.float32), "step": np.int32(step)}


def test_a_checkpoint_outlives_a_power_loss_at_any_moment(disk, left, monkeypatch, caplog):
    reported, moments = 0, list[int]()

    def power_loss():
        found = load_state(left() / "run" / "checkpoints", state(0)) if reported else None
        step = found[0] if found else 0
        assert step >= reported and (not found or (found[1]["w"] == step).all())
        moments.append(step)

    after_every(["replace", "unlink"], power_loss, monkeypatch)
    for step in range(1, 6):
        save_state(disk.folder / "run" / "checkpoints", step, state(step))
        reported = step
        power_loss()
    assert moments[-1] == 5 and len(moments) >= 10
    assert not caplog.records


def test_rows_older_than_a_checkpoint_outlive_a_power_loss(disk, left):
    with RunFolder(disk.folder / "run", {"seeds": [0]}) as folder:
        folder.save_state(1, state(1))  # makes the folder of the checkpoints, and syncs its name
        for step in (10, 20):
            add_metrics(folder, [{"step": step, "seed": 0, "loss_q": 0.5}])
            folder.add_episodes([EpisodeScore(step, 0, 0, 1.0, 7)])
            folder.save_state(step, state(step))
            run = left() / "run"
            assert load_state(run / "checkpoints", state(0))[0] == step
            assert len(rows.verified(run / "metrics.jsonl")) == step // 10
            assert [row.step for row in read_episodes(run)] == list(range(10, step + 1, 10))
            assert (run / "config.toml").read_bytes() == (disk.folder / "run" / "config.toml").read_bytes()


def test_a_finished_run_outlives_a_power_loss(disk, left):
    training = Training(steps=40, evaluate_every=20, batch=8, checkpoint_seconds=0, clip_rewards=9.0)
    OfflineTraining(small("dqn"), vectors(), training, out=disk.folder / "run").run()
    run = left() / "run"
    assert (run / "DONE").exists()
    assert outcome(run) == outcome(disk.folder / "run")


def test_flushed_steps_outlive_a_power_loss(disk, left):
    with Recorder(disk.folder / "new" / "data", PIXELS, lanes=2, shard_steps=20) as recorder:
        for number, step in enumerate(random_play(PIXELS, rows=60, lanes=2), 1):
            recorder.add(*step)
            if number % 25 == 0:
                recorder.flush()
                data = left() / "new" / "data"
                assert len(Dataset.open(data)) == 2 * number and not verify(data)


def test_a_shard_that_is_replaced_outlives_a_power_loss_at_any_moment(disk, left, monkeypatch):
    """What a checkpoint wrote of a shard is replaced by a longer one; one of them is there, and whole."""
    reported, moments = 0, 0

    def power_loss():
        nonlocal moments
        if reported:
            data = left() / "data"
            recorded = Dataset.open(data)
            recorded.timeline.decoded()
            assert len(recorded) >= 2 * reported
            assert all("is not in the manifest" in problem for problem in verify(data))
            moments += 1

    with Recorder(disk.folder / "data", PIXELS, lanes=2, shard_steps=20) as recorder:
        for number, step in enumerate(random_play(PIXELS, rows=15, lanes=2), 1):
            recorder.add(*step)
            if number % 3 == 0:
                with monkeypatch.context() as patch:
                    after_every(["replace", "unlink"], power_loss, patch)
                    recorder.flush()
                reported = number
    assert moments >= 15


def test_what_was_not_synced_is_forgotten(disk, left):
    """The disk of these tests is as forgetful as they need it."""
    file = disk.folder / "file"
    file.write_bytes(b"one")
    assert not (left() / "file").exists()
    disk.sync(disk.folder)
    assert (left() / "file").read_bytes() == b""
    with open(file, "rb") as stream:
        os.fsync(stream.fileno())
    file.write_bytes(b"two")
    assert (left() / "file").read_bytes() == b"one"
    file.rename(disk.folder / "other")
    assert (left() / "file").read_bytes() == b"one" and not (left() / "other").exists()
