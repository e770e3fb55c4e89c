"""One writer at a time: a lock on a folder that ends with its process, and the name of who holds it."""

import contextlib
import os
import platform
from pathlib import Path

from filelock import FileLock, Timeout

from optimist.data.disk.files import make_folder, plain_bytes, storage_error, write_whole
from optimist.errors import DataError

LOCK, HOLDER = ".lock", ".holder"  # beside the files they protect; reading needs neither


class HeldError(Exception):
    """Another writer holds the folder; the text names it."""


class FolderLock:
    """Held by one process until it releases the lock or dies. Nobody waits for it."""

    def __init__(self, folder: Path):
        self._folder, self._holder = folder, folder / HOLDER
        # Not thread-local: a recorder may be closed by another thread than the one that opened it.
        self._lock = FileLock(folder / LOCK, timeout=0, thread_local=False)

    def acquire(self) -> str | None:
        """Take the lock or raise HeldError; the name of the last holder if it died without a release."""
        try:
            self._lock.acquire()
        except Timeout:
            raise HeldError(self._named() or "another process") from None
        except OSError as problem:
            raise storage_error(self._folder / LOCK, 0, problem) from problem
        died = self._named()
        try:
            write_whole(self._holder, f"process {os.getpid()} on {platform.node()}".encode())
        except BaseException:
            self.release()
            raise
        return died

    def _named(self) -> str | None:
        with contextlib.suppress(OSError, DataError):
            return plain_bytes(self._holder)[:200].decode(errors="replace")
        return None

    def release(self) -> None:
        if self._lock.is_locked:
            with contextlib.suppress(OSError):
                self._holder.unlink(missing_ok=True)
            self._lock.release()

    def __enter__(self) -> "FolderLock":
        return self

    def __exit__(self, *_) -> None:
        self.release()


def writing(folder: Path) -> FolderLock:
    """The lock of a dataset folder, made if it is not there; a dead writer's is taken over."""
    make_folder(folder)
    lock = FolderLock(folder)
    try:
        lock.acquire()
    except HeldError as held:
        raise DataError(
            f"{folder} is being written by {held}: wait for it, or choose another folder"
        ) from None
    return lock
