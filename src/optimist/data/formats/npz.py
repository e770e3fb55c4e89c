"""One .npz file of named arrays: observations, actions, rewards, terminals and others of from_arrays."""

import io
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from optimist.data.dataset import Dataset
from optimist.data.disk.files import check_is_file, stored_whole
from optimist.data.formats import _incoming
from optimist.data.formats._incoming import Imported, Report, Signed, said_no, signed
from optimist.data.formats._named_arrays import (
    KNOWN,
    NEEDED,
    NamedArrayFacts,
    NamedArrays,
    check_lengths,
    rows_at_once,
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
from optimist.data.rules.log import Part
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


@dataclass(frozen=True)
class Arrays(NamedArrays):
    """The arrays of a file, which are read as streams: all of them together may exceed the memory. One in
    Fortran order, as `DataFrame.to_numpy` gives it, is turned in memory first."""

    actions_are_named = True

    def parts(self, names: Collection[str]) -> Iterator[Part]:
        with _readable(self.path), zipfile.ZipFile(self.path) as archive, ExitStack() as stack:
            streams = {}
            for name in names:
                if name in self.uses:
                    stream = stack.enter_context(_opened(archive, self.uses[name]))
                    shape, dtype, is_turned = _header(stream)
                    streams[name] = (_by_rows(stream, shape, dtype) if is_turned else stream, shape, dtype)
            size = rows_at_once((shape, dtype) for _, shape, dtype in streams.values())
            for start in range(0, self.rows, size):
                count = min(size, self.rows - start)
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


def opened(address: str | Path, options: ReadOptions) -> Arrays:
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
        shapes = {name: _shape(archive, use)[0] for name, use in uses.items()}
        missing = [name for name in NEEDED if name not in uses]
        if missing:
            held = ", ".join(in_one_line(name, 40) for name in names)
            raise DataError(
                f"{path} holds {held}, and lacks {', '.join(missing)}: save them with these names"
            )
    lengths = {name: shape[0] if shape else 0 for name, shape in shapes.items()}
    check_lengths(lengths, path)
    return Arrays(path, uses, lengths["rewards"], *ours)


def _shape(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype]:
    with _opened(archive, name) as stream:
        return _header(stream)[:2]


def _whole(archive: zipfile.ZipFile, name: str) -> Any:
    with _opened(archive, name) as stream:
        shape, dtype, _ = _header(stream)
        return _next(stream, shape, dtype).reshape(shape)


def read(
    address: str | Path,
    out: str | Path,
    options: ReadOptions = ReadOptions(),  # noqa: B008  (frozen)
    progress: Callable[[int, int], None] | None = None,
) -> Imported:
    """Check the arrays like `Dataset.from_arrays`, and write them into a new folder."""
    log = opened(address, options)
    asked = options.asked(log.environment, every_end_is_terminal=said_no(options.truncations))
    provenance = {"format": "npz", "source": Path(address).name, **log.names}
    notes = [f"left out: {options.drop}"] if options.drop else []
    return _incoming.bring_in(log, out, asked, provenance, progress, notes)


def write(
    dataset: Dataset,
    out: str | Path,
    options: WriteOptions = WriteOptions(),  # noqa: B008  (frozen)
) -> Written:
    """Write one file, `out` or `out/log.npz`, which `read` imports without loss."""
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


def verify(address: str | Path) -> Report:
    """Report the first problem that an import would raise."""
    rows: list[tuple[str, ...]] = []
    try:
        log = opened(address, ReadOptions())
        with _readable(log.path), zipfile.ZipFile(log.path) as archive:
            shown = [(use, *_shape(archive, use)) for use in log.uses.values()]
            rows = [(use, str(shape), str(dtype)) for use, shape, dtype in shown]
        problems = _incoming.problems(log, ReadOptions().asked(log.environment))
    except DataError as problem:
        problems = [str(problem)]
    return Report(problems, rows, ("array", "shape", "type"))
