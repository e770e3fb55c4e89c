"""Writing the files of a dataset, each whole or not at all, and checking them before they are read."""

import contextlib
import ctypes
import errno
import faulthandler
import hashlib
import os
import shutil
import signal
import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from optimist.data import machine
from optimist.errors import DataError, StorageError

TEMPORARY = ".partial"
WORTH_A_THREAD = 2**20  # bytes to hash
_lengths: dict[str, int] = {}  # of the files that this process has mapped
_handler = None  # kept here: the system calls it for as long as the process lives
_NOT_PLAIN = "{} is a link or not a plain file; copy the file itself into the dataset"


@dataclass(frozen=True)
class File:
    """Name, size and hash of one file of a dataset."""

    file: str
    bytes: int
    sha256: str


def checked_path(folder: Path, file: File) -> Path:
    """The path of this file, after a check that it is a plain file of the stated size."""
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


def stays_inside(path: str) -> bool:
    """Does the path name a file inside the folder that it is relative to? Lists of files come from others."""
    return "\\" not in path and not {"", ".", ".."} & set(path.split("/"))


def check_no_link_leads_out(folder: Path) -> None:
    """Raise DataError for a link to a file outside, which would be sent with the folder."""
    inside = folder.resolve()
    for path in folder.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(inside):
            raise DataError(f"{path} is a link that leads out of {folder}: put the file itself there")


def refuse_links(paths: Iterable[Path]) -> None:
    """Raise DataError for a link among the files of a log, which may lead to any file of its reader."""
    for path in paths:
        if path.is_symlink():
            raise DataError(f"{path} is a link, which may lead to any file: put the file itself there")


def plain_bytes(path: Path) -> bytes:
    """The contents of a plain file; DataError for a link or anything else, before it is read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | machine.NO_LINKS | machine.NO_WAITING)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise DataError(_NOT_PLAIN.format(path)) from None
        raise
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise DataError(_NOT_PLAIN.format(path))
        return stream.read()


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file to an error of reading it: that of a failing disk has no name of its own."""
    try:
        yield
    except OSError as problem:
        problem.filename = problem.filename or str(path)
        raise


def check_hash(folder: Path, file: File, held: Any = None) -> None:
    """Read all of a file, or of its map if that is `held`; raise DataError if its hash differs."""
    path = folder / file.file
    try:
        digest = (
            hash_of_file(checked_path(folder, file)) if held is None else hashlib.sha256(held).hexdigest()
        )
    except OSError as problem:
        raise DataError(f"{path} cannot be read ({problem.strerror}); restore it from a copy") from problem
    if digest != file.sha256:
        raise DataError(f"{path} is damaged: its hash differs; restore it from a copy")


def hash_of_file(path: Path) -> str:
    with naming(path), open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_whole(path: Path, content: Any) -> File:
    """Write a file with these bytes; after a crash it is there whole or not at all."""
    hashing: Future | None = None
    with ThreadPoolExecutor(1, "hashing") as thread:
        if len(content) >= WORTH_A_THREAD:
            with contextlib.suppress(RuntimeError):  # no thread begins when the interpreter ends
                hashing = thread.submit(hashlib.sha256, content)  # the processor hashes while the disk writes
        with stored_whole(path, len(content)) as stream:
            stream.write(content)
        digest = hashing.result() if hashing else hashlib.sha256(content)
    return File(path.name, len(content), digest.hexdigest())


@contextlib.contextmanager
def stored_whole(path: Path, needed: int = 0) -> Iterator[IO[bytes]]:
    """A stream into a new file, which appears under its name only when it is whole."""
    partial = path.with_name(path.name + TEMPORARY)
    try:
        with opened_beside(partial) as stream:
            yield stream
            needed = stream.tell()
            stream.flush()
            machine.sync(stream.fileno())
        os.replace(partial, path)
        machine.sync_folder(path.parent)
    except OSError as problem:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise storage_error(path, needed, problem) from problem


@contextlib.contextmanager
def built_beside(path: Path) -> Iterator[Path]:
    """A place to write a file or a folder, which takes its name when it is complete; what an interrupted
    attempt left there is removed, and not followed if it is a link."""
    partial = path.with_name(path.name + TEMPORARY)
    make_folder(path.parent)
    _discard(partial)
    try:
        yield partial
        partial.rename(path)
    except OSError as problem:
        _discard(partial)
        raise storage_error(path, 0, problem) from problem


def _discard(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        remove(path)


def opened_beside(partial: Path) -> IO[bytes]:
    """Open a new file. A leftover of that name is removed and never opened, because it may be a link to a
    file outside."""
    partial.unlink(missing_ok=True)
    return open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | machine.NO_LINKS, 0o666), "wb")


INSTEAD_OF_ROOM = {  # errors that more room on the disk would not mend
    errno.EROFS: "make the folder writable",
    errno.EACCES: "make the folder writable",
    errno.EPERM: "make the folder writable",
    errno.ENOENT: "make the folder",
}


def storage_error(path: Path, needed: int, problem: OSError) -> StorageError:
    """`needed` is 0 if the size is not known."""
    if problem.errno in INSTEAD_OF_ROOM:
        remedy = INSTEAD_OF_ROOM[problem.errno]
        return StorageError(f"cannot write {path}: {problem.strerror}; {remedy} or choose another")
    free = shutil.disk_usage(path.parent).free if path.parent.exists() else 0
    wanted = f"needed {needed} bytes, {free} are free" if needed else f"{free} bytes are free"
    return StorageError(
        f"cannot write {path}: {problem.strerror} ({wanted}); "
        "make room or choose another folder: what was flushed before is safe"
    )


def make_folder(folder: Path) -> None:
    """Make the folder and those above it, each with a lasting entry in the one above."""
    try:
        if folder.is_dir():
            return
        if not folder.parent.is_dir():
            make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        machine.sync_folder(folder.parent)
    except OSError as problem:
        raise StorageError(f"cannot make {folder}: {problem.strerror}; choose another folder") from problem


def remove(*paths: Path) -> None:
    try:
        for path in paths:
            path.unlink(missing_ok=True)
    except OSError as problem:
        raise StorageError(f"cannot remove {path}: {problem.strerror}; make the folder writable") from problem


def check_exists(path: Path) -> None:
    if not path.exists():
        raise DataError(f"{path} does not exist; check its spelling")


def check_is_file(path: Path) -> None:
    """Raise DataError for a path that is missing, or a folder; exports write `log` with a suffix into one."""
    check_exists(path)
    if path.is_dir():
        inside = min(path.glob("log.*"), default="")
        raise DataError(f"{path} is a folder: name a file{f', such as {inside}' if inside else ' in it'}")


# If a mapped file is cut short, the system ends a process that reads the missing part (SIGBUS), without a
# word. So its length is looked at before each use, which costs one `stat`. In case the file changes within a
# use, a handler names the file in one line before the process ends.


def remember(path: Path, length: int) -> None:
    """Note a file that is about to be mapped, and handle SIGBUS where it would end the process without a
    word. A handler of somebody else stays; Windows does not let anybody shorten a mapped file."""
    global _handler
    _lengths[str(path)] = length
    if _handler or faulthandler.is_enabled() or not hasattr(signal, "SIGBUS"):
        return
    if signal.getsignal(signal.SIGBUS) == signal.SIG_DFL:
        _handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(_explain)
        # Python's own handlers run after the failed instruction, which would fail again and again.
        ctypes.CDLL(None).signal(signal.SIGBUS, _handler)


def check_length(path: str) -> None:
    """Raise DataError if a mapped file is shorter than when it was opened."""
    if problem := _shortened(path, _lengths[path]):
        raise DataError(problem)


def _shortened(path: str, length: int) -> str | None:
    try:
        size = os.stat(path).st_size
    except OSError:
        return None  # removed or renamed: the map still has all of it
    if size >= length:
        return None
    return f"{path} was cut short while it was read: {size} bytes instead of {length}; restore it from a copy"


def _explain(number: int) -> None:
    for path, length in _lengths.items():
        if problem := _shortened(path, length):
            os.write(2, f"optimist: {problem}\n".encode(errors="surrogateescape"))
            os._exit(DataError.exit_code)
    signal.signal(signal.SIGBUS, signal.SIG_DFL)  # not our file: the process ends as it would have
