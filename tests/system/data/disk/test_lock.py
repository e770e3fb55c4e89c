"""One writer per dataset folder: a second one gets an error at once, which names the first."""

import errno
import os
import platform
import signal
import subprocess
import sys

import numpy as np
import pytest

from optimist.data import Recorder, open_dataset
from optimist.data.disk.lock import FolderLock, HeldError, discard, writing
from optimist.errors import DataError, StorageError
from reference import SPECS, record
from replay_ring import Ring, export_dqn_replay, import_dqn_replay, play

SPEC = SPECS["pixels"]
HOLDING = """
import sys, time
from optimist.data import Recorder, Spec
spec = Spec((6, 5, 1), "uint8", actions=4, stack=4)
recorder = Recorder(sys.argv[1], spec, lanes=1)
print("holding", flush=True)
time.sleep(600)
"""
US = f"process {os.getpid()} on {platform.node()}"


@pytest.fixture
def logs(tmp_path):
    made = Ring(tmp_path / "Breakout" / "1", 40)
    play(made, [50, 12, 30], unfinished=9)
    made.finish()
    return made.folder.parent


def test_the_words_of_a_refusal_name_the_holder_and_the_remedy(tmp_path):
    words = [sys.executable, "-c", HOLDING, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "holding\n"
            with pytest.raises(DataError) as refused:  # at once; one that waited would wait for ever
                Recorder(tmp_path, SPEC, lanes=1)
        finally:
            child.send_signal(signal.SIGKILL)
    holder = f"process {child.pid} on {platform.node()}"
    words = f"{tmp_path} is being written by {holder}: wait for it, or choose another folder"
    assert str(refused.value) == words
    assert (tmp_path / ".holder").read_text() == holder  # it had no time to clean up
    record(tmp_path, SPEC, rows=3)
    assert len(open_dataset(tmp_path)) == 3


def test_recorder_import_export_and_restart_exclude_each_other(tmp_path, logs):
    out = tmp_path / "out"
    import_dqn_replay(logs, tmp_path / "imported")
    imported = open_dataset(tmp_path / "imported")
    recorder = Recorder(out, SPEC, lanes=1)
    for write in (
        lambda: import_dqn_replay(logs, out),
        lambda: export_dqn_replay(imported, out),
        lambda: discard(out),
    ):
        with pytest.raises(DataError, match=f"is being written by {US}"):
            write()
    recorder.close()
    assert (out / "manifest.json").exists()
    export_dqn_replay(imported, out)


def test_an_import_holds_its_folder(tmp_path, logs):
    out, seen = tmp_path / "out", []

    def progress(done, total):
        with pytest.raises(DataError, match=US):
            import_dqn_replay(logs, out)
        seen.append(done)

    import_dqn_replay(logs, out, progress=progress)
    assert seen
    assert len(open_dataset(out))


@pytest.mark.parametrize("how", ["close", "with", "full disk", "dropped"])
def test_a_recorder_that_is_done_lets_go(tmp_path, how):
    recorder = Recorder(tmp_path, SPEC, lanes=1)
    if how == "close":
        recorder.close()
        recorder.close()
        frame = np.zeros((1, 6, 5, 1), np.uint8)
        with pytest.raises(DataError, match="closed"):
            recorder.add(frame, [0], [1.0], [True], [False], frame)
    elif how == "with":
        with recorder:
            pass
    elif how == "full disk":
        with pytest.raises(StorageError), recorder:
            raise StorageError("no room")
    else:
        del recorder
    record(tmp_path, SPEC, rows=3)
    assert not (tmp_path / ".holder").exists()


def test_reading_needs_no_lock(tmp_path):
    record(tmp_path, SPEC, rows=3)
    holder = Recorder(tmp_path, SPEC, lanes=1)
    assert len(open_dataset(tmp_path)) == 3
    holder.close()
    (tmp_path / ".lock").unlink()
    open_dataset(tmp_path).timeline.decoded()
    assert not (tmp_path / ".lock").exists()


def test_a_lock_says_whose_it_took_over(tmp_path):
    lock = FolderLock(tmp_path)
    assert lock.acquire() is None
    with pytest.raises(HeldError, match=US):
        FolderLock(tmp_path).acquire()
    lock.release()
    (tmp_path / ".holder").write_text("process 1 on moon")
    with FolderLock(tmp_path) as lock:
        assert lock.acquire() == "process 1 on moon"
    assert not (tmp_path / ".holder").exists()


@pytest.mark.parametrize(("name", "what"), [("config.toml", "a run"), ("study.json", "a study")])
def test_a_log_is_not_written_into_a_run_or_a_study(tmp_path, name, what):
    (tmp_path / name).touch()
    with pytest.raises(DataError, match=f"holds {what} .*choose another folder"):
        writing(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_disk_without_locks_is_told_as_that(tmp_path, monkeypatch, number):
    """It said to make room, beside 60 GB that were free."""

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(StorageError, match="cannot lock .* has no locks; choose a folder on another one"):
        FolderLock(tmp_path).acquire()
