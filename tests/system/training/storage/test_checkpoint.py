"""A checkpoint is whole or not there: damage is named and passed over, a kill leaves a loadable one."""

import errno
import hashlib
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from little import largest_file
from optimist.errors import RunError, StorageError
from optimist.training.storage import checkpoint
from optimist.training.storage.checkpoint import load_state, save_state


def state(number: int) -> dict:
    random = np.random.default_rng(number)
    return {
        "params": {"q": [random.normal(size=(3, 4)).astype(np.float32), np.zeros(2, np.float32)]},
        "key": random.integers(2**32, size=(2, 2), dtype=np.uint32),
        "step": np.int32(number),
        "wide": np.asfortranarray(random.normal(size=(5, 2)).astype(np.float32)),
    }


LIKE = state(0)


def assert_is(found, step):
    assert found is not None
    assert found[0] == step
    assert jax.tree.structure(found[1]) == jax.tree.structure(LIKE)
    for ours, theirs in zip(jax.tree.leaves(found[1]), jax.tree.leaves(state(step)), strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(ours, theirs)


def test_a_state_comes_back_bit_by_bit_and_shapes_are_enough_to_load_it(tmp_path):
    assert load_state(tmp_path / "nowhere", LIKE) is None
    save_state(tmp_path, 7, state(7))
    for like in (LIKE, jax.eval_shape(lambda: jax.tree.map(jax.numpy.asarray, LIKE))):
        assert_is(load_state(tmp_path, like), 7)


def test_the_newest_and_one_to_fall_back_on_are_kept(tmp_path):
    for step in (1, 2, 10, 9_999_999, 10_000_000):
        save_state(tmp_path, step, state(step))
    assert sorted(int(path.name.split("-")[1]) for path in tmp_path.iterdir()) == [9_999_999, 10_000_000]
    assert_is(load_state(tmp_path, LIKE), 10_000_000)


def test_equal_states_have_equal_names(tmp_path):
    first = save_state(tmp_path / "a", 5, state(5)).name
    assert save_state(tmp_path / "b", 5, state(5)).name == first
    assert save_state(tmp_path / "c", 5, state(6)).name != first


def test_any_flipped_bit_is_named_and_the_previous_state_used(tmp_path, caplog):
    save_state(tmp_path, 1, state(1))
    newest = save_state(tmp_path, 2, state(2))
    content, random = newest.read_bytes(), np.random.default_rng(0)
    for bit in random.choice(8 * len(content), 300, replace=False).tolist():
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        newest.write_bytes(damaged)
        caplog.clear()
        assert_is(load_state(tmp_path, LIKE), 1)
        assert [record.getMessage() for record in caplog.records] == [f"{newest} is damaged: skipped"]


def test_a_file_of_another_length_is_passed_over(tmp_path, caplog):
    save_state(tmp_path, 1, state(1))
    newest = save_state(tmp_path, 2, state(2))
    content = newest.read_bytes()
    for changed in (content[:-1], content[: len(content) // 2], b"", content + b"x"):
        newest.write_bytes(changed)
        assert_is(load_state(tmp_path, LIKE), 1)
        assert newest.name in caplog.messages[-1]


def test_a_damaged_file_is_replaced_by_the_same_step_written_again(tmp_path, caplog):
    save_state(tmp_path, 1, state(1))
    save_state(tmp_path, 2, state(2)).write_bytes(b"noise")
    save_state(tmp_path, 2, state(2))
    assert_is(load_state(tmp_path, LIKE), 2)
    assert not caplog.records


def test_when_all_are_damaged_the_remedy_is_named(tmp_path):
    for step in (1, 2):
        save_state(tmp_path, step, state(step)).write_bytes(b"noise")
    with pytest.raises(
        RunError, match=r"no checkpoint .* is damaged and 1 more\): start again with --restart"
    ):
        load_state(tmp_path, LIKE)


def test_leftovers_of_a_crash_are_cleaned(tmp_path):
    leftover = tmp_path / "step-000000000009-0123.safetensors.partial"
    leftover.write_bytes(b"half")
    assert load_state(tmp_path, LIKE) is None
    save_state(tmp_path, 1, state(1))
    assert not leftover.exists()
    assert_is(load_state(tmp_path, LIKE), 1)


def test_another_agents_shapes_are_refused(tmp_path):
    save_state(tmp_path, 3, state(3))
    shapes = {**LIKE, "wide": np.zeros((2, 5), np.float32)}
    ranks, more = {**LIKE, "step": np.zeros(1, np.int32)}, {**LIKE, "another": np.zeros(1)}
    for like in (ranks, more, {"step": np.int32(0)}, shapes):
        with pytest.raises(RunError, match="another agent's parameters"):
            load_state(tmp_path, like)


def with_its_hash(folder, content: bytes):
    """A file that a forger could leave: the name is right, the content is not."""
    digest = hashlib.sha256(content).hexdigest()[:32]
    (folder / f"step-000000000001-{digest}.safetensors").write_bytes(content)


def overlapping() -> bytes:
    header = {
        "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]},
    }
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(12)


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("it ran",)


def as_bytes(header: dict, data: bytes, step: int = 2) -> bytes:
    said = {"step": str(step), "configuration": "this"}
    text = json.dumps({"__metadata__": said, **header} if isinstance(header, dict) else header).encode()
    return struct.pack("<Q", len(text)) + text + data


def forged(**changes) -> bytes:
    arrays = {"w": np.arange(4, dtype=np.float32), "step": np.array(2, np.int32), **changes}
    return save(arrays, {"step": "2", "configuration": "this"})


FORGED = {
    "another type": forged(w=np.arange(4, dtype=np.int32)),
    "a wider type": forged(step=np.array(2)),
    "another shape": forged(w=np.zeros((2, 2), np.float32)),
    "a NaN": forged(w=np.array([0, 1, np.nan, 3], np.float32)),
    "an infinity": forged(w=np.array([0, 1, np.inf, 3], np.float32)),
    "one more": forged(more=np.zeros(1)),
    "overlapping offsets": overlapping(),
    "a huge header": struct.pack("<Q", 1 << 60) + b"{}",
    "an unknown type": as_bytes({"w": {"dtype": "F9", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
    "a type without numpy": as_bytes(
        {"w": {"dtype": "F8_E5M2", "shape": [4], "data_offsets": [0, 4]}}, bytes(4)
    ),
    "a huge shape": as_bytes({"w": {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 4]}}, bytes(4)),
    "a negative shape": as_bytes({"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, bytes(4)),
    "a deep header": struct.pack("<Q", 200_000) + b"[" * 200_000,
    "a list": as_bytes([1], b""),
    "strange metadata": as_bytes({"__metadata__": {"configuration": []}}, b""),
    "not UTF-8": struct.pack("<Q", 4) + b'{"\xff"',
    "far too large": bytes(2**21),
    "a pickle": pickle.dumps(Harmful()),
    "nothing": b"",
    "a byte": b"x",
}


@pytest.mark.parametrize("content", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("another", [True, False], ids=["with a valid one", "alone"])
def test_a_forged_state_is_named_and_passed_over(tmp_path, caplog, monkeypatch, content, another):
    monkeypatch.chdir(tmp_path)
    like = {"w": np.zeros(4, np.float32), "step": np.int32(0)}
    valid = {"w": np.ones(4, np.float32), "step": np.int32(1)}
    name = f"step-000000000002-{hashlib.sha256(content).hexdigest()[:32]}.safetensors"
    if another:
        save_state(tmp_path, 1, valid, "this")
    (tmp_path / name).write_bytes(content)
    if another:
        step, found = load_state(tmp_path, like, "this")
        assert step == 1 and (found["w"] == valid["w"]).all()
        [told] = [record.getMessage() for record in caplog.records]
        assert name in told and told.endswith(": skipped") and "\n" not in told
    else:
        with pytest.raises(RunError, match=f"no checkpoint .*{name} .*--restart") as caught:
            load_state(tmp_path, like, "this")
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "it ran").exists()


@settings(max_examples=100, deadline=None)  # make torture forges 500
@given(data=st.data())
def test_no_header_breaks_the_reader(tmp_path_factory, data):
    """Any JSON in place of the header, and any change of a real one: it is refused, in one line."""
    numbers = st.integers(-(2**70), 2**70)
    entry = st.fixed_dictionaries(
        {
            "dtype": st.sampled_from(["F32", "F64", "BF16", "F8_E4M3", "I32", "U32", "BOOL", "x"]),
            "shape": st.lists(numbers, max_size=3),
            "data_offsets": st.lists(numbers, min_size=1, max_size=3),
        }
    )
    plain = st.recursive(
        st.none() | numbers | st.text(max_size=5),
        lambda x: st.lists(x) | st.dictionaries(st.text(max_size=3), x),
    )
    header = data.draw(st.dictionaries(st.sampled_from(["w", "step", "__metadata__"]), entry | plain))
    folder = tmp_path_factory.mktemp("forged")
    with_its_hash(folder, as_bytes(header, data.draw(st.binary(max_size=40)), step=1))
    with pytest.raises(RunError) as caught:
        load_state(folder, {"w": np.zeros(4, np.float32), "step": np.int32(0)}, "this")
    assert "\n" not in str(caught.value)


def test_a_file_larger_than_any_such_state_is_not_read(tmp_path):
    with_its_hash(tmp_path, bytes(2**21))
    with pytest.raises(RunError, match="is too large"):
        load_state(tmp_path, LIKE)


@pytest.mark.parametrize("kind", ["a folder", "a read error"])
def test_an_unreadable_newest_state_is_named_and_passed_over(tmp_path, caplog, monkeypatch, kind):
    save_state(tmp_path, 1, state(1))
    newest = save_state(tmp_path, 2, state(2))
    reason = "Is a directory"
    if kind == "a folder":
        newest.unlink()
        newest.mkdir()
    else:
        reason = "Input/output error"

        def broken(path, *words, **named):
            if path == newest:
                raise OSError(errno.EIO, reason)
            return open(path, *words, **named)

        monkeypatch.setattr(checkpoint, "open", broken, raising=False)
    assert_is(load_state(tmp_path, LIKE), 1)
    [told] = [message for message in caplog.messages if str(tmp_path) in message]  # threads may tell more
    assert told == f"{newest} cannot be read ({reason}): skipped"
    for step in (3, 4, 5):  # nor does it stop the run later
        save_state(tmp_path, step, state(step))
        assert_is(load_state(tmp_path, LIKE), step)


def test_a_state_that_was_passed_over_takes_no_place_of_those_that_are_kept(tmp_path):
    """Two good ones are there after every save: the newest may be damaged next."""
    for step in (10, 20, 30):
        newest = save_state(tmp_path, step, state(step))
    newest.rename(
        tmp_path / f"step-000000000030-{'f' * 32}.safetensors"
    )  # sorts before any other of its step
    for step, left in ((25, 20), (30, 25), (40, 30)):
        newest = save_state(tmp_path, step, state(step))
        content = newest.read_bytes()
        newest.write_bytes(b"noise")
        assert_is(load_state(tmp_path, LIKE), left)
        newest.write_bytes(content)


def test_a_file_that_somebody_else_named_is_no_state(tmp_path, caplog):
    digest = save_state(tmp_path, 1, state(1)).stem[-32:]
    for name in ("step-x", "step-zzz-1", f"step-{digest}", "step-9-1"):
        (tmp_path / f"{name}.safetensors").write_bytes(b"theirs")
    assert_is(load_state(tmp_path, LIKE), 1)
    save_state(tmp_path, 2, state(2))
    assert_is(load_state(tmp_path, LIKE), 2)


def test_a_full_disk_is_told_in_bytes_and_keeps_the_old_state(tmp_path):
    save_state(tmp_path, 1, state(1))
    with largest_file(200), pytest.raises(StorageError, match=r"needed \d+ bytes, \d+ are free"):
        save_state(tmp_path, 2, state(2))
    assert len(list(tmp_path.iterdir())) == 1
    assert_is(load_state(tmp_path, LIKE), 1)
    save_state(tmp_path, 2, state(2))
    assert_is(load_state(tmp_path, LIKE), 2)


NURSERY = """
import itertools, os, sys
from pathlib import Path
import numpy as np
from optimist.training.storage.checkpoint import save_state

for line in sys.stdin:
    child = os.fork()
    if not child:
        for step in itertools.count(int(line)):
            state = {"w": np.full(200_000, step, np.float32), "step": np.int32(step)}
            save_state(Path(sys.argv[1]), step, state)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


def test_kill_9_while_saving_never_leaves_an_unloadable_latest(tmp_path, caplog):
    random, like = np.random.default_rng(0), {"w": np.zeros(200_000, np.float32), "step": np.int32(0)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    last = halves = kills = 0
    with subprocess.Popen([sys.executable, "-c", NURSERY, str(tmp_path)], **pipes) as nursery:
        while kills < 40 or (not halves and kills < 400):  # on a busy machine few kills hit a write
            kills += 1
            print(last + 1, file=nursery.stdin, flush=True)
            child = int(nursery.stdout.readline())
            time.sleep(random.uniform(0.01, 0.1))
            os.kill(child, signal.SIGKILL)
            assert nursery.stdout.readline() == "gone\n"
            halves += any(tmp_path.glob("*.partial"))
            step, loaded = load_state(tmp_path, like) or (0, {"step": 0, "w": np.zeros(200_000)})
            assert step == loaded["step"] >= last
            np.testing.assert_array_equal(loaded["w"], np.full(200_000, step, np.float32))
            last = step
    assert last > 10
    assert halves
    assert not caplog.records
    save_state(tmp_path, last + 1, {"w": np.zeros(200_000, np.float32), "step": np.int32(0)})
    assert not list(tmp_path.glob("*.partial"))
