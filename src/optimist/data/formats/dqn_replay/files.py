"""The files of a log, on this machine or at any address that fsspec supports. Each is one gzipped .npy array,
which is read as a stream, never as a whole, and checked to its end."""

import contextlib
import os
import warnings
import zlib
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from optimist.data.disk.files import refuse_links
from optimist.errors import DataError, UsageError, in_one_line

GZIP = 31  # window bits for one gzip member, with a check of its checksum and length
COMPRESSED_AT_ONCE = 1 << 18
MOST_GAIN = 1032  # bytes that deflate can make of one byte, at most
LONGEST_HEADER = 10_000
MEND = "fetch it again"


class Folder:
    """A folder at a path or an address such as gs://bucket/folder, for reading."""

    def __init__(self, address: str | Path):
        self.address, self._path = str(address).rstrip("/") or "/", str(address)
        self._store = None
        if "://" in self.address:
            try:
                import fsspec
            except ImportError:
                raise UsageError(
                    f'{address} is not on this machine: pip install "optimist-rl[remote]"'
                ) from None
            with _reached(self.address):
                self._store, self._path = fsspec.core.url_to_fs(self.address)

    def __truediv__(self, name: str) -> "Folder":
        return Folder(f"{self.address}/{name}")

    @property
    def parts(self) -> list[str]:
        """The parts of its path."""
        scheme, _, path = self.address.rpartition("://")
        return [part for part in (path if scheme else os.path.realpath(path)).split("/") if part]

    def entries(self) -> dict[str, int | None]:
        """The size of every file in it by name; None for everything else."""
        with _reached(self.address):
            if self._store is None:
                paths = sorted(Path(self._path).iterdir())
                found = [(path.name, path.stat().st_size if path.is_file() else None) for path in paths]
                return dict(found)
            listed = sorted(self._store.ls(self._path, detail=True), key=lambda entry: entry["name"])
            names = [entry["name"].rstrip("/").rpartition("/")[2] for entry in listed]
            sizes = [int(entry["size"]) if entry["type"] == "file" else None for entry in listed]
            return dict(zip(names, sizes, strict=True))

    def open(self, name: str) -> IO[bytes]:
        with _reached(f"{self.address}/{name}"):
            path = f"{self._path.rstrip('/')}/{name}"
            if self._store is not None:
                return self._store.open(path, "rb")
        refuse_links([Path(path)])
        with _reached(path):
            return open(path, "rb")


@contextlib.contextmanager
def _reached(address: str) -> Iterator[None]:
    """Turn the exceptions of any store into a DataError with the address and the reason."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{address} does not exist; check its spelling") from None
    except NotADirectoryError:
        raise DataError(f"{address} is a file; name the folder that holds it") from None
    except Exception as problem:
        reason = (
            getattr(problem, "strerror", None) or str(problem).partition("\n")[0] or type(problem).__name__
        )
        raise DataError(f"{address} cannot be reached: {reason}") from problem


class ArrayFile:
    """The array in a gzipped .npy file, read as a stream."""

    def __init__(self, folder: Folder, name: str, compressed: int, dtype: str, dimensions: int):
        self.name, self.dtype = f"{folder.address}/{name}", np.dtype(dtype)
        self._stream = folder.open(name)
        self._inflate = zlib.decompressobj(GZIP)
        self._pending = b""
        try:
            self.shape = self._header(dimensions)
            declared = prod(self.shape) * self.dtype.itemsize
            if declared > MOST_GAIN * compressed:
                raise self.refusal(f"declares {declared} bytes, more than {compressed} compressed can hold")
        except DataError:
            self._stream.close()
            raise

    def __enter__(self) -> "ArrayFile":
        return self

    def __exit__(self, *_) -> None:
        self._stream.close()

    def refusal(self, what: str) -> DataError:
        return DataError(f"{self.name} {what}; {MEND}")

    def fill(self, target: np.ndarray) -> None:
        """Read the next rows of the array into the target."""
        bytes_left = target.reshape(-1).view(np.uint8).data
        while len(bytes_left):
            part = self._inflated(len(bytes_left))
            bytes_left[: len(part)] = part
            bytes_left = bytes_left[len(part) :]

    def finish(self) -> None:
        """Check that the file ends here, with the right checksum and length."""
        while not self._inflate.eof:
            if self._inflated(1, ends=True):
                raise self.refusal("holds more than its header declares")
        if self._inflate.unused_data or self._read():
            raise self.refusal("goes on after its end")

    def read(self, count: int = 0, /) -> bytes:
        """Bytes of the header, for numpy."""
        if count > LONGEST_HEADER:
            raise self.refusal(f"has a header of {count} bytes")
        found = np.empty(count, np.uint8)
        self.fill(found)
        return found.tobytes()

    def _header(self, dimensions: int) -> tuple[int, ...]:
        known = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        try:
            read = known[npy.read_magic(self)]
        except (ValueError, KeyError) as problem:
            raise self.refusal("is not a gzipped .npy file") from problem
        try:
            with warnings.catch_warnings(action="error"):  # numpy warns about headers that it had to guess
                shape, is_fortran, dtype = read(self)
        except DataError:
            raise
        except Exception as problem:
            reason = in_one_line(problem)
            raise self.refusal(f"has a header that is not one of a .npy file ({reason})") from problem
        if dtype != self.dtype:
            raise self.refusal(f"holds numbers of type {dtype.str!r} instead of {self.dtype.str!r}")
        if is_fortran:
            raise self.refusal("is in Fortran order")
        if len(shape) != dimensions or min(shape, default=0) < 0:
            raise self.refusal(f"declares the shape {str(shape)[:60]}, not one of {dimensions} dimensions")
        return shape

    def _inflated(self, most: int, *, ends: bool = False) -> bytes:
        """At least one and at most `most` bytes; none at the end of the file if `ends`."""
        while True:
            compressed = self._pending or self._read()
            try:
                part = self._inflate.decompress(compressed, most)
            except zlib.error as problem:
                raise self.refusal(f"is damaged ({problem})") from problem
            self._pending = self._inflate.unconsumed_tail
            if part or (ends and self._inflate.eof):
                return part
            if self._inflate.eof:
                raise self.refusal("holds less than its header declares")
            if not compressed:
                raise self.refusal("is cut short")

    def _read(self) -> bytes:
        try:
            return self._stream.read(COMPRESSED_AT_ONCE)
        except Exception as problem:  # each store has its own exceptions
            raise self.refusal(f"cannot be read ({str(problem).partition(chr(10))[0]})") from problem
