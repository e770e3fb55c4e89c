"""Reading returns what was recorded, for every type, lane, shard border and session."""

import resource
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optimist.data import Recorder, Sampler, Spec, open_dataset, transitions
from optimist.errors import DataError
from patience import PATIENCE
from reference import SPECS, episodes_of, record


def assert_same(dataset, lanes):
    episodes = episodes_of(lanes)
    steps = [step for episode in episodes for step in episode]
    timeline = dataset.timeline
    assert len(dataset) == len(timeline) == len(steps)
    for name in ("action", "reward", "terminal", "truncated", "time"):
        np.testing.assert_array_equal(getattr(timeline, name), [getattr(step, name) for step in steps])
    lengths = [len(episode) for episode in episodes]
    np.testing.assert_array_equal(dataset.stops - dataset.starts, lengths)
    frames = [[*(step.observation for step in each), each[-1].next_observation] for each in episodes]
    frames = np.concatenate(frames)
    assert timeline.frame_count == len(frames)
    decoded = timeline.decoded()
    assert decoded.dtype == frames.dtype
    np.testing.assert_array_equal(decoded, frames)
    numbers = np.random.default_rng(0).integers(0, len(frames), (7, 30))
    np.testing.assert_array_equal(timeline.frames(numbers), frames[numbers])


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("name", SPECS)
def test_two_sessions_come_back_step_by_step(tmp_path, name, lanes):
    folder = tmp_path / "Spiel Tübingen 遊戲"
    played = record(folder, SPECS[name], lanes=lanes, rows=130)
    played += record(folder, SPECS[name], lanes=2, rows=50, seed=1)
    dataset = open_dataset(str(folder))
    assert dataset.spec == SPECS[name]
    assert_same(dataset, played)
    np.testing.assert_array_equal(np.sort(dataset.timeline.time), np.arange(len(dataset)))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lanes=st.integers(1, 4),
    rows=st.integers(1, 40),
    shard_steps=st.integers(1, 50),
    ends=st.sampled_from([0.0, 0.1, 0.6, 2.0]),
    seed=st.integers(0, 2**16),
)
def test_any_shard_size_and_episode_length_comes_back(tmp_path_factory, lanes, rows, shard_steps, ends, seed):
    folder = tmp_path_factory.mktemp("any")
    spec = Spec((3, 2), "uint8", actions=4)
    played = record(folder, spec, lanes=lanes, rows=rows, shard_steps=shard_steps, ends=ends, seed=seed)
    assert_same(open_dataset(folder), played)


def test_frames_that_compress_come_back(tmp_path):
    spec = Spec((20, 20), "uint8", actions=2)
    ramp = np.arange(700, dtype=np.uint8)[:, None, None] * np.ones((20, 20), np.uint8)
    with Recorder(tmp_path, spec, lanes=1) as recorder:
        for now, following in zip(ramp[:-1], ramp[1:], strict=True):
            recorder.add(now[None], [0], [0.0], [False], [False], following[None])
    dataset = open_dataset(tmp_path)
    assert dataset.timeline.source.frame_bytes < ramp.nbytes / 3
    for count in (1, 5, 23, 24, 700):
        numbers = np.random.default_rng(count).integers(0, 700, count)
        np.testing.assert_array_equal(dataset.timeline.frames(numbers), ramp[numbers])
    np.testing.assert_array_equal(dataset.timeline.decoded(), ramp)


def test_threads_read_the_same_frames(tmp_path):
    record(tmp_path, SPECS["pixels"], lanes=3, rows=300)
    timeline = open_dataset(tmp_path).timeline
    frames = timeline.decoded()
    asked = np.random.default_rng(0).integers(0, len(frames), (200, 20))
    with ThreadPoolExecutor(4) as pool:
        for numbers, found in zip(asked, pool.map(timeline.frames, asked), strict=True):
            np.testing.assert_array_equal(found, frames[numbers])


