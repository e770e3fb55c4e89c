"""A log is read from its own files, by this process: no reader starts a program or follows the log to a file
elsewhere."""

import re
import shutil
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from test_rlds import episode, example, png, record

from format_logs import SPECS, recorded
from optimist.cli.main import main
from optimist.data import formats, open_dataset
from optimist.errors import DataError

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 40 36\n%%EndComments\nshowpage\n%%EOF\n"
BOMB = (20_000, 20_000)  # pixels: 400 MB
SOURCES = Path(formats.__path__[0]).parents[1]


def exported(folder: Path, name: str, **options) -> Path:
    """A log of images in this format; the path of its only file, or of the folder."""
    kind = "images" if name != "hdf5" else "vectors"
    found = formats.find(name)
    found.write(recorded(folder / "data", SPECS[kind]), folder / "out", found.WriteOptions(**options))
    first, *others = (folder / "out").iterdir()
    return folder / "out" if others or first.is_dir() else first


def minari_of_pictures(folder: Path, picture: bytes) -> Path:
    """A Minari dataset of one step whose images are files, as Minari encodes JPEG."""
    exported(folder, "minari")
    path = folder / "out" / "data"
    box = '{"type": "Box", "dtype": "uint8", "shape": [36, 40, 3], "low": 0, "high": 255}'
    space = box.replace('"', '\\"')
    discrete = '{\\"type\\": \\"Discrete\\", \\"n\\": 3, \\"start\\": 0}'
    (path / "metadata.json").write_text(
        f'{{"total_episodes": 1, "observation_space": "{space}", "action_space": "{discrete}"}}'
    )
    with h5py.File(path / "main_data.hdf5", "w") as file:
        group = file.create_group("episode_0")
        group["actions"], group["rewards"] = [1], [0.5]
        group["terminations"], group["truncations"] = [True], [False]
        images = group.create_dataset("observations", 2, h5py.vlen_dtype(np.uint8))
        images[:] = [np.frombuffer(picture, np.uint8)] * 2
    return folder / "out"


def rlds_of_pictures(folder: Path, picture: bytes) -> Path:
    content = episode(4, True, 0, "published")
    content["observations"] = [picture] * 4
    folder.mkdir(exist_ok=True)
    (folder / "run_1-00000-of-00001").write_bytes(record(example(content)))
    return folder / "run_1-00000-of-00001"


PICTURES = {"minari": minari_of_pictures, "rlds": rlds_of_pictures}
started: list[tuple] = []
STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn")


@pytest.fixture(scope="module", autouse=True)
def audited():
    """Every program that this process starts from now on."""
    sys.addaudithook(lambda event, what: started.append((event, what)) if event in STARTS else None)


@pytest.mark.parametrize("name", formats.available())
def test_no_reader_starts_a_program(tmp_path, monkeypatch, name):
    (tmp_path / "bin").mkdir()
    for program in ("gs", "gswin64c", "djpeg", "ffmpeg", "gzip", "xv"):
        path = tmp_path / "bin" / program
        path.write_text(f'#!/bin/sh\necho started >> "{tmp_path}/started"\n')
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    found = formats.find(name)
    if name in PICTURES:
        log = PICTURES[name](tmp_path / name, EPS)
        options = found.ReadOptions(**({"jpeg": True} if name == "minari" else {"actions_count": 4}))
        begun = len(started)
        with pytest.raises(DataError, match="holds a damaged image, or none of PNG"):
            found.read(log, tmp_path / "data", options, None)
    else:
        log = exported(tmp_path, name)
        begun = len(started)
        found.read(log, tmp_path / "again")
    found.verify(log)
    assert started[begun:] == []
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("pixels", [(7000, 16_000), BOMB], ids=str)
def test_a_picture_that_would_fill_the_memory_is_one_line(tmp_path, capfd, name, pixels):
    small = png(np.zeros((4, 4), np.uint8))
    sizes = b"".join(size.to_bytes(4, "big") for size in pixels)
    forged = small[:16] + sizes + small[24:]
    import zlib

    forged = forged[:29] + zlib.crc32(forged[12:29]).to_bytes(4, "big") + forged[33:]
    log = PICTURES[name](tmp_path / name, forged)
    more = {"minari": ["--jpeg", "yes"], "rlds": ["--actions-count", "4"]}[name]
    assert main(["data", "import", name, str(log), "--out", str(tmp_path / "data"), *more]) == 3
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert f"holds an image of ({pixels[1]}, {pixels[0]}) pixels" in said


HDF5 = {  # the layouts of every reader of HDF5, and an array in each
    "d4rl": ("hdf5", {"layout": "d4rl"}, "observations"),
    "d3rlpy": ("hdf5", {}, "observations_0"),
    "minari": ("minari", {}, "episode_0/observations"),
}


def external_link(file, name, shape, secret):
    file[name] = h5py.ExternalLink(str(secret), "secret")


