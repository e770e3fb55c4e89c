"""Foreign bytes: arrays in .npy form, as streams, and pictures. Sizes are checked before memory is taken, and
whatever is wrong is one line."""

import struct
import warnings
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from math import prod
from typing import IO

import numpy as np
from numpy.lib import format as npy

from optimist.errors import DataError, in_one_line

LONGEST_HEADER = 10_000  # bytes of an .npy file
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
LARGEST = 2**24  # pixels of a picture
DAMAGE = (OSError, SyntaxError, ValueError, EOFError, LookupError, struct.error, zlib.error)  # of Pillow


@contextmanager
def readable(place: object, kind: str, remedy: str = "save it again") -> Iterator[None]:
    """Turn every exception into a DataError: archives, NumPy's reader of headers and stores have theirs."""
    try:
        yield
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{place} is missing; fetch the whole folder again") from None
    except PermissionError:
        raise DataError(f"{place} may not be read: Permission denied; change its rights") from None
    except Exception as problem:
        reason = in_one_line(str(problem).partition("\n")[0], 160)
        raise DataError(f"{place} is not a readable {kind} ({reason}); {remedy}") from problem


class ArrayStream:
    """The array in a stream, whose rows are read one after the other; ValueError for other bytes."""

    def __init__(self, stream: IO[bytes]):
        self._stream = stream
        with warnings.catch_warnings(action="error"):  # NumPy warns about headers that it had to guess
            self.shape, self.is_fortran, self.dtype = HEADERS[npy.read_magic(self)](self)
        if self.dtype.hasobject:
            raise ValueError("it holds Python objects")

    def read(self, count: int = 0, /) -> bytes:
        """Bytes of the header, for NumPy."""
        if count > LONGEST_HEADER:
            raise ValueError(f"it has a header of {count} bytes")
        return self._stream.read(count)

    @property
    def size(self) -> int:
        """The bytes of all numbers."""
        return prod(self.shape) * self.dtype.itemsize

    def rows(self, count: int) -> np.ndarray:
        """The next rows. An array in Fortran order, as `DataFrame.to_numpy` gives it, is turned in memory
        first."""
        if self.is_fortran:
            by_columns = self._next(self.shape[::-1])
            self._stream, self.is_fortran = BytesIO(by_columns.T.tobytes()), False
        return self._next((count, *self.shape[1:]))

    def whole(self) -> np.ndarray:
        """The whole array; for small ones."""
        found = self._next(self.shape)
        self.finish()
        return found

    def finish(self) -> None:
        """Check that nothing follows; a packed stream checks its checksum here."""
        if self._stream.read(1):
            raise ValueError("it holds more than its header declares")

    def _next(self, shape: tuple[int, ...]) -> np.ndarray:
        size = prod(shape) * self.dtype.itemsize
        content = self._stream.read(size)
        if len(content) != size:
            raise ValueError("it holds less than its header declares")
        return np.frombuffer(content, self.dtype).reshape(shape)


def write_array(stream: IO[bytes], blocks: Iterable[np.ndarray], rows: int | None = None) -> None:
    """Write an array as NumPy does, block by block; they have so many rows together (None: one block)."""
    for number, block in enumerate(blocks):
        if not number:
            shape = block.shape if rows is None else (rows, *block.shape[1:])
            facts = {"descr": npy.dtype_to_descr(block.dtype), "fortran_order": False, "shape": shape}
            npy.write_array_header_1_0(stream, facts)
        stream.write(np.ascontiguousarray(block).tobytes())


def pixels(
    content: bytes, place: str, *, jpeg: bool = False, like: tuple[int, ...] | None = None
) -> np.ndarray:
    """The pixels of a PNG file, or of a JPEG file, (height, width) or (height, width, channels); DataError if
    the height and width are not those of `like`.

    Pillow knows 40 other formats, and starts Ghostscript for one of them: its readers of these two are called
    by name. The size in the header is checked before memory is taken for the pixels."""
    from PIL.JpegImagePlugin import JpegImageFile
    from PIL.PngImagePlugin import PngImageFile

    kind = JpegImageFile if jpeg and content[:2] == b"\xff\xd8" else PngImageFile
    try:
        picture = kind(BytesIO(content))
        found = (picture.height, picture.width)
        if found == (like or found)[:2] and picture.height * picture.width <= LARGEST:
            return np.asarray(picture)
    except DAMAGE as problem:
        formats, reason = "PNG or JPEG" if jpeg else "PNG", in_one_line(problem)
        raise DataError(
            f"{place} holds a damaged image, or none of {formats} ({reason}); fetch it again"
        ) from None
    wanted = f"instead of {like[:2]}" if like else f"and at most {LARGEST:,} pixels are read"
    raise DataError(f"{place} holds an image of {found} pixels {wanted}; fetch it again")
