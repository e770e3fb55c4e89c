"""A disk that forgets, at a power loss, whatever was not synced: contents of files and names in folders."""

import os
import stat
from collections.abc import Callable
from pathlib import Path


class ForgetfulDisk:
    """Remembers what `os.fsync` was called for below a folder. `after_loss` writes what a power loss leaves:
    only synced names, each with the contents at its last sync, or empty. Not even names that a journal would
    keep by chance are there."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._contents: dict[tuple[int, int], bytes] = {}
        self._names: dict[tuple[int, int], dict[str, tuple[int, int]]] = {}
        self._folders: set[tuple[int, int]] = set()
        self._held: list[int] = []  # descriptors: the number of a removed file must not be given again
        self._fsync = os.fsync
        self.sync(folder)

    def fsync(self, descriptor: int) -> None:
        """In place of `os.fsync`."""
        self._fsync(descriptor)
        self.sync(Path(os.readlink(f"/proc/self/fd/{descriptor}")), descriptor)

    def sync(self, path: Path, descriptor: int | None = None) -> None:
        status = os.stat(path if descriptor is None else descriptor)
        if stat.S_ISDIR(status.st_mode):
            self._folders.add(_number(status))
            self._names[_number(status)] = {each.name: _number(each.lstat()) for each in path.iterdir()}
        else:
            assert descriptor is not None
            reader = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY)
            self._held.append(reader)
            self._contents[_number(status)] = os.pread(reader, status.st_size, 0)
        for each in path.iterdir() if path.is_dir() else ():
            if each.is_dir():
                self._folders.add(_number(each.stat()))

    def after_loss(self, target: Path) -> Path:
        """What is left, as a new folder."""
        self._write(_number(self.folder.stat()), target)
        return target

    def _write(self, folder: tuple[int, int], target: Path) -> None:
        target.mkdir()
        for name, number in self._names.get(folder, {}).items():
            if number in self._folders:
                self._write(number, target / name)
            else:
                (target / name).write_bytes(self._contents.get(number, b""))

    def close(self) -> None:
        for descriptor in self._held:
            os.close(descriptor)


def _number(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def after_every(names: list[str], happened: Callable[[], None], monkeypatch) -> None:
    """Call `happened` after each call of these functions of `os`."""
    for name in names:
        real = getattr(os, name)

        def called(*words, real=real, **named):
            result = real(*words, **named)
            happened()
            return result

        monkeypatch.setattr(os, name, called)