def link_to_a_link(file, name, shape, secret):
    file["elsewhere"] = h5py.ExternalLink(str(secret), "/")
    file[name] = h5py.SoftLink("/elsewhere/secret")


def external_storage(file, name, shape, secret):
    file.create_dataset(name, shape, np.uint8, external=[(str(secret), 0, int(np.prod(shape)))])


def virtual(file, name, shape, secret):
    layout = h5py.VirtualLayout(shape, np.uint8)
    layout[...] = h5py.VirtualSource(str(secret), "secret", shape)
    file.create_virtual_dataset(name, layout)


@pytest.mark.parametrize("way", [external_link, link_to_a_link, external_storage, virtual])
@pytest.mark.parametrize("layout", HDF5)
def test_no_way_leads_out_of_an_hdf5_file(tmp_path, layout, way):
    name, options, array = HDF5[layout]
    log, found = exported(tmp_path, name, **options), formats.find(name)
    path = log / "data" / "main_data.hdf5" if name == "minari" else log
    secret = tmp_path / "secret.hdf5"
    with h5py.File(path, "a") as file:
        shape = file[array].shape
        del file[array]
        way(file, array, shape, secret)
    with h5py.File(secret, "w") as file:
        file["secret"] = np.ones(shape, np.uint8)
    with pytest.raises(DataError, match=f'{array}" in .* (is virtual|leads out|in another file)') as refused:
        found.read(log, tmp_path / "again")
    assert "\n" not in str(refused.value)
    assert "must be in the file itself: copy it there" in found.verify(log).problems[0]
    assert not (tmp_path / "again").exists()


def test_a_link_within_the_file_is_followed_and_one_to_itself_is_not(tmp_path):
    log, found = exported(tmp_path, "hdf5", layout="d4rl"), formats.find("hdf5")
    with h5py.File(log, "a") as file:
        file.move("terminals", "dones/plain")
        file["terminals"] = h5py.SoftLink("/dones/plain")
    found.read(log, tmp_path / "again")
    terminal = open_dataset(tmp_path / "data").timeline.terminal
    np.testing.assert_array_equal(open_dataset(tmp_path / "again").timeline.terminal, terminal)
    with h5py.File(log, "a") as file:
        del file["terminals"]
        file["terminals"] = h5py.SoftLink("/terminals")
    assert "leads out of the file" in found.verify(log).problems[0]


@pytest.mark.parametrize("part", ["data", "data/main_data.hdf5", "data/metadata.json"])
def test_a_linked_file_in_a_minari_folder_is_refused(tmp_path, part):
    log, found = exported(tmp_path, "minari"), formats.find("minari")
    shutil.move(log / part, tmp_path / "elsewhere")
    (log / part).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=f"{part} is a link, .* put the file itself there"):
        found.read(log, tmp_path / "again")
    assert "is a link" in found.verify(log).problems[0]


def parquet_folder(folder: Path) -> Path:
    log = exported(folder, "parquet")
    (folder / "tables").mkdir()
    shutil.copy(log, folder / "tables" / "part-0.parquet")
    return folder / "tables"


LINKED = {  # logs in folders of several files, and a file of each
    "parquet": (parquet_folder, "part-0.parquet"),
    "rlds": (
        lambda folder: rlds_of_pictures(folder, png(np.zeros((84, 84), np.uint8))).parent,
        "run_1-00000-of-00001",
    ),
    "dqn-replay": (lambda folder: exported(folder, "dqn-replay") / "replay_logs", "$store$_reward_ckpt.0.gz"),
}


@pytest.mark.parametrize("name", LINKED)
def test_a_linked_file_in_another_folder_of_a_log_is_refused(tmp_path, name):
    make, part = LINKED[name]
    log, found = make(tmp_path / name), formats.find(name)
    shutil.move(log / part, tmp_path / "elsewhere")
    (log / part).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=f"{re.escape(part)} is a link, .* put the file itself there"):
        found.read(log, tmp_path / "again")
    assert "is a link" in found.verify(log).problems[0]


def test_a_split_of_hugging_face_is_in_its_folder(tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "dataset_dict.json").write_text('{"splits": ["../secret"]}')
    shutil.move(exported(tmp_path, "parquet"), tmp_path / "secret")
    with pytest.raises(DataError, match="lists something other than names"):
        formats.find("parquet").read(tmp_path / "tables", tmp_path / "again")


def test_the_user_may_name_a_link(tmp_path):
    log, found = exported(tmp_path, "minari"), formats.find("minari")
    (tmp_path / "mine").symlink_to(log)
    assert found.verify(tmp_path / "mine").problems == []


def test_hdf5_files_are_opened_in_one_place():
    opening = re.compile(r"\.File\(|import h5py|from h5py")
    found = {path.name for path in SOURCES.rglob("*.py") if opening.search(path.read_text())}
    assert found == {"_hdf5.py"}
    assert len(re.findall(r'\.File\(path, "r"\)', (SOURCES / "data/formats/_hdf5.py").read_text())) == 1
