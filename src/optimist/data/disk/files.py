"""How a dataset's files reach the disk, whole or not at all, and how they are found again."""

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from optimist.errors import DataError, StorageError

TEMPORARY = ".partial"
_NOT_PLAIN = "{} is a link or not a plain file; a dataset holds its own files: copy it there"


@dataclass(frozen=True)
class File:
    """One file of the dataset as it was written."""

    file: str
    bytes: int
    sha256: str


def checked_path(folder: Path, file: File) -> Path:
    """Where this file lies, after making sure that it is a plain file of the stated size."""
    path = folder / file.file
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        raise DataError(f"{path} is missing; restore it from a copy") from None
    if not stat.S_ISREG(status.st_mode):
        raise DataError(_NOT_PLAIN.format(path))
    if status.st_size != file.bytes:
        raise DataError(f"{path} has {status.st_size} bytes instead of {file.bytes}; restore it from a copy")
    return path


def plain_bytes(path: Path) -> bytes:
    """The contents of a plain file that is no link; anything else is refused before it is read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe would block
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise DataError(_NOT_PLAIN.format(path)) from None
        raise
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise DataError(_NOT_PLAIN.format(path))
        return stream.read()


def check_hash(folder: Path, file: File) -> None:
    """Read all of a file; raise DataError unless every byte is as it was written."""
    path = checked_path(folder, file)
    try:
        with open(path, "rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as problem:
        raise DataError(f"{path} cannot be read ({problem.strerror}); restore it from a copy") from problem
    if found != file.sha256:
        raise DataError(f"{path} is damaged: its hash differs; restore it from a copy")


def write_whole(path: Path, content) -> File:
    """Put these bytes under this name: after a crash either all of them are there or none."""
    with stored_whole(path, len(content)) as stream:
        stream.write(content)
    return File(path.name, len(content), hashlib.sha256(content).hexdigest())


@contextlib.contextmanager
def stored_whole(path: Path, needed: int = 0) -> Iterator[IO[bytes]]:
    """A stream for a file too large to hold: under this name it is there whole or not at all."""
    partial = path.with_name(path.name + TEMPORARY)
    try:
        with _opened_beside(partial) as stream:
            yield stream
            needed = stream.tell()
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
        _sync_folder(path.parent)
    except OSError as problem:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise storage_error(path, needed, problem) from problem


def _opened_beside(partial: Path) -> IO[bytes]:
    """A new file where a leftover may lie. That may be a link to a file of somebody else's, so it is removed
    and never opened."""
    partial.unlink(missing_ok=True)
    return open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666), "wb")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def storage_error(path: Path, needed: int, problem: OSError) -> StorageError:
    free = shutil.disk_usage(path.parent).free if path.parent.exists() else 0
    return StorageError(
        f"cannot write {path}: {problem.strerror} (needed {needed} bytes, {free} are free); "
        "make room or choose another folder: what was flushed before is safe"
    )


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StorageError(f"cannot make {folder}: {problem.strerror}; choose another folder") from problem


def remove(*paths: Path) -> None:
    try:
        for path in paths:
            path.unlink(missing_ok=True)
    except OSError as problem:
        raise StorageError(f"cannot remove {path}: {problem.strerror}; make the folder writable") from problem
