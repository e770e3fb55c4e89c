"""A recording that is killed, or runs out of disk, keeps every shard it flushed."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from optimist.data import Recorder, Spec, open_dataset
from optimist.data.verify import verify
from optimist.errors import DataError
from patience import PATIENCE

SPEC = Spec((8, 8), "uint8", actions=2)
HEAD = """
import resource, sys
import numpy as np
from optimist.data import Recorder, Spec
from optimist.errors import StorageError

spec = Spec((8, 8), "uint8", actions=2)

def play(recorder, first):
    "Frame t of a lane shows t; every 20th step ends an episode."
    for t in range(first, first + 10**7):
        frame = np.full((2, 8, 8), t % 251, np.uint8)
        end = np.full(2, t % 20 == 19)
        following = np.full((2, 8, 8), (t + 1) % 251, np.uint8)
        recorder.add(frame, [t % 2] * 2, [float(t)] * 2, end, np.zeros(2, bool), following)
"""
ENDLESS = HEAD + "play(Recorder(sys.argv[1], spec, lanes=2, shard_steps=16), 0)"
FULL = (
    HEAD
    + """
recorder = Recorder(sys.argv[1], spec, lanes=2, shard_steps=64)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    play(recorder, 0)
except StorageError as problem:
    print(problem, file=sys.stderr)
    sys.exit(problem.exit_code)
"""
)


AT_EXIT = """
import atexit, sys
import numpy as np
from optimist.data import Spec
from optimist.data.lane_recorder import LaneRecorder

lane = LaneRecorder(sys.argv[1], Spec((2000,), "float32", actions=3)).lane()
atexit.register(lane.close)
lane.begin(np.zeros(2000))
for t in range(200):
    lane.add(t % 3, 1.0, False, False, np.full(2000, t))
"""


def assert_valid_prefix(folder):
    """Each lane's steps are 0, 1, 2, ... in time order."""
    dataset = open_dataset(folder)
    timeline = dataset.timeline
    for lane in np.unique(timeline.lane):
        reward = timeline.reward[timeline.lane == lane]
        np.testing.assert_array_equal(reward, np.arange(len(reward)))
    frames = timeline.decoded()
    steps = np.arange(len(timeline))
    shown = frames[steps + timeline.episode_of(steps), 0, 0]
    np.testing.assert_array_equal(shown, timeline.reward.astype(int) % 251)
    return dataset


def test_kill_9_at_random_moments_leaves_a_valid_prefix(tmp_path):
    random = np.random.default_rng(os.getpid())
    before = 0
    for _ in range(4):
        child = subprocess.Popen([sys.executable, "-c", ENDLESS, str(tmp_path)])
        deadline = time.monotonic() + PATIENCE
        while not (tmp_path / f"steps-{before:06d}.arrow").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.4))
        child.send_signal(signal.SIGKILL)
        child.wait()
        try:
            assert_valid_prefix(tmp_path)
        except DataError as problem:
            assert "is empty" in str(problem) and not before
        before = len(list(tmp_path.glob("steps-*.arrow")))
    Recorder(tmp_path, SPEC, lanes=1)
    assert verify(tmp_path) == []
    assert assert_valid_prefix(tmp_path).timeline.lane.max() >= 2


def test_a_full_disk_is_one_line_and_keeps_the_earlier_shards(tmp_path):
    # The manifest grows with every shard, so some write reaches the limit.
    found = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), "6000"], capture_output=True, text=True, timeout=PATIENCE
    )
    assert found.returncode == 6, found.stderr
    assert "needed" in found.stderr and "are free" in found.stderr and found.stderr.count("\n") == 1
    assert len(assert_valid_prefix(tmp_path)) >= 64
    assert not list(tmp_path.glob("*.partial"))
    Recorder(tmp_path, SPEC, lanes=1)
    assert verify(tmp_path) == []


def test_what_the_disk_refused_is_written_when_there_is_room(tmp_path, monkeypatch):
    from optimist.data.disk import shard as module
    from optimist.errors import StorageError

    recorder = Recorder(tmp_path, SPEC, lanes=1, shard_steps=4)
    whole = module.write_whole

    def refusing(path, content):
        raise StorageError("no room")

    def add(number):
        frame = np.full((1, 8, 8), number, np.uint8)
        recorder.add(frame, [0], [float(number)], [False], [False], frame + 1)

    monkeypatch.setattr(module, "write_whole", refusing)
    with pytest.raises(StorageError):
        for number in range(4):
            add(number)
    monkeypatch.setattr(module, "write_whole", whole)
    for number in range(4, 9):
        add(number)
    recorder.close()
    assert len(assert_valid_prefix(tmp_path)) == recorder.steps == 9


def test_the_end_of_a_process_writes_also_a_large_shard(tmp_path):
    """No thread begins then, and the one that hashed the file lost it."""
    found = subprocess.run([sys.executable, "-c", AT_EXIT, str(tmp_path)], timeout=PATIENCE)
    assert found.returncode == 0 and len(open_dataset(tmp_path)) == 200 and verify(tmp_path) == []
