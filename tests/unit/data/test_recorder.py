"""The recorder accepts only valid steps, loses none, and never overwrites files that its manifest lacks."""

import threading
from concurrent.futures import wait

import numpy as np
import pytest

from optimist.data import Recorder, Spec, open_dataset
from optimist.data import recorder as module
from optimist.data.disk import shard
from optimist.data.verify import verify
from optimist.errors import DataError, StorageError
from reference import SPECS, record


def step(**changes):
    good = {
        "observation": np.zeros((2, 6, 5, 1), np.uint8),
        "action": np.array([0, 3]),
        "reward": np.array([0.0, 1.0]),
        "terminal": np.array([True, True]),
        "truncated": np.array([False, False]),
        "next_observation": np.zeros((2, 6, 5, 1), np.uint8),
    }
    return good | changes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"observation": np.zeros((6, 5, 1), np.uint8)}, "shape"),
        ({"observation": np.zeros((2, 6, 5, 1))}, "float64"),
        ({"next_observation": np.zeros((2, 6, 5, 4), np.uint8)}, "next_observation has shape"),
        ({"action": np.array([0, 4])}, "0 to 3"),
        ({"action": np.array([-1, 0])}, "0 to 3"),
        ({"action": np.array([0.5, 0.5])}, "float64"),
        ({"reward": np.array([np.nan, 0])}, "NaN"),
        ({"reward": np.array([0.0])}, "shape"),
        ({"reward": np.array(["a", "b"])}, "<U1"),
        ({"reward": np.array([None, 0.0])}, "object"),
        ({"terminal": np.array([0, 1])}, "bool"),
        ({"truncated": np.array([False])}, "shape"),
    ],
)
def test_a_step_that_does_not_fit_is_refused_in_one_line(tmp_path, changes, said):
    recorder = Recorder(tmp_path, SPECS["pixels"], lanes=2)
    with pytest.raises(DataError, match=said) as refused:
        recorder.add(**step(**changes))
    assert "\n" not in str(refused.value)
    assert recorder.steps == 0


