"""Shards are cut by rows alone: the same steps give the same shards however often they were made durable,
and a shard that is replaced by a longer one is lost neither to a crash nor to a reader."""

import json
import os
from itertools import count, pairwise

import numpy as np
import pytest

from little import PIXELS
from optimist.data import Dataset, Recorder, Spec
from optimist.data.disk import manifest as manifests
from optimist.data.lane_recorder import LaneRecorder
from optimist.data.sampling import Sampler
from optimist.data.verify import verify
from optimist.errors import DataError
from power_loss import after_every
from reference import SPECS, random_actions, random_frames

LANES, ROWS, SHARD_ROWS = 3, 50, 16
LARGE = Spec((84, 84, 1), "uint8", actions=4)  # a thread writes its shards


@pytest.fixture(autouse=True)
def no_power_fails(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def play(spec: Spec, rows: int = ROWS):
    random = np.random.default_rng(0)
    frame = random_frames(spec, LANES, random)
    for _ in range(rows):
        ended = random.random((2, LANES)) < 0.08
        following = random_frames(spec, LANES, random)
        yield frame, random_actions(spec, LANES, random), random.normal(size=LANES), *ended, following
        over = ended.any(axis=0).reshape(LANES, *[1] * len(spec.frame_shape))
        frame = np.where(over, random_frames(spec, LANES, random), following)


def recorder_of(folder, spec: Spec, shard_rows: int = SHARD_ROWS) -> Recorder:
    return Recorder(folder, spec, lanes=LANES, shard_steps=shard_rows * LANES)


def recorded(folder, spec: Spec, *, flushed=(), stopped=(), shard_rows: int = SHARD_ROWS) -> Dataset:
    """The play, flushed after these rows, and stopped and continued after those."""
    rows, recorder = list(play(spec)), recorder_of(folder, spec, shard_rows)
    for first, stop in pairwise([0, *stopped, len(rows)]):
        if first:
            recorder = recorder_of(folder, spec, shard_rows)
            assert recorder.go_on(first * LANES)
        for number, step in enumerate(rows[first:stop], first + 1):
            recorder.add(*step)
            if number in flushed:
                recorder.flush()
                assert len(Dataset.open(folder)) == number * LANES == recorder.steps
        recorder.close()
    return Dataset.open(folder)


def hashes(data: Dataset) -> list[tuple[str, str]]:
    return [(each.steps.sha256, each.frames.sha256) for each in data.timeline.source.manifest.shards]


def assert_same(one: Dataset, other: Dataset) -> None:
    assert hashes(one) == hashes(other)
    assert one.fingerprint == other.fingerprint
    np.testing.assert_array_equal(Sampler(one).positions(0, 300), Sampler(other).positions(0, 300))
    for ours, theirs in zip(one.batch(32), other.batch(32), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert verify(other.path) == []


@pytest.fixture(scope="module", params=[*SPECS.values(), LARGE], ids=[*SPECS, "large"])
def whole(request, tmp_path_factory) -> Dataset:
    return recorded(tmp_path_factory.mktemp("whole"), request.param)


@pytest.mark.parametrize(
    "when",
    [
        {"flushed": range(1, ROWS)},
        {"flushed": range(5, ROWS, 5)},
        {"flushed": [16, 32, 48]},
        {"stopped": [1, 2, 16, 20, 31, 49]},
        {"flushed": range(3, ROWS, 3), "stopped": [10, 40]},
    ],
    ids=str,
)
def test_the_same_steps_give_the_same_shards(whole, tmp_path, when):
    assert [each.step_rows for each in whole.timeline.source.manifest.shards] == [48, 48, 48, 6]
    assert_same(whole, recorded(tmp_path, whole.spec, **when))


def test_lanes_at_their_own_pace_give_the_same_shards(tmp_path, monkeypatch):
    def recorded(folder) -> Dataset:
        recorder = LaneRecorder(folder, Spec((2,), "float32", actions=3))
        lanes, random = [recorder.lane() for _ in range(3)], np.random.default_rng(0)
        for lane in lanes:
            lane.begin(random.normal(size=2))
        for _ in range(100):
            lane = lanes[random.integers(3)]
            lane.add(random.integers(3), random.normal(), over := random.random() < 0.1, False, np.ones(2))
            if over or random.random() < 0.1:
                lane.begin(random.normal(size=2))
        for lane in lanes:
            lane.close()
        return Dataset.open(folder)

    monkeypatch.setattr("optimist.data.lane_recorder.SHARD_STEPS", 20)
    whole = recorded(tmp_path / "whole")
    monkeypatch.setattr("optimist.data.lane_recorder.SECONDS", -1)  # all is written after every step
    assert_same(whole, recorded(tmp_path / "other"))


class Crash(BaseException):
    """The process ends here."""


def test_a_crash_at_any_moment_loses_nothing_and_changes_nothing(tmp_path, monkeypatch):
    """After each sync, rename and removal; what was flushed is there, and the rest comes out the same."""
    rows = list(play(PIXELS, rows=12))
    with recorder_of(tmp_path / "whole", PIXELS, shard_rows=5) as recorder:
        for step in rows:
            recorder.add(*step)
    for moment in count(1):
        folder = tmp_path / f"{moment}"
        durable, crashed = _crashed(folder, rows, moment, monkeypatch)
        if not crashed:
            break
        with recorder_of(folder, PIXELS, shard_rows=5) as recorder:
            kept = recorder.steps // LANES
            assert kept >= durable
            if kept:
                Dataset.open(folder).timeline.decoded()
                assert recorder.go_on(recorder.steps)
                assert verify(folder) == []  # no leftovers
            for step in rows[kept:]:
                recorder.add(*step)
        assert_same(Dataset.open(tmp_path / "whole"), Dataset.open(folder))
    assert durable == 12 and moment > 60


def _crashed(folder, rows: list, moment: int, monkeypatch) -> tuple[int, bool]:
    """Record, with a flush after every second row, and crash: the flushed rows, and whether it crashed."""
    left, durable, recorder = moment, 0, None

    def happened():
        nonlocal left
        left -= 1
        if not left:
            raise Crash

    with monkeypatch.context() as patch:
        after_every(["fsync", "replace", "unlink"], happened, patch)
        try:
            recorder = recorder_of(folder, PIXELS, shard_rows=5)
            for number, step in enumerate(rows, 1):
                recorder.add(*step)
                if number % 2 == 0:
                    recorder.flush()
                    durable = number
        except Crash:
            pass
    if recorder:
        recorder._folder.lock.release()
    return durable, left <= 0


def test_readers_keep_what_they_opened(tmp_path):
    """A recording replaces its last shard; who opened the one before can read its steps and frames."""
    recorder, steps = recorder_of(tmp_path, PIXELS), play(PIXELS)
    opened = []
    for number, step in enumerate(steps, 1):
        recorder.add(*step)
        if number % 5 == 0:
            recorder.flush()
            opened.append(Dataset.open(tmp_path))  # no frame is read yet
    recorder.close()
    last = Dataset.open(tmp_path).timeline
    for number, data in enumerate(opened, 1):
        timeline = data.timeline
        assert len(data) == 5 * number * LANES
        for lane in range(LANES):
            here, there = (np.flatnonzero(each.lane == lane)[: 5 * number] for each in (timeline, last))
            np.testing.assert_array_equal(timeline.time[here], last.time[there])
            ours, theirs = (
                each.frames(place + each.episode_of(place) + 1)
                for each, place in ((timeline, here), (last, there))
            )
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("read", [Dataset.open, verify])
def test_a_shard_that_is_replaced_while_it_is_opened(tmp_path, monkeypatch, read):
    """The recording goes on just after the manifest was read, three times."""
    recorder, steps = recorder_of(tmp_path, PIXELS), play(PIXELS)
    recorder.add(*next(steps))
    recorder.flush()
    found, left = manifests.read, [2, 2, 2]

    def late(folder):
        manifest = found(folder)
        for _ in range(left.pop() if left else 0):
            recorder.add(*next(steps))
            recorder.flush()
        return manifest

    monkeypatch.setattr(manifests, "read", late)
    found_there = read(tmp_path)
    assert not left and len(found_there) == (0 if read is verify else 7 * LANES)


def test_a_damaged_shard_of_a_recording_is_still_named(tmp_path):
    recorded(tmp_path, PIXELS, flushed=[49])
    (file,) = tmp_path.glob("steps-000003-*.arrow")
    file.unlink()
    with pytest.raises(DataError, match=rf"{file.name} is missing; restore it from a copy"):
        Dataset.open(tmp_path)
    assert any(file.name in problem for problem in verify(tmp_path))


def test_a_longer_shard_is_not_taken_for_a_leftover(tmp_path):
    """An old manifest names a shard that a longer one has replaced: the steps in this one are kept."""
    recorder, steps = recorder_of(tmp_path, PIXELS), play(PIXELS)
    for _ in range(5):
        recorder.add(*next(steps))
    recorder.flush()
    old = (tmp_path / "manifest.json").read_text()
    recorder.add(*next(steps))
    recorder.close()
    new = (tmp_path / "manifest.json").read_text()
    (tmp_path / "manifest.json").write_text(old)
    with pytest.raises(DataError, match=r"holds frames-000000-18.arrow, .* the manifest is old"):
        recorder_of(tmp_path, PIXELS)
    (tmp_path / "manifest.json").write_text(new)
    assert len(Dataset.open(tmp_path)) == json.loads(new)["steps"] == 18 and verify(tmp_path) == []
