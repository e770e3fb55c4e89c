"""Links in a dataset folder are never followed: files outside it are neither written nor read. An error
while a file is written says what would help."""

import errno
import os

import numpy as np
import pytest

from damage import recorded
from optimist.data import Recorder, open_dataset
from optimist.data.disk.files import storage_error, stored_whole, write_whole
from optimist.data.verify import verify
from optimist.errors import DataError, StorageError
from replay_ring import export_dqn_replay

LINKS = {"symlink": os.symlink, "hard link": os.link}


@pytest.fixture
def victim(tmp_path):
    file = tmp_path / "victim"
    file.write_text("precious")
    return file


@pytest.mark.parametrize("kind", LINKS)
def test_a_link_where_a_file_is_prepared_is_replaced_not_followed(tmp_path, victim, kind):
    LINKS[kind](victim, tmp_path / "file.partial")
    (tmp_path / "file").symlink_to(victim)  # the target of a link is not written either
    write_whole(tmp_path / "file", b"rows")
    assert victim.read_text() == "precious" and (tmp_path / "file").read_bytes() == b"rows"
    assert not (tmp_path / "file").is_symlink() and not (tmp_path / "file.partial").is_symlink()


def test_a_link_that_appears_in_between_is_refused(tmp_path, victim, monkeypatch):
    """A link made between the removal of a leftover and the opening: O_EXCL opens no existing file."""
    real = os.open

    def late(path, flags, *rest, **options):
        if str(path).endswith(".partial"):
            os.symlink(victim, path)
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", late)
    with pytest.raises(StorageError, match="cannot write") as refused:
        write_whole(tmp_path / "file", b"rows")
    assert "\n" not in str(refused.value)
    assert victim.read_text() == "precious"


def test_a_stale_leftover_is_written_over(tmp_path):
    (tmp_path / "file.partial").write_bytes(b"half of something longer")
    with stored_whole(tmp_path / "file") as stream:
        stream.write(b"rows")
    assert (tmp_path / "file").read_bytes() == b"rows"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_a_folder_in_the_way_is_one_line(tmp_path):
    (tmp_path / "file.partial").mkdir()
    with pytest.raises(StorageError, match="cannot write"):
        write_whole(tmp_path / "file", b"rows")


def test_new_files_have_the_usual_rights(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "file", b"rows")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["manifest.json", "steps-000001.arrow", "frames-000001.arrow"])
def test_a_linked_file_is_refused(folder, tmp_path, name):
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=f"{name} is a link or not a plain file") as refused:
        open_dataset(folder)
    assert "\n" not in str(refused.value)
    (problem, *_) = verify(folder)
    assert "link" in problem


def test_a_linked_manifest_is_not_recorded_into(folder, tmp_path):
    (folder / "manifest.json").rename(tmp_path / "elsewhere")
    (folder / "manifest.json").symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    with pytest.raises(DataError, match="link"):
        recorded(folder, rows=10)
    assert (tmp_path / "elsewhere").read_bytes() == before
    (tmp_path / "elsewhere").unlink()
    with pytest.raises(DataError, match="link"):  # a broken link is refused too
        recorded(folder, rows=10)


def test_a_pipe_as_a_manifest_does_not_block(folder):
    (folder / "manifest.json").unlink()
    os.mkfifo(folder / "manifest.json")
    with pytest.raises(DataError, match="plain file"):
        open_dataset(folder)


def test_a_folder_that_is_a_link_works(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    before = len(open_dataset(tmp_path / "link"))
    recorded(tmp_path / "link", rows=10)
    dataset = open_dataset(tmp_path / "link")
    assert len(dataset) == before + 10
    np.testing.assert_array_equal(dataset.timeline.decoded(), open_dataset(folder).timeline.decoded())
    assert verify(tmp_path / "link") == []


def test_an_export_does_not_write_through_a_linked_folder(folder, tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "file").write_text("precious")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "replay_logs.partial").symlink_to(tmp_path / "theirs")
    export_dqn_replay(open_dataset(folder), tmp_path / "out", capacity=100)
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["file"]
    assert not (tmp_path / "out" / "replay_logs").is_symlink()


@pytest.mark.parametrize("name", [".lock", ".holder"])
def test_a_linked_lock_is_not_followed(folder, tmp_path, victim, name):
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(victim)
    try:
        Recorder(folder, open_dataset(folder).spec, lanes=1).close()
    except StorageError as problem:
        assert "\n" not in str(problem)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "make room or choose another folder"),
        (errno.EROFS, "make the folder writable or choose another"),
        (errno.EACCES, "make the folder writable or choose another"),
        (errno.ENOENT, "make the folder or choose another"),
    ],
)
def test_room_is_asked_for_only_where_room_would_help(number, said, tmp_path):
    text = str(storage_error(tmp_path / "file", 10, OSError(number, os.strerror(number))))
    assert said in text and ("are free" in text) == (number == errno.ENOSPC)
