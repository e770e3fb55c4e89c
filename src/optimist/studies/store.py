"""Folders at an address that fsspec knows (s3://, gs://): brought to local disk, worked on there, sent back.

So nodes need not share a file system. A file is sent only if its size or time changed since it was last sent
or brought. A file that tells of others is sent after them: the store may be read, or this process be lost, at
any time.
"""

import hashlib
import tempfile
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from optimist.data.disk import manifest
from optimist.data.disk.files import (
    TEMPORARY,
    File,
    check_hash,
    check_no_link_leads_out,
    make_folder,
    remove,
    stays_inside,
)
from optimist.data.machine import cache_folder
from optimist.envs._environment import package
from optimist.errors import DataError, StorageError

SEND_SECONDS = 120  # between sendings of what a run has so far
CHECKPOINTS = "checkpoints"  # their folder in a run
OWN = (".lock", ".holder")  # of a process on this machine


def is_address(place: str) -> bool:
    return "://" in place


def staged_path(address: str) -> Path:
    """The local folder of a dataset at an address; the same for every run on this machine."""
    name = address.rstrip("/").rpartition("/")[2]
    return cache_folder() / "staged" / f"{name}-{hashlib.sha256(address.encode()).hexdigest()[:16]}"


def stage(address: str) -> Path:
    """The local folder of a dataset at an address; the dataset is brought if it is missing or has changed."""
    from filelock import FileLock

    folder = staged_path(address)
    make_folder(folder.parent)
    if folder.is_symlink():  # what the log lacks is removed there, and it may be another folder of the user
        raise StorageError(f"{folder} is a link: remove it, and the log is brought into a folder of its own")
    with FileLock(folder.with_name(folder.name + ".lock")):  # runs that start together bring it once
        store = Store(address)
        if not store.has(manifest.NAME):
            raise DataError(f"{address} has no {manifest.NAME}: correct the address of the log")
        store.bring("", folder, exactly=True, anew=of_another_log(store, folder))
    return folder


def of_another_log(store: "Store", folder: Path) -> set[str]:
    """The manifest, and the files of the staged folder that are not those of the log at the address, whatever
    their sizes: the log was replaced since, or staging was interrupted."""
    with tempfile.TemporaryDirectory() as there:
        wanted = _shard_files(store.bring_file(manifest.NAME, Path(there)).parent)
    had, found = _shard_files(folder), {manifest.NAME}
    for name, file in wanted.items():
        if (folder / name).exists() and had.get(name) != file:
            try:
                check_hash(folder, file)
            except DataError:
                found.add(name)
    return found


def _shard_files(folder: Path) -> dict[str, File]:
    """The files that a manifest names; none if it is missing or damaged, which `Dataset.open` reports."""
    try:
        shards = manifest.read(folder).shards
    except DataError:
        return {}
    return {file.file: file for shard in shards for file in (shard.steps, shard.frames)}


