"""Whatever a foreign file says of its sizes and types, it is one line, and takes no memory that its own bytes
do not pay for."""

import gzip
import io
import json
import zipfile
from contextlib import contextmanager
from resource import RLIMIT_AS, getrlimit, setrlimit

import h5py
import numpy as np
import pytest
from test_nothing_leaves import exported

from optimist.cli.main import main
from optimist.data import formats
from optimist.data.formats._incoming import OURS
from optimist.errors import DataError

ROOM = 2**29  # bytes that an import may take beyond what the process has


@contextmanager
def little_memory():
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * 4096
    before = getrlimit(RLIMIT_AS)
    setrlimit(RLIMIT_AS, (taken + ROOM, before[1]))
    try:
        yield
    finally:
        setrlimit(RLIMIT_AS, before)


def refused(path, folder, capfd, *words) -> str:
    """The line of an import; a check of the file has a problem too."""
    capfd.readouterr()
    with little_memory():
        assert main(["data", "import", str(path), "--out", str(folder), *words]) == 3
    said = capfd.readouterr().err
    assert said.count("\n") == 1, said
    assert not folder.exists()
    with little_memory():
        assert main(["data", "verify", str(path)]) == 3
    assert capfd.readouterr().err.count("\n") == 1
    return said


def columns(steps: int = 20) -> dict:
    end = np.arange(steps) % 10 == 9
    return {
        "observations": np.arange(2.0 * steps, dtype=np.float32).reshape(steps, 2),
        "actions": np.arange(steps) % 2,
        "rewards": np.ones(steps, np.float32),
        "terminals": end,
        "truncations": np.zeros(steps, bool),
    }


def with_entry(path, name: str, content: bytes, packing: int) -> None:
    """An .npz file of which one array has these bytes."""
    with zipfile.ZipFile(path, "w", packing) as archive:
        for each, values in {**columns(), name: content}.items():
            stream = io.BytesIO()
            if isinstance(values, bytes):
                stream.write(values)
            else:
                np.save(stream, values)
            archive.writestr(f"{each}.npy", stream.getvalue())


def header(shape, descr="<f4", fortran=False) -> bytes:
    stream = io.BytesIO()
    facts = {"descr": descr, "fortran_order": fortran, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, facts)
    return stream.getvalue()


def test_an_array_that_is_packed_to_explode_is_refused(tmp_path, capfd):
    """5 KB took 8 GB."""
    content = header((20, 2**23), fortran=True) + bytes(20 * 2**23 * 4)
    with_entry(tmp_path / "log.npz", "observations", content, zipfile.ZIP_BZIP2)
    assert (tmp_path / "log.npz").stat().st_size < 10_000
    assert "is not packed as NumPy does" in refused(tmp_path / "log.npz", tmp_path / "data", capfd)


@pytest.mark.parametrize("name", ["observations", "optimist"])
@pytest.mark.parametrize("descr", ["<f4", "<U500000000", "|S2000000000"])
def test_a_header_of_npz_that_claims_too_much(tmp_path, capfd, name, descr):
    with_entry(tmp_path / "log.npz", name, header((20, 10**9), descr), zipfile.ZIP_STORED)
    assert "not a readable .npz file" in refused(tmp_path / "log.npz", tmp_path / "data", capfd)


@pytest.mark.parametrize("text", [b"{'descr': '<f4', 'fortran", b"(" * 300, b"{'a': \\\n"])
def test_a_header_of_npz_that_is_no_header(tmp_path, capfd, text):
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    with_entry(tmp_path / "log.npz", "rewards", content, zipfile.ZIP_STORED)
    assert "not a readable .npz file" in refused(tmp_path / "log.npz", tmp_path / "data", capfd)


def test_python_objects_in_npz_are_refused_by_name(tmp_path, capfd):
    with_entry(tmp_path / "log.npz", "actions", header((20,), "|O") + bytes(160), zipfile.ZIP_STORED)
    assert "it holds Python objects" in refused(tmp_path / "log.npz", tmp_path / "data", capfd)


