"""One .npz file of named arrays: observations, actions, rewards, terminals and others of from_arrays."""

import io
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from optimist.data.dataset import Dataset
from optimist.data.disk.files import check_is_file, stored_whole
from optimist.data.formats._incoming import Signed, said_no, signed
from optimist.data.formats._named_arrays import (
    KNOWN,
    NamedArrayFacts,
    check_needed,
    common_length,
    rows_together,
)
from optimist.data.formats._outgoing import (
    WRITTEN,
    Written,
    named_parts,
    new_file,
    optional_columns,
    signature,
    written,
)
from optimist.data.rules.log import Log, Part
from optimist.errors import DataError, did_you_mean, in_one_line

# NumPy packs arrays in these ways. Another one can make gigabytes of a few bytes.
PACKED = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
IS_ENCRYPTED = 1  # among the flags of an entry
DAMAGE = (
    *(OSError, ValueError, EOFError, MemoryError, KeyError, RuntimeError, SyntaxError, OverflowError),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError, struct.error),
)
OURS = "optimist"  # in a file that `write` made: the spec as JSON


@dataclass(frozen=True)
class ReadOptions(NamedArrayFacts):
    """Facts that are not in the arrays."""


@dataclass(frozen=True)
class WriteOptions:
    """No options: a view is written as it is."""


def detect(address: str | Path) -> bool:
    return Path(address).suffix == ".npz" and Path(address).is_file()


def _parts(path: Path, uses: dict[str, str], rows: int, names: Collection[str]) -> Iterator[Part]:
    """The arrays are read as streams: all of them together may exceed the memory. One in Fortran order, as
    `DataFrame.to_numpy` gives it, is turned in memory first."""
    with _readable(path), zipfile.ZipFile(path) as archive, ExitStack() as stack:
        streams = {}
        for name in names:
            if name in uses:
                stream = stack.enter_context(_opened(archive, uses[name]))
                shape, dtype, is_turned = _header(stream)
                streams[name] = (_by_rows(stream, shape, dtype) if is_turned else stream, shape, dtype)
        size = rows_together((shape, dtype) for _, shape, dtype in streams.values())
        for start in range(0, rows, size):
            count = min(size, rows - start)
            yield {name: _rows(*stream, count) for name, stream in streams.items()}


def _opened(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    """The file of an array in the archive."""
    entry = archive.getinfo(f"{name}.npy")
    if entry.compress_type not in PACKED or entry.flag_bits & IS_ENCRYPTED:
        raise ValueError(f"{in_one_line(name)} is not packed as NumPy does")
    return archive.open(entry)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype, bool]:
    """Shape, type, and whether the first index is the fastest: the array is stored by columns."""
    version = npy.read_magic(stream)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    return shape, dtype, fortran and len(shape) > 1


def _rows(stream: IO[bytes], shape: tuple[int, ...], dtype: np.dtype, count: int) -> np.ndarray:
    return _next(stream, (count, *shape[1:]), dtype).reshape(count, *shape[1:])


def _by_rows(stream: IO[bytes], shape: tuple[int, ...], dtype: np.dtype) -> IO[bytes]:
    return io.BytesIO(_next(stream, shape, dtype).reshape(shape, order="F").tobytes("C"))


def _next(stream: IO[bytes], shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The next elements, as many as an array of this shape has."""
    size = math.prod(shape) * dtype.itemsize
    content = stream.read(size)
    if len(content) != size:
        raise EOFError("an array ends too early")
    return np.frombuffer(content, dtype)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError:
        raise DataError(f"{path} may not be read: Permission denied; change its rights") from None
    except DAMAGE as problem:
        raise DataError(
            f"{path} is not a readable .npz file ({in_one_line(problem)}); save it again"
        ) from None


def open(address: str | Path, options: ReadOptions) -> Log:
    """The log in the file, after a check of the names and lengths of its arrays."""
    path = Path(address)
    check_is_file(path)
    with _readable(path), zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        ours = signed(str(_whole(archive, OURS)), path) if OURS in names else Signed()
        names = [name for name in names if name != OURS]
        dropped = options.dropped(names, path)
        unknown = sorted(set(names) - set(KNOWN) - set(dropped))
        if unknown:
            hint = did_you_mean(unknown[0], KNOWN)
            raise DataError(f'{path} holds an array "{in_one_line(unknown[0])}": {hint}')
        uses = {KNOWN[name]: name for name in names if name not in dropped}
        shapes = {name: _shape(archive, name) for name in uses.values()}
    check_needed(uses, names, path)
    rows = common_length(shapes, path)
    return Log(
        columns=uses,
        parts=partial(_parts, path, uses, rows),
        rows=rows,
        asked=options.asked(ours.environment, every_end_is_terminal=said_no(options.truncations)),
        spec=ours.spec,
        actions_are_named=True,
        provenance=ours.names,
        notes=[f"left out: {options.drop}"] if options.drop else [],
        heads=("array", "shape", "type"),
        contents=[(name, str(shape), str(dtype)) for name, (shape, dtype) in shapes.items()],
    )


def _shape(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype]:
    with _opened(archive, name) as stream:
        return _header(stream)[:2]


def _whole(archive: zipfile.ZipFile, name: str) -> Any:
    with _opened(archive, name) as stream:
        shape, dtype, _ = _header(stream)
        return _next(stream, shape, dtype).reshape(shape)


def write(dataset: Dataset, out: str | Path, options: WriteOptions) -> Written:
    """Write one file, `out` or `out/log.npz`, which is imported without loss."""
    path = new_file(out, (".npz",))
    fast = 1  # the other levels of compression take many times as long
    with (
        stored_whole(path) as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=fast) as archive,
    ):
        for name in (*WRITTEN, *optional_columns(dataset)):
            _write_array(archive, name, len(dataset), (part[name] for part in named_parts(dataset, [name])))
        _write_array(archive, OURS, None, [np.array(signature(dataset))])
    return written(dataset)


def _write_array(archive: zipfile.ZipFile, name: str, rows: int | None, blocks: Any) -> None:
    """Write one array as numpy does, block by block."""
    with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
        for number, block in enumerate(blocks):
            if not number:
                shape = block.shape if rows is None else (rows, *block.shape[1:])
                descr = npy.dtype_to_descr(block.dtype)
                npy.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
            stream.write(np.ascontiguousarray(block).tobytes())
