"""A lock on a folder, so that one process at a time writes into it, and what a dead one left there.

The lock ends with its process, and a file beside it names the holder."""

import contextlib
import errno
import os
import platform
import re
from pathlib import Path

from filelock import FileLock, Timeout

from optimist.data.disk.files import TEMPORARY, make_folder, plain_bytes, remove, storage_error, write_whole
from optimist.data.disk.manifest import NAME as MANIFEST
from optimist.data.disk.manifest import Manifest
from optimist.errors import DataError, StorageError

OTHER_USES = {"config.toml": "a run", "study.json": "a study"}
NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}
APPENDING = ".appending"  # there while shards are written that the manifest will name all at once
_SHARD = re.compile(r"(?:steps|frames)-(\d{6,})(-\d+)?\.arrow")  # its number, and its version if it grew
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


def clean_up(folder: Path, manifest: Manifest) -> None:
    """Remove the leftovers of a crash: temporaries, other versions of shards in the manifest, and the shard
    after the last one there, or all shards after it if an append was interrupted. Other unlisted shards mean
    that the manifest is old; DataError, because recording would overwrite them."""
    remove(*folder.glob(f"*{TEMPORARY}"))
    unlisted = {path.name for path in folder.glob("*-*.arrow")} - manifest.file_names
    newer = sorted(name for name in unlisted if not _is_left_over(folder, manifest, name))
    if newer:
        raise DataError(
            f"{folder} holds {newer[0]}, which its manifest does not name; "
            "the manifest is old: restore it, or move the file away"
        )
    remove(*(folder / name for name in unlisted), folder / APPENDING)


def _is_left_over(folder: Path, manifest: Manifest, name: str) -> bool:
    """Does a crash leave a file of this name, which the manifest does not list?"""
    match = _SHARD.fullmatch(name)
    if not match:
        return False
    number, version, following = int(match[1]), match[2], len(manifest.shards)
    if number < following:  # if the listed version is not there, this one took its place
        return all((folder / file.file).exists() for file in manifest.shards[number].files)
    return not version and (number == following or (folder / APPENDING).exists())


def discard(folder: Path) -> None:
    """Remove a recording and nothing else: the manifest, the shards, and temporaries."""
    with writing(folder):
        discard_held(folder)


def discard_held(folder: Path) -> None:
    """The same for a folder whose lock is held."""
    remove(folder / MANIFEST, *folder.glob("steps-*.arrow"), *folder.glob("frames-*.arrow"))
    remove(*folder.glob(f"*{TEMPORARY}"), folder / APPENDING)
