"""Forged manifests: opening any of them fails with one line, quickly and without large allocations."""

import copy
import json
import shutil
import time
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from damage import recorded
from optimist.data import Recorder, Spec, open_dataset
from optimist.data.disk import reader as reading
from optimist.data.disk.records import sealed
from optimist.data.look import card
from optimist.data.verify import verify
from optimist.errors import DataError, OptimistError
from patience import is_quick
from replay_ring import Ring, import_dqn_replay, play

SECONDS, BYTES = 1.0, 2**25  # of a quiet machine's processor, and of memory: the limits of one attempt
KEPT = "deleted"

numbers = st.one_of(
    st.integers(),
    st.sampled_from([-1, 0, 1, 2**31, 2**40, 2**63, 2**64, 10**30]),
    st.floats(allow_nan=False, allow_infinity=False),
)
words = st.one_of(
    st.text(max_size=8), st.sampled_from(["uint8", "object", "float32", "../x", "a\nb", "\x1b[2J"])
)
scalars = st.one_of(st.none(), st.booleans(), numbers, words)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A dataset, its manifest as a record, and every place in it."""
    folder = recorded(tmp_path_factory.mktemp("forged") / "data")
    card(open_dataset(folder))  # imports what is imported at first use, which no attempt has to pay for
    record = json.loads((folder / "manifest.json").read_text())
    record.pop("sha256")
    record["provenance"] = {"environment": "minatar/breakout", "seeds": [0], "collection": {"lanes": 1}}
    return folder, record, list(places(record))


def places(value, path=()):
    """The path of every value inside, of the first shard alone."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        if path != ("shards",) or key == 0:
            yield (*path, key)
            if isinstance(value[key], (dict, list)):
                yield from places(value[key], (*path, key))


def changed(record: dict, place: tuple, value) -> dict:
    record = copy.deepcopy(record)
    inside = record
    for key in place[:-1]:
        inside = inside[key]
    if value == KEPT:
        del inside[place[-1]]
    else:
        inside[place[-1]] = value
    return record


def read_all(folder) -> None:
    dataset = open_dataset(folder)
    dataset.timeline.decoded()
    card(dataset)
    dataset.first(3)
    dataset.played_by(0)


def assert_one_line_soon(work) -> None:
    """The work may be done more than once."""

    def spent() -> float:
        begun = time.process_time()
        try:
            work()
        except OptimistError as refused:
            assert str(refused).isprintable(), str(refused)
        return time.process_time() - begun

    tracemalloc.start()
    try:
        assert is_quick(spent, SECONDS)
        assert tracemalloc.get_traced_memory()[1] < BYTES
    finally:
        tracemalloc.stop()


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_every_value_may_be_forged(sound, data):
    folder, record, known = sound
    place, value = data.draw(st.sampled_from(known)), data.draw(values | st.just(KEPT))
    (folder / "manifest.json").write_text(sealed(changed(record, place, value)))
    assert_one_line_soon(lambda: read_all(folder))
    problems: list[str] = []
    assert_one_line_soon(lambda: problems.extend(verify(folder)))
    assert all(problem.isprintable() for problem in problems)


@settings(max_examples=200, deadline=None)
@given(text=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
@example(text=b'{"format": "optimist-dataset", "version": 1, "provenance": NaN, "sha256": ""}')
@example(text=b'{"format": "optimist-dataset", "version": 1, "provenance": 1e999, "sha256": ""}')
@example(text=b'{"format": "optimist-dataset", "version": 1, "x": "\\ud800", "sha256": ""}')
@example(text=b'{"format": "optimist-dataset", "version": ' + b"9" * 5000 + b"}")
@example(text=b'{"format": "optimist-dataset", "version": "a\\nb"}')
@example(text=b"[" * 100_000)
@example(text=b'{"a":' * 5000 + b"1" + b"}" * 5000)
def test_any_bytes_may_lie_there(sound, text):
    folder, _, _ = sound
    (folder / "manifest.json").write_bytes(text)
    with pytest.raises(DataError):
        open_dataset(folder)
    assert_one_line_soon(lambda: read_all(folder))
    assert_one_line_soon(lambda: Recorder(folder, Spec((12, 12, 1), "uint8", actions=3), lanes=1).close())


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("frame_shape", [2**40], "frames"),
        ("frame_shape", [10**6] * 4, "frames"),
        ("frame_shape", [-1, 2], "shape"),
        ("frame_shape", [12, 12, True], "frame_shape"),
        ("frame_shape", "12", "frame_shape"),
        ("stack", 2**40, "frames"),
        ("stack", 1.5, "stack"),
        ("actions", 2**31, "actions"),
        ("actions", -3, "actions"),
        ("actions", True, "actions"),
        ("action_low", [None], "action_low"),
        ("action_low", [10**400], "damaged|action_low"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_forged_spec_is_refused_by_its_field(sound, field, value, said):
    folder, record, _ = sound
    forged = changed(record, ("spec", field), value)
    (folder / "manifest.json").write_text(sealed(forged))
    with pytest.raises(DataError, match=said):
        open_dataset(folder)


def test_frames_that_cannot_fit_are_refused_before_they_are_decoded(tmp_path, monkeypatch):
    dataset = open_dataset(recorded(tmp_path))
    monkeypatch.setattr(reading, "MEMORY", 10_000)
    dataset.timeline.frames(range(50))
    with pytest.raises(DataError, match="132 frames take 19,008 bytes, more than this machine's memory"):
        dataset.timeline.decoded()


def test_a_forged_size_is_found_before_room_is_made_for_all_frames(sound):
    folder, record, _ = sound
    forged = changed(record, ("spec", "frame_shape"), [500_000, 12, 1])  # 132 of them would take 800 MB
    (folder / "manifest.json").write_text(sealed(forged))
    with pytest.raises(DataError, match="its header does not say"):
        open_dataset(folder).timeline.decoded()
    assert_one_line_soon(lambda: read_all(folder))
    assert_one_line_soon(lambda: verify(folder))
    assert "its header does not say" in verify(folder)[0]


def test_a_surrogate_in_the_provenance_is_refused_in_one_line(tmp_path):
    with pytest.raises(DataError, match="JSON"):
        Recorder(tmp_path, Spec((2,), "uint8", actions=2), lanes=1, provenance={"x": "\ud800"})


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_flipped_and_replaced_bytes_in_logs_are_one_line(tmp_path_factory, logs, data):
    """Every file of a run's logs, packed and unpacked."""
    import gzip

    folder = tmp_path_factory.mktemp("logs") / "logs"
    shutil.copytree(logs, folder)
    file = data.draw(st.sampled_from(sorted(folder.rglob("*.gz"))))
    packed = data.draw(st.booleans())
    content = bytearray(file.read_bytes() if packed else gzip.decompress(file.read_bytes()))
    near = st.integers(0, min(len(content), 128) - 1)  # most of what is trusted is in the header
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(near)] = data.draw(st.integers(0, 255))
    file.write_bytes(bytes(content) if packed else gzip.compress(bytes(content)))
    out = folder.parent / "out"
    assert_one_line_soon(lambda: (shutil.rmtree(out, ignore_errors=True), import_dqn_replay(folder, out)))


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    ring = Ring(tmp_path_factory.mktemp("ring") / "Breakout" / "1", 40)
    play(ring, [50, 12, 30], unfinished=9)
    ring.finish()
    return ring.folder.parent
