"""Folders of other people's logs, on this machine or at any address that fsspec knows."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from optimist.errors import DataError, UsageError


class Place(Protocol):
    """A folder from which files are read, and never written to."""

    address: str

    def sizes(self) -> dict[str, int]:
        """Every file in it by name, with its bytes."""
        ...

    def folders(self) -> list[str]: ...

    def folder(self, name: str) -> "Place": ...

    def open(self, name: str) -> IO[bytes]: ...


def place(address: str | Path) -> Place:
    """The folder at a path, or at an address such as gs://bucket/folder."""
    text = str(address)
    return _remote(text) if "://" in text else LocalPlace(Path(text))


def last_parts(where: Place, count: int) -> tuple[str, ...]:
    """The end of an address: enough to know it again, without telling whose machine it was on."""
    address = where.address if "://" in where.address else str(Path(where.address).resolve())
    parts = [part for part in address.partition("://")[2 if "://" in address else 0].split("/") if part]
    return tuple(parts[-count:])


class LocalPlace:
    """A folder on this machine."""

    def __init__(self, path: Path):
        self.path, self.address = path, str(path)

    def _entries(self) -> list[Path]:
        if not self.path.exists():
            raise DataError(f"{self.path} does not exist; look at how it is spelled")
        if not self.path.is_dir():
            raise DataError(f"{self.path} is a file; name the folder that holds it")
        return sorted(self.path.iterdir())

    def sizes(self) -> dict[str, int]:
        return {path.name: path.stat().st_size for path in self._entries() if path.is_file()}

    def folders(self) -> list[str]:
        return [path.name for path in self._entries() if path.is_dir()]

    def folder(self, name: str) -> "LocalPlace":
        return LocalPlace(self.path / name)

    def open(self, name: str) -> IO[bytes]:
        try:
            return open(self.path / name, "rb")
        except OSError as problem:
            raise DataError(f"{self.path / name} cannot be read: {problem.strerror}") from problem


class RemotePlace:
    """A folder in a store that fsspec reaches."""

    def __init__(self, store: Any, path: str, address: str):
        self._store, self._path, self.address = store, path, address

    def _entries(self) -> list[dict]:
        with _reached(self.address):
            return sorted(self._store.ls(self._path, detail=True), key=lambda entry: entry["name"])

    def _names(self, kind: str) -> dict[str, dict]:
        found = ((entry["name"].rstrip("/").rpartition("/")[2], entry) for entry in self._entries())
        return {name: entry for name, entry in found if entry["type"] == kind}

    def sizes(self) -> dict[str, int]:
        return {name: int(entry["size"]) for name, entry in self._names("file").items()}

    def folders(self) -> list[str]:
        return list(self._names("directory"))

    def folder(self, name: str) -> "RemotePlace":
        return RemotePlace(self._store, f"{self._path}/{name}", f"{self.address.rstrip('/')}/{name}")

    def open(self, name: str) -> IO[bytes]:
        with _reached(f"{self.address}/{name}"):
            return self._store.open(f"{self._path}/{name}", "rb")


def _remote(address: str) -> RemotePlace:
    try:
        import fsspec
    except ImportError:
        raise UsageError(f'{address} is not on this machine: pip install "optimist[remote]"') from None
    with _reached(address):
        store, path = fsspec.core.url_to_fs(address)
    return RemotePlace(store, path.rstrip("/"), address.rstrip("/"))


@contextlib.contextmanager
def _reached(address: str) -> Iterator[None]:
    """Stores fail in exceptions of their own; a person needs the address and the reason."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{address} does not exist; look at how it is spelled") from None
    except Exception as problem:
        reason = str(problem).partition("\n")[0] or type(problem).__name__
        raise DataError(f"{address} cannot be reached: {reason}") from problem
