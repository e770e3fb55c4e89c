"""One array in a gzipped .npy file, read as a stream that is never held whole and never believed."""

import ast
import struct
from math import prod

import numpy as np

from optimist.data.formats.dqn_replay.remote import Place
from optimist.errors import DataError

try:  # the same results, faster
    from isal import isal_zlib as inflate
except ImportError:
    import zlib as inflate  # type: ignore[no-redef]

GZIP = 31  # window bits that mean: one gzip member, its checksum and its length checked
COMPRESSED_AT_ONCE = 1 << 18
MOST_GAIN = 1032  # deflate cannot make more bytes than this out of one
LONGEST_HEADER = 10_000
MEND = "fetch it again"


class ArrayFile:
    """The array in a file of a place, from its header to its verified end."""

    def __init__(self, where: Place, name: str, compressed: int, dtype: str, dimensions: int):
        self.name = f"{where.address}/{name}"
        self._stream = where.open(name)
        self._inflate = inflate.decompressobj(GZIP)
        self._pending = b""
        try:
            self.shape = self._header(dtype, dimensions)
            self.dtype = np.dtype(dtype)
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
        """The next rows of the array, as many as the target holds."""
        bytes_left = target.reshape(-1).view(np.uint8).data
        while len(bytes_left):
            part = self._inflated(len(bytes_left))
            bytes_left[: len(part)] = part
            bytes_left = bytes_left[len(part) :]

    def finish(self) -> None:
        """Make sure that the file ends here, and that its checksum and length are right."""
        while not self._inflate.eof:
            if self._inflated(1, ends=True):
                raise self.refusal("holds more than its header declares")
        if self._inflate.unused_data or self._read():
            raise self.refusal("goes on after its end")

    def _header(self, dtype: str, dimensions: int) -> tuple[int, ...]:
        magic = self._bytes(8)
        if magic[:6] != b"\x93NUMPY" or magic[6] not in (1, 2, 3):
            raise self.refusal("is not a gzipped .npy file")
        (length,) = (
            struct.unpack("<H", self._bytes(2)) if magic[6] == 1 else struct.unpack("<I", self._bytes(4))
        )
        if length > LONGEST_HEADER:
            raise self.refusal(f"has a header of {length} bytes")
        try:
            header = ast.literal_eval(self._bytes(length).decode("latin1").strip())
            found, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
        except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError) as problem:
            raise self.refusal("has a header that is not one of a .npy file") from problem
        if found != dtype:
            raise self.refusal(f"holds numbers of type {str(found)[:20]!r} instead of {dtype!r}")
        if fortran is not False:
            raise self.refusal("is in Fortran order")
        whole = isinstance(shape, tuple) and all(type(size) is int and size >= 0 for size in shape)
        if not whole or len(shape) != dimensions:
            raise self.refusal(f"declares the shape {str(shape)[:60]}, not one of {dimensions} dimensions")
        return shape

    def _bytes(self, count: int) -> bytes:
        found = np.empty(count, np.uint8)
        self.fill(found)
        return found.tobytes()

    def _inflated(self, most: int, *, ends: bool = False) -> bytes:
        """Some bytes, at most so many; none only where the file may end."""
        while True:
            compressed = self._pending or self._read()
            try:
                part = self._inflate.decompress(compressed, most)
            except inflate.error as problem:
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
        except Exception as problem:  # a store fails in exceptions of its own
            raise self.refusal(f"cannot be read ({str(problem).partition(chr(10))[0]})") from problem
