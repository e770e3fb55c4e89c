"""Every byte that reaches a batch was checked against its hash: in every home and view, of every type."""

import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

from little import PIXELS, random_play
from optimist.data import Dataset, Recorder, Sampler, Spec, transitions
from optimist.data.disk import reader as reading
from optimist.errors import DataError
from optimist.training.feeding import DeviceFeed, StreamedFeed

KINDS = {
    "floats": Spec((5,), "float32", actions=3),
    "plain pixels": PIXELS,
    "compressed pixels": Spec((12, 12, 1), "uint8", actions=3, stack=2),
    "flags": Spec((4, 4, 2), "bool", actions=3),
}


def log(folder, spec: Spec, *, rows=60, lanes=3):
    """Four shards; the frames of "compressed pixels" are smooth, so that they are stored compressed."""
    smooth = spec.frame_shape[0] == 12

    def drawn(frames):
        return np.repeat(frames[..., :1, :], 12, axis=-2) // 32 if smooth else frames

    with Recorder(folder, spec, lanes=lanes, shard_steps=45) as recorder:
        for frame, *rest, following in random_play(spec, rows=rows, lanes=lanes):
            recorder.add(drawn(frame), *rest, drawn(following))
    return folder


PLACES = {
    "device": lambda data: DeviceFeed([Sampler(data, batch=64)]),
    "view on the device": lambda data: DeviceFeed([Sampler(data.first(120), batch=64)]),
    "packed": lambda data: DeviceFeed([Sampler(data, batch=64)], packed=True),
    "memory": lambda data: StreamedFeed([Sampler(data, batch=64)], 10**9),
    "streamed": lambda data: StreamedFeed([Sampler(data, batch=64)], 0),
    "streamed view": lambda data: StreamedFeed([Sampler(data.fraction(0.5), batch=64)], 20),
}


def batches(data: Dataset, where: str) -> list[np.ndarray]:
    home = PLACES[where](data)
    each = jax.jit(jax.vmap(jax.vmap(home.minibatch, in_axes=(None, 0)), in_axes=(None, 0)))
    return [np.asarray(column) for column in each(home.resident, home.items(0, 8))]


def replaced(file, content: bytes) -> None:
    """As a new file: a home that reads ahead may still have the old one mapped."""
    beside = file.with_name("beside")
    beside.write_bytes(content)
    beside.replace(file)


@pytest.mark.parametrize("kind", KINDS)
def test_flipped_bits_are_refused_in_every_home_and_view(tmp_path, kind):
    folder = log(tmp_path, KINDS[kind])
    files, random = sorted(folder.glob("frames-*.arrow")), np.random.default_rng(0)
    wanted = {where: batches(Dataset.open(folder), where) for where in PLACES}
    refused = 0
    for case in range(60):
        file, where = files[int(random.integers(len(files)))], list(PLACES)[case % len(PLACES)]
        good = file.read_bytes()
        content, place = bytearray(good), int(random.integers(len(good)))
        content[place] ^= 1 << int(random.integers(8))
        replaced(file, content)
        try:
            for got, expected in zip(batches(Dataset.open(folder), where), wanted[where], strict=True):
                np.testing.assert_array_equal(got, expected, err_msg=f"{where} {file.name} {place}")
        except DataError as problem:
            assert file.name in str(problem) and "\n" not in str(problem)
            refused += 1
        replaced(file, good)
    assert refused >= 45  # the others lie in files that the view does not use


@pytest.mark.parametrize("kind", ["floats", "plain pixels", "flags"])
def test_swapped_files_are_refused(tmp_path, kind):
    files = sorted(log(tmp_path, KINDS[kind], rows=600).glob("frames-*.arrow"))
    by_size = {file.stat().st_size: file for file in files}
    one, two = next((a, b) for a in files if (b := by_size[a.stat().st_size]) != a)
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)
    for where in PLACES:
        data = Dataset.open(tmp_path)
        with pytest.raises(DataError, match=f"{one.name}|{two.name}"):
            PLACES[where](data)
            data.timeline.frames(np.arange(data.timeline.frame_count))


def test_an_offset_that_leads_to_the_frame_before_is_refused(tmp_path):
    """A compressed frame carries a checksum of its own, which does not say whose frame it is."""
    spec = Spec((16, 16, 1), "uint8", actions=3)
    frames = np.random.default_rng(0).permuted(np.tile(np.arange(4, dtype=np.uint8), (201, 64)), axis=1)
    frames = frames.reshape(201, 1, 16, 16, 1)
    with Recorder(tmp_path, spec, lanes=1) as recorder:
        for now, following in zip(frames[:-1], frames[1:], strict=True):
            recorder.add(now, [0], [0.0], [False], [False], following)
    (file,) = tmp_path.glob("frames-*.arrow")
    offsets = open_offsets(tmp_path)
    content = file.read_bytes()
    begin = content.index(offsets.tobytes())
    wrong = offsets.copy()
    wrong[7] = wrong[6]
    file.write_bytes(content[:begin] + wrong.tobytes() + content[begin + wrong.nbytes :])
    with pytest.raises(DataError, match=file.name):
        Dataset.open(tmp_path).timeline.frames(np.array([7]))


def open_offsets(folder) -> np.ndarray:
    decoder = Dataset.open(folder).timeline.source._decoder(0)
    return np.append(decoder._borders[:, 0], decoder._borders[-1, 1])


def test_a_file_is_hashed_once_however_many_threads_ask(tmp_path, monkeypatch):
    log(tmp_path, KINDS["floats"])
    data, hashed, check = Dataset.open(tmp_path), [], reading.check_hash
    lock = threading.Lock()

    def counted(folder, file, held):
        with lock:
            hashed.append(file.file)
        return check(folder, file, held)

    monkeypatch.setattr(reading, "check_hash", counted)
    everything = np.arange(data.timeline.frame_count)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(data.timeline.frames, [everything] * 16))
    data.timeline.decoded()
    sampler = Sampler(data)
    transitions(sampler, np.arange(len(data)), data.timeline.frames)
    assert sorted(hashed) == sorted(file.name for file in tmp_path.glob("frames-*.arrow"))


def test_one_frame_needs_one_file(tmp_path):
    folder = log(tmp_path, KINDS["floats"])
    (folder / "frames-000003.arrow").write_bytes(bytes((folder / "frames-000003.arrow").stat().st_size))
    data = Dataset.open(folder)
    data.timeline.frames(np.array([0]))
    with pytest.raises(DataError, match="frames-000003"):
        data.timeline.frames(np.array([data.timeline.frame_count - 1]))