def test_flipped_bits_and_other_ways_of_packing_are_one_line(tmp_path, capfd):
    np.savez_compressed(tmp_path / "sound.npz", **columns())
    sound = (tmp_path / "sound.npz").read_bytes()
    found = formats.find("npz")
    random = np.random.default_rng(0)
    forged = [sound[:8] + bytes([way]) + sound[9:] for way in (9, 93, 99)]
    place = sound.index(b"PK\x01\x02")
    forged.append(sound[: place + 8] + bytes([sound[place + 8] | 1]) + sound[place + 9 :])  # encrypted
    for _ in range(300):
        flipped = bytearray(sound)
        flipped[random.integers(len(sound))] ^= 1 << int(random.integers(8))
        forged.append(bytes(flipped))
    for content in forged:
        (tmp_path / "log.npz").write_bytes(content)
        assert all("\n" not in problem for problem in found.verify(tmp_path / "log.npz").problems)


def test_a_mebibyte_of_dqn_replay_that_declares_a_tebibyte(tmp_path, capfd):
    log = exported(tmp_path, "dqn-replay")
    content = header((40, 131072, 209716), "|u1") + np.random.default_rng(0).bytes(2**20)
    (log / "replay_logs" / "$store$_observation_ckpt.0.gz").write_bytes(gzip.compress(content))
    assert "more than" in refused(log, tmp_path / "again", capfd)


def h5_of(path, **changes) -> None:
    with h5py.File(path, "w") as file:
        for name, values in {**columns(), **changes}.items():
            if callable(values):
                values(file, name)
            elif values is not None:
                file[name] = values


def made(*facts, **more):
    return lambda file, name: file.create_dataset(name, *facts, **more)


PACKED = {"data": np.ones(20), "chunks": (2**28,), "maxshape": (None,), "compression": "gzip"}
H5 = {
    "a billion features": {"observations": made((20, 10**9), "f4", chunks=(1, 10**6))},
    "three billion rows of nothing": {
        "observations": made((3 * 10**9, 0), "f4", chunks=None),
        "rewards": made((3 * 10**9,), "f4"),
        **dict.fromkeys(("actions", "terminals", "truncations")),
    },
    "a chunk that exceeds the array": {"rewards": made((20,), "f8", **PACKED)},
    "one number": {"rewards": 3.0},
    "no dataspace": {"rewards": h5py.Empty("f4")},
    "references": {"actions": made((20,), h5py.ref_dtype)},
    "rows of any length": {"actions": made((20,), h5py.vlen_dtype(np.int64))},
    "texts": {"rewards": ["one"] * 20},
    "a group": {"rewards": lambda file, name: file.create_group(name)},
    "records": {"rewards": np.zeros(20, [("a", "f4"), ("b", "f4")])},
    "complex numbers": {"rewards": np.zeros(20, complex)},
}


@pytest.mark.parametrize("kind", H5)
def test_an_hdf5_file_with_strange_arrays_is_one_line(tmp_path, capfd, kind):
    h5_of(tmp_path / "log.hdf5", **H5[kind])
    assert (tmp_path / "log.hdf5").stat().st_size < 10**7
    refused(tmp_path / "log.hdf5", tmp_path / "data", capfd)


@pytest.mark.parametrize("count", [10**12, -1, float("nan"), [3, 4], "three", 2.5], ids=str)
def test_a_number_of_episodes_that_the_file_does_not_hold(tmp_path, capfd, count):
    """10**12 of them were counted one by one."""
    log = exported(tmp_path, "hdf5")
    with h5py.File(log, "a") as file:
        del file["num_episodes"]
        file["num_episodes"] = count
    assert "episodes" in refused(log, tmp_path / "again", capfd)


@pytest.mark.parametrize(("name", "values"), [("terminated_0", [True, False]), ("rewards_0", 1.0)])
def test_an_episode_of_d3rlpy_with_strange_arrays(tmp_path, capfd, name, values):
    log = exported(tmp_path, "hdf5")
    with h5py.File(log, "a") as file:
        del file[name]
        file[name] = values
    assert f'/{name}" in' in refused(log, tmp_path / "again", capfd)