class Store:
    """A folder at an address."""

    def __init__(self, address: str):
        fsspec: Any = package("fsspec", extra="remote")
        self.address = address.rstrip("/")
        try:
            self._files, self._root = fsspec.core.url_to_fs(self.address, use_listings_cache=False)
        except (ImportError, ValueError) as problem:
            raise StorageError(f"{address} cannot be opened ({problem}): install its package") from None
        if hasattr(self._files, "auto_mkdir"):  # file:// has folders, which must be made first
            self._files.auto_mkdir = True
        self._sent: dict[str, tuple[int, int] | None] = {}

    def bring(
        self,
        name: str,
        folder: Path,
        without: tuple[str, ...] = (),
        *,
        exactly: bool = False,
        anew: Collection[str] = (),
    ) -> bool:
        """Make `folder` hold the files at `name`; False if there are none. A large file of the same size is
        not brought again, unless it is in `anew`; a file that has grown is brought as a whole. `exactly`
        removes other files: what a lost process wrote after it last sent would not fit to what it sent, and
        a recording replaces its last shard."""
        there = self.listed(name, without)
        for path in sorted(there, key=_order):
            local = folder / path
            is_kept = local.exists() and local.stat().st_size == there[path] and not _is_small(there[path])
            if not is_kept or path in anew:
                make_folder(local.parent)
                partial = local.with_name(local.name + TEMPORARY)
                with self._problems(path):
                    self._files.get_file(self._remote(name, path), str(partial))
                partial.replace(local)
            self._sent[f"{name}/{path}"] = _mark(local)
        if exactly:  # at the end: until its new manifest is here, a staged log may be opened with the old one
            remove(*(local for path, local in _kept_files(folder).items() if path not in there))
        return bool(there)

    def send(self, folder: Path, name: str) -> int:
        """Send what changed in a folder to `name`; return the number of files. Files that the folder no
        longer has are removed there at the end. If the folder changes meanwhile, what tells of files that are
        not sent yet is left for the next time."""
        check_no_link_leads_out(folder)
        told = {path: _mark(local) for path, local in _kept_files(folder).items() if _order(path)[0]}
        paths, count = _kept_files(folder), 0
        for path in sorted(paths, key=_order):
            mark, is_new = _mark(paths[path]), _order(path)[0] and path not in told
            if mark is None or is_new:  # it was just removed, or it may tell of files that were not listed
                continue
            if told.get(path, mark) != mark:
                return count
            if self._sent.get(f"{name}/{path}") != mark:
                with self._problems(path):
                    self._files.put_file(str(paths[path]), self._remote(name, path))
                self._sent[f"{name}/{path}"] = mark
                count += 1
        for path in set(self.listed(name)) - set(paths):
            with self._problems(path):
                self._files.rm_file(self._remote(name, path))
        return count

    @contextmanager
    def kept_up(self, folder: Path, name: str) -> Iterator[None]:
        """Send the folder from time to time while something is done, and once more at its end."""
        over = threading.Event()

        def keep_sending() -> None:
            while not over.wait(SEND_SECONDS):
                # An error is no reason to stop: it is tried again, and the last time decides.
                with suppress(OSError, StorageError):
                    if folder.exists():
                        self.send(folder, name)

        thread = threading.Thread(target=keep_sending, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            if folder.exists():
                self.send(folder, name)

    def has(self, path: str) -> bool:
        with self._problems(path):
            return bool(self._files.exists(self._remote(path)))

    def send_file(self, path: str, folder: Path) -> None:
        """Send one file of a folder."""
        with self._problems(path):
            self._files.put_file(str(folder / path), self._remote(path))

    def bring_file(self, path: str, folder: Path) -> Path:
        """Bring one file, whatever is there already."""
        make_folder((folder / path).parent)
        try:
            with self._problems(path):
                self._files.get_file(self._remote(path), str(folder / path))
        except FileNotFoundError:
            raise StorageError(f"{self.address} has no {path}: correct the address") from None
        return folder / path

    def listed(self, name: str = "", without: tuple[str, ...] = ()) -> dict[str, int]:
        """The sizes of the files at `name`, by their paths there."""
        root = self._remote(name)
        with self._problems(name):
            try:
                files = self._files.find(root, detail=True)
            except FileNotFoundError:
                return {}
        begin, listed = len(root.strip("/")) + 1, {}
        for path, file in files.items():
            path = path.strip("/")[begin:]
            if path and not stays_inside(path):
                raise DataError(
                    f'{self.address} has a file "{path}", which leads out of its folder: remove it'
                )
            if path and not set(path.split("/")) & set(without):
                listed[path] = file["size"]
        return listed

    def _remote(self, *parts: str) -> str:
        return "/".join([self._root.rstrip("/"), *(part for part in parts if part)])

    @contextmanager
    def _problems(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except Exception as problem:  # each kind of store raises errors of its own
            reason = " ".join(str(problem).split())[:200] or type(problem).__name__
            raise StorageError(f"{self.address}/{path}: {reason}") from problem


def _order(path: str) -> tuple[int, str]:
    """A manifest tells of shards, a checkpoint of rows and manifests, and DONE of all the others."""
    *folders, name = path.split("/")
    if name in ("DONE", "study.json"):
        return 3, path
    return 2 if CHECKPOINTS in folders else int(name == manifest.NAME), path


def _is_small(size: int) -> bool:
    return size < 2**20  # a changed configuration may have its former size


def _kept_files(folder: Path) -> dict[str, Path]:
    """The files of a folder by their paths in it, without those of a process."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in OWN]
    return {path.relative_to(folder).as_posix(): path for path in files if path.suffix != TEMPORARY}


def _mark(path: Path) -> tuple[int, int] | None:
    """What changes with the file; None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns
