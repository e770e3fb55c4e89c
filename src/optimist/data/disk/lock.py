"""A lock on a folder, so that one process at a time writes into it. It ends with its process, and a file
beside it names the holder."""

import contextlib
import errno
import os
import platform
from pathlib import Path

from filelock import FileLock, Timeout

from optimist.data.disk.files import make_folder, plain_bytes, storage_error, write_whole
from optimist.errors import DataError, StorageError

OTHER_USES = {"config.toml": "a run", "study.json": "a study"}
MANIFEST = "manifest.json"  # an older version may have written a run beside it
NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}
LOCK, HOLDER = ".lock", ".holder"  # beside the files they protect; reading needs neither


class HeldError(Exception):
    """Another process holds the lock; the text names it."""


def holder_of(folder: Path) -> str | None:
    """The process that holds the folder, or that ended without a release, in one line."""
    with contextlib.suppress(OSError, DataError):
        return " ".join(plain_bytes(folder / HOLDER)[:200].decode(errors="replace").split())
    return None


class FolderLock:
    """Held by one process until it releases the lock or dies. Acquiring never waits."""

    def __init__(self, folder: Path):
        self._folder, self._holder = folder, folder / HOLDER
        # Not thread-local: one thread may open a recorder and another close it.
        self._lock = FileLock(folder / LOCK, timeout=0, thread_local=False)

    def acquire(self) -> str | None:
        """Take the lock or raise HeldError; returns the last holder's name if it died without a release."""
        try:
            self._lock.acquire()
        except Timeout:
            raise HeldError(holder_of(self._folder) or "another process") from None
        except OSError as problem:
            if problem.errno in NO_LOCKS:
                reason = f"{problem.strerror}: its file system has no locks; choose a folder on another one"
                raise StorageError(f"cannot lock {self._folder}: {reason}") from problem
            raise storage_error(self._folder / LOCK, 0, problem) from problem
        died = holder_of(self._folder)
        try:
            write_whole(self._holder, f"process {os.getpid()} on {platform.node()}".encode())
        except BaseException:
            self.release()
            raise
        return died

    @property
    def held(self) -> bool:
        return self._lock.is_locked

    def release(self) -> None:
        if self._lock.is_locked:
            with contextlib.suppress(OSError):
                self._holder.unlink(missing_ok=True)
            self._lock.release()

    def __enter__(self) -> "FolderLock":
        return self

    def __exit__(self, *_) -> None:
        self.release()


def refuse_run_or_study(folder: Path) -> None:
    """Raise DataError for a folder that holds a run or a study: their files would be mixed with a log's."""
    for name, what in OTHER_USES.items():
        if (folder / name).exists() and not os.path.lexists(folder / MANIFEST):
            raise DataError(
                f"{folder} holds {what} ({name}), so a log cannot be written there: choose another folder"
            )


def writing(folder: Path) -> FolderLock:
    """Make the dataset folder if needed and lock it; the lock of a dead process is taken over."""
    refuse_run_or_study(folder)
    make_folder(folder)
    lock = FolderLock(folder)
    try:
        lock.acquire()
    except HeldError as held:
        raise DataError(
            f"{folder} is being written by {held}: wait for it, or choose another folder"
        ) from None
    return lock
