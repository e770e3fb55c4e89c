"""An error while a file is written says what would help."""

import errno
import os
from pathlib import Path

import pytest

from optimist.data.disk.files import storage_error


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "make room or choose another folder"),
        (errno.EROFS, "make the folder writable or choose another"),
        (errno.EACCES, "make the folder writable or choose another"),
        (errno.ENOENT, "make the folder or choose another"),
    ],
)
def test_room_is_asked_for_only_where_room_would_help(number, said, tmp_path: Path):
    text = str(storage_error(tmp_path / "file", 10, OSError(number, os.strerror(number))))
    assert said in text and ("are free" in text) == (number == errno.ENOSPC)