def space(**facts) -> str:
    return json.dumps(facts)


BOX = {"type": "Box", "dtype": "float32", "low": 0, "high": 1}
MULTI = {"type": "MultiDiscrete", "dtype": "int64"}
SPACES = {
    "a Box of 4e9 numbers": ("observation_space", space(**BOX, shape=[10**9, 4])),
    "a Box with another shape": ("observation_space", space(**BOX, shape=[7])),
    "a negative shape": ("observation_space", space(**BOX, shape=[-1])),
    "a type that NumPy lacks": ("observation_space", space(**{**BOX, "dtype": "f99"}, shape=[1])),
    "a Discrete of 2e9": ("observation_space", space(type="Discrete", n=2 * 10**9, start=0)),
    "a MultiDiscrete of 2e9": ("observation_space", space(**MULTI, nvec=[2 * 10**9])),
    "more starts than numbers": ("observation_space", space(**MULTI, nvec=[3], start=[1, 2])),
    "actions of 2e9": ("action_space", space(type="Discrete", n=2 * 10**9, start=1)),
    "more actions than an agent can have": ("action_space", space(type="Discrete", n=10**7, start=1)),
    "action bounds of 4e9": ("action_space", space(**BOX, shape=[10**9, 4])),
}


@pytest.mark.parametrize("kind", SPACES)
def test_a_space_of_minari_that_claims_too_much(tmp_path, capfd, kind):
    log = exported(tmp_path, "minari")
    file = log / "data" / "metadata.json"
    name, text = SPACES[kind]
    facts = {**json.loads(file.read_text()), name: text}
    del facts[OURS]
    file.write_text(json.dumps(facts))
    refused(log, tmp_path / "again", capfd)


EPISODES = {
    "rewards are one number": {"rewards": 1.0},
    "rewards are nothing": {"rewards": h5py.Empty("f4")},
    "fewer terminations": {"terminations": [True]},
    "terminations are texts": {"terminations": ["yes"] * 40},
    "terminations are numbers": {"terminations": [3] * 40},
    "actions are texts": {"actions": ["left"] * 40},
    "actions are fractions": {"actions": [0.5] * 40},
    "masks of width 0": {"infos/action_mask": np.zeros((41, 0), np.int8)},
}


@pytest.mark.parametrize("kind", EPISODES)
def test_an_episode_of_minari_with_strange_arrays(tmp_path, capfd, kind):
    log = exported(tmp_path, "minari")
    with h5py.File(log / "data" / "main_data.hdf5", "a") as file:
        steps = len(file["episode_0/rewards"])
        for name, values in EPISODES[kind].items():
            many = isinstance(values, list) and len(values) > 1
            file.pop(f"episode_0/{name}", None)
            file[f"episode_0/{name}"] = values[:steps] if many else values
    refused(log, tmp_path / "again", capfd)


def test_an_episode_of_minari_that_is_an_array(tmp_path, capfd):
    log = exported(tmp_path, "minari")
    with h5py.File(log / "data" / "main_data.hdf5", "a") as file:
        del file["episode_0"]
        file["episode_0"] = [1, 2]
    assert 'lacks the group "episode_0"' in refused(log, tmp_path / "again", capfd)


def test_one_hot_vectors_need_no_square_of_their_length(tmp_path):
    """100,000 values of a Discrete space asked for 10 GB."""
    log = exported(tmp_path, "minari")
    facts = json.loads((log / "data" / "metadata.json").read_text())
    del facts[OURS]
    facts["observation_space"] = space(type="Discrete", n=100_000, start=0)
    (log / "data" / "metadata.json").write_text(json.dumps(facts))
    with h5py.File(log / "data" / "main_data.hdf5", "a") as file:
        for group in file.values():
            count = len(group["rewards"]) + 1
            del group["observations"]
            group["observations"] = np.arange(count)
    found = formats.find("minari")
    with little_memory():
        assert found.verify(log).problems == []
    with pytest.raises(DataError, match="lacks"):
        formats.find("hdf5").read(log / "data" / "main_data.hdf5", tmp_path / "x")