def test_the_data_floor_does_not_need_jax():
    code = "import sys, optimist.data.verify; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_frame_number_off_the_tape_is_an_error(tmp_path):
    record(tmp_path, SPECS["pixels"], rows=5)
    timeline = open_dataset(tmp_path).timeline
    for number in (-1, timeline.frame_count):
        with pytest.raises(IndexError):
            timeline.frames(np.array([number]))
    assert timeline.frames(np.array([], np.int64)).shape == (0, 6, 5, 1)


def test_the_fingerprint_follows_the_contents(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        record(tmp_path / name, SPECS["pixels"], seed=seed)
    a, b, c = (open_dataset(tmp_path / name).fingerprint for name in "abc")
    assert a == b != c


def test_returns_are_sums_of_unclipped_rewards(tmp_path):
    episodes = episodes_of(record(tmp_path, SPECS["pixels"], lanes=3, rows=200))
    found = open_dataset(tmp_path).episodes
    np.testing.assert_allclose(found.returns, [sum(float(s.reward) for s in e) for e in episodes], atol=1e-9)
    np.testing.assert_array_equal(found.terminal, [e[-1].terminal for e in episodes])
    np.testing.assert_array_equal(found.cut, [not (e[-1].terminal or e[-1].truncated) for e in episodes])
    np.testing.assert_array_equal(found.time, [e[-1].time for e in episodes])


def test_a_read_only_folder_opens(tmp_path):
    played = record(tmp_path, SPECS["pixels"])
    for path in [*tmp_path.iterdir(), tmp_path]:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    try:
        assert_same(open_dataset(tmp_path), played)
    finally:
        tmp_path.chmod(0o755)


RECORD_AS_NOBODY = """
import os, sys
from optimist.data import Recorder, Spec
from optimist.errors import StorageError
if os.getuid() == 0:  # root can write read-only files
    os.setgid(65534)
    os.setuid(65534)
try:
    Recorder(sys.argv[1], Spec((4, 4, 1), "uint8", actions=2), lanes=1)
except StorageError as problem:
    print(problem)
"""


def test_recording_into_a_read_only_folder_is_refused_in_one_line():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        words = [sys.executable, "-c", RECORD_AS_NOBODY, folder]
        found = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
        Path(folder).chmod(0o755)
    assert found.stdout.startswith(f"cannot write {folder}"), found
    assert "make the folder writable" in found.stdout and found.stdout.count("\n") == 1


def test_thousands_of_shards_do_not_exhaust_the_file_descriptors(tmp_path):
    record(tmp_path, Spec((2,), "uint8", actions=2), rows=150, shard_steps=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
    try:
        timeline = open_dataset(tmp_path).timeline
        timeline.frames(np.arange(timeline.frame_count))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("name", SPECS)
def test_time_and_lane_are_read_when_asked_for_and_are_those_of_the_files(tmp_path, name):
    record(tmp_path, SPECS[name], lanes=3, rows=130)
    record(tmp_path, SPECS[name], lanes=2, rows=50, seed=1)
    dataset = open_dataset(tmp_path)
    transitions(Sampler(dataset), np.arange(len(dataset)), dataset.timeline.frames)
    assert not {"time", "lane"} & set(vars(dataset.timeline))  # sampling needs neither
    files = [pa.ipc.open_file(path).read_all() for path in sorted(tmp_path.glob("steps-*.arrow"))]
    time, lane = (np.concatenate([file[column].to_numpy() for file in files]) for column in ("time", "lane"))
    order = np.lexsort((time, lane))
    np.testing.assert_array_equal(dataset.timeline.time, time[order])
    np.testing.assert_array_equal(dataset.timeline.lane, lane[order])
    assert dataset.timeline.time.dtype == np.int64 and dataset.timeline.lane.dtype == np.int32


def test_a_steps_file_that_changes_after_opening_is_refused_when_its_time_is_read(tmp_path):
    record(tmp_path, SPECS["pixels"], lanes=2)
    dataset = open_dataset(tmp_path)
    file = tmp_path / "steps-000001.arrow"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match="steps-000001"):
        dataset.first(10)