@pytest.mark.parametrize("spoiled", ["observation", "next_observation", "reward", "action"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_not_recorded(tmp_path, spoiled, value):
    recorder = Recorder(tmp_path, SPECS["vectors"], lanes=1)
    frame, flag = np.zeros((1, 7), np.float32), np.array([False])
    columns = {"observation": frame, "next_observation": frame, "terminal": ~flag, "truncated": flag}
    columns |= {"reward": np.zeros(1), "action": np.zeros((1, 2))}
    with pytest.raises(DataError, match=f"{spoiled} holds NaN or infinity"):
        recorder.add(**{**columns, spoiled: np.full_like(columns[spoiled], value)})


def test_a_vector_action_lies_in_its_box_give_or_take_rounding(tmp_path):
    spec = Spec((7,), "float32", action_low=(-0.1, 0.0), action_high=(0.1, 2.0))
    recorder, frame = Recorder(tmp_path, spec, lanes=2), np.zeros((2, 7), np.float32)
    ends = ([0.0, 0.0], [True, True], [False, False], frame)
    for action in ([[0.0, 0.0], [0.2, 0.0]], [[0.0, -0.01], [0.0, 0.0]]):
        with pytest.raises(DataError, match=r"the spec has actions \(-0.1, 0.0\) to \(0.1, 2.0\)") as refused:
            recorder.add(frame, action, *ends)
        assert "\n" not in str(refused.value)
    recorder.add(frame, np.array([[0.1, 2.0], [-0.1, 2.0000001]], np.float32), *ends)
    assert recorder.steps == 2


def test_a_step_must_begin_where_the_last_one_led(tmp_path):
    recorder = Recorder(tmp_path, SPECS["pixels"], lanes=2, shard_steps=2)
    recorder.add(**step(terminal=np.array([True, False])))
    with pytest.raises(DataError, match="lane 1"):
        recorder.add(**step(observation=np.ones((2, 6, 5, 1), np.uint8)))


def test_the_recorder_copies_what_it_is_given(tmp_path):
    frame = np.zeros((1, 6, 5, 1), np.uint8)
    with Recorder(tmp_path, SPECS["pixels"], lanes=1) as recorder:
        recorder.add(frame, [0], [0.0], [False], [True], frame)
        frame[:] = 9
    assert not open_dataset(tmp_path).timeline.decoded().any()


def test_another_spec_or_an_old_manifest_is_not_recorded_over(tmp_path):
    record(tmp_path, SPECS["pixels"], rows=64)
    with pytest.raises(DataError, match="another folder"):
        Recorder(tmp_path, SPECS["planes"], lanes=1)
    old = (tmp_path / "manifest.json").read_text()
    record(tmp_path, SPECS["pixels"], rows=200)
    (tmp_path / "manifest.json").write_text(old)
    with pytest.raises(DataError, match="the manifest is old"):
        Recorder(tmp_path, SPECS["pixels"], lanes=1)


def test_provenance_is_kept_and_must_be_json(tmp_path):
    record(tmp_path, SPECS["pixels"], rows=3, provenance={"agent": "dqn"})
    record(tmp_path, SPECS["pixels"], rows=3, provenance={"note": "Größe"})
    assert open_dataset(tmp_path).provenance == {"agent": "dqn", "note": "Größe"}
    with pytest.raises(DataError, match="JSON"):
        Recorder(tmp_path, SPECS["pixels"], lanes=1, provenance={"array": np.zeros(2)})


IMAGES = Spec((84, 84, 1), "uint8", actions=4)
STEPS = 200  # 1.4 MB of frames: enough for a thread to write them


def image(number):
    frame = np.full((1, 84, 84, 1), number % 256, np.uint8)
    frame[0, 0, 0] = number // 256
    return frame


def add_images(recorder, first, stop):
    """Frame t shows t; every 30th step ends an episode."""
    for t in range(first, stop):
        recorder.add(image(t), [t % 4], [float(t)], [t % 30 == 29], [False], image(t + 1))


def assert_images(folder, steps):
    timeline, numbers = open_dataset(folder).timeline, np.arange(steps)
    np.testing.assert_array_equal(timeline.reward, numbers)
    np.testing.assert_array_equal(timeline.time, numbers)
    shown = timeline.frame_of(numbers)
    for frames, first in ((timeline.frames(shown), 0), (timeline.frames(shown + 1), 1)):
        np.testing.assert_array_equal(frames, np.concatenate([image(t + first) for t in numbers]))
    assert verify(folder) == []


def test_play_goes_on_while_a_thread_writes(tmp_path, monkeypatch):
    may_write, asked = threading.Event(), threading.Event()
    whole = shard.write_whole

    def slow(path, content):
        asked.set()
        assert may_write.wait(20)
        return whole(path, content)

    recorder = Recorder(tmp_path, IMAGES, lanes=1, shard_steps=STEPS)
    monkeypatch.setattr(shard, "write_whole", slow)
    add_images(recorder, 0, 2 * STEPS - 1)  # the first shard is still not on disk
    assert asked.wait(20) and recorder.steps == 2 * STEPS - 1
    assert not list(tmp_path.glob("*.arrow"))
    may_write.set()
    recorder.flush()
    assert len(open_dataset(tmp_path)) == recorder.steps == 2 * STEPS - 1
    add_images(recorder, 2 * STEPS - 1, 5 * STEPS + 7)
    recorder.close()
    assert recorder.steps == 5 * STEPS + 7
    assert_images(tmp_path, 5 * STEPS + 7)


@pytest.mark.parametrize("then", ["add", "flush", "close"])
def test_what_a_thread_could_not_write_is_raised_by_the_next_call_and_kept(tmp_path, monkeypatch, then):
    whole = shard.write_whole

    def refusing(path, content):
        raise StorageError("no room")

    recorder = Recorder(tmp_path, IMAGES, lanes=1, shard_steps=STEPS)
    monkeypatch.setattr(shard, "write_whole", refusing)
    add_images(recorder, 0, STEPS)
    wait([recorder._writing])
    for _ in range(3):
        with pytest.raises(StorageError, match="no room"):
            add_images(recorder, STEPS, STEPS + 1) if then == "add" else getattr(recorder, then)()
    assert recorder.steps == STEPS  # the refused call recorded nothing
    monkeypatch.setattr(shard, "write_whole", whole)
    add_images(recorder, STEPS, 2 * STEPS + 5)
    recorder.close()
    assert_images(tmp_path, 2 * STEPS + 5)


def test_both_buffers_survive_a_disk_that_is_full_for_long(tmp_path, monkeypatch):
    whole, refused = shard.write_whole, threading.Event()

    def refusing(path, content):
        assert refused.wait(20)
        raise StorageError("no room")

    recorder = Recorder(tmp_path, IMAGES, lanes=1, shard_steps=STEPS)
    monkeypatch.setattr(shard, "write_whole", refusing)
    add_images(recorder, 0, 2 * STEPS - 1)
    refused.set()
    wait([recorder._writing])
    with pytest.raises(StorageError):
        add_images(recorder, 2 * STEPS - 1, 2 * STEPS)
    monkeypatch.setattr(shard, "write_whole", whole)
    add_images(recorder, 2 * STEPS - 1, 3 * STEPS)
    recorder.close()
    assert_images(tmp_path, 3 * STEPS)


def test_minus_zero_is_zero_where_steps_are_joined(tmp_path):
    spec = SPECS["vectors"]
    with Recorder(tmp_path, spec, lanes=1) as recorder:
        zero = np.zeros((1, 7), np.float32)
        recorder.add(zero, [[0.0, 0.0]], [0.0], [False], [False], -zero)
        recorder.add(zero, [[0.0, 0.0]], [0.0], [False], [False], zero)
    assert len(open_dataset(tmp_path)) == 2


@pytest.mark.parametrize(
    ("spec", "lanes", "steps"),
    # 64 lanes of a thousand images would take 460 MB.
    [(SPECS["vectors"], 4, 16384), (SPECS["vectors"], 120, 120 * 1024), (IMAGES, 64, 16384)],
)
def test_shards_grow_with_the_lanes_as_far_as_memory_allows(spec, lanes, steps):
    assert module.usual_shard_steps(spec, lanes) == steps
