"""Curves are files that TensorBoard reads; a full disk is an error in time, never a run that hangs."""

import struct
from contextlib import closing

import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event, SessionLog

from little import largest_file
from optimist.errors import StorageError
from optimist.training.loggers import tensorboard as curves
from optimist.training.loggers.tensorboard import Tensorboard


def events(folder, seed):
    """The records of a seed's files, in the order in which they were begun."""
    found = []
    for path in sorted((folder / "tensorboard" / f"seed-{seed}").iterdir()):
        content = path.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            found.append(Event.FromString(content[12 : 12 + length]))
            content = content[16 + length :]
    return found


def scalars(folder, seed):
    return [(e.step, v.tag, v.simple_value) for e in events(folder, seed) for v in e.summary.value]


def test_every_number_of_every_seed_is_a_point(tmp_path):
    with closing(Tensorboard(tmp_path, (4, 9), step=0)) as here:
        here.add(10, {"loss": 0.5}, seed=4)
        here.add(10, {"loss": 0.25}, seed=9)
        here.add(20, {"return": np.float64(3)}, seed=9)
    assert scalars(tmp_path, 4) == [(10, "loss", 0.5)]
    assert scalars(tmp_path, 9) == [(10, "loss", 0.25), (20, "return", 3.0)]
    assert all(event.wall_time > 1e9 for event in events(tmp_path, 9) if event.summary.value)


def test_a_resumed_run_takes_back_what_it_will_write_again(tmp_path):
    with closing(Tensorboard(tmp_path, (0,), step=0)) as here:
        for step in (10, 20):
            here.add(step, {"loss": 1.0}, seed=0)
    with closing(Tensorboard(tmp_path, (0,), step=10)) as here:
        here.add(20, {"loss": 1.0}, seed=0)
    starts = [e.step for e in events(tmp_path, 0) if e.session_log.status == SessionLog.START]
    assert starts == [1, 11]
    assert len(list((tmp_path / "tensorboard" / "seed-0").iterdir())) == 2


def test_a_full_disk_is_one_error_and_leaving_is_another_matter(tmp_path, monkeypatch):
    monkeypatch.setattr(curves, "FLUSH_SECONDS", -1.0)
    with closing(Tensorboard(tmp_path, (0,), step=0)) as here:
        with largest_file(1000), pytest.raises(StorageError, match="tensorboard: File too large"):
            for step in range(1000):
                here.add(step, {"loss": 1.0}, seed=0)
        assert step < 100
    assert scalars(tmp_path, 0)
