"""Checkpoints are written by another thread: one at a time, each with the state of its step, and no error is
lost."""

import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load, save
from test_checkpoint import largest_file

from little import outcome, small, vectors
from optimist.errors import StorageError
from optimist.training.offline import OfflineTraining
from optimist.training.services import Saver
from optimist.training.settings import Training
from optimist.training.storage import checkpoint
from optimist.training.storage.checkpoint import TYPES, parts
from optimist.training.terminal import Interrupted

TRAINING = Training(steps=80, evaluate_every=20, batch=8, checkpoint_seconds=0, clip_rewards=9.0)


def test_the_next_save_waits_for_the_last():
    saver, goes_on, done = Saver(), threading.Event(), list[int]()

    def first():
        goes_on.wait()
        done.append(1)

    saver.begin(first)
    second = threading.Thread(target=saver.begin, args=(lambda: done.append(2),))
    second.start()
    second.join(0.05)
    assert second.is_alive() and not done
    goes_on.set()
    second.join()
    saver.wait()
    assert done == [1, 2]


def test_an_error_is_raised_once_where_the_loop_looks():
    def fail():
        raise StorageError("the disk is full")

    saver = Saver()
    saver.begin(fail)
    with pytest.raises(StorageError, match="full"):
        saver.wait()
    saver.check()
    saver.begin(fail)
    with pytest.raises(StorageError, match="full"):
        saver.begin(lambda: None)


def train(out, **changes):
    training = replace(TRAINING, **changes)
    return OfflineTraining(small("dqn"), vectors(), training, out=out, seeds=(3, 5)).run()


@pytest.fixture
def slow_disk(monkeypatch):
    """Nothing is written until the training has gone on for a while."""
    write = checkpoint.save_state

    def later(*words):
        threading.Event().wait(0.2)
        return write(*words)

    monkeypatch.setattr(checkpoint, "save_state", later)


def test_a_checkpoint_holds_its_step_although_training_goes_on(tmp_path, slow_disk):
    train(tmp_path / "short", steps=60)
    train(tmp_path / "long")
    kept = sorted(path.name for path in (tmp_path / "long" / "checkpoints").iterdir())
    assert len(kept) == 2 and kept[0] == outcome(tmp_path / "short")["checkpoint"]


def test_a_run_that_ends_has_saved_its_last_step(tmp_path, slow_disk):
    train(tmp_path)
    assert outcome(tmp_path)["checkpoint"].startswith("step-000000000080-") and (tmp_path / "DONE").exists()


class Alarmed:
    """A logger at whose first row a signal arrives."""

    def __init__(self, folder, seeds, step):
        self.sent = False

    def add(self, step, values, seed):
        if not self.sent:
            self.sent = True
            signal.raise_signal(signal.SIGTERM)

    def close(self):
        pass


def test_saved_is_said_when_it_is_saved(tmp_path, slow_disk):
    with pytest.raises(Interrupted, match="stopped at gradient step 20 of 80, saved"):
        train(tmp_path, checkpoint_seconds=1000, loggers=(Alarmed,))
    assert outcome(tmp_path)["checkpoint"].startswith("step-000000000020-")


def test_an_error_of_the_last_checkpoint_is_not_called_saved(tmp_path):
    with largest_file(3000), pytest.raises(StorageError, match="are free"):
        train(tmp_path, checkpoint_seconds=1000, loggers=(Alarmed,), keep_policies=0.0)


def test_an_error_of_the_thread_ends_the_run_and_keeps_what_was_there(tmp_path):
    few = {"keep_policies": 0.0}  # or the loop itself, which writes the policies, would fail first
    train(tmp_path, steps=20, **few)
    before = outcome(tmp_path)["checkpoint"]
    said = r"checkpoints/step-0.* \(needed \d+ bytes, \d+ are free"
    with largest_file(3000), pytest.raises(StorageError, match=said):
        train(tmp_path, **few)
    assert not (tmp_path / "DONE").exists()
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == [before]
    train(tmp_path, **few)
    train(tmp_path / "straight", **few)
    assert outcome(tmp_path) == outcome(tmp_path / "straight")


def test_the_file_is_what_the_library_writes():
    random = np.random.default_rng(0)
    arrays = {f"{n}/{kind}": (3 * random.random((n, 3))).astype(kind) for kind in TYPES for n in (0, 1, 4)}
    arrays |= {"a scalar": np.array(3, np.int32), 'é "quoted"': np.zeros((2, 1), np.float32)}
    for metadata in (None, {"configuration": "ab"}):
        assert b"".join(parts(arrays, metadata)) == save(arrays, metadata)
    turned = {"turned": np.asfortranarray(random.random((3, 4)))}
    np.testing.assert_array_equal(load(b"".join(parts(turned)))["turned"], turned["turned"])
