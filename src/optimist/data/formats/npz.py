"""One .npz file of named arrays: observations, actions, rewards, terminals and others of from_arrays."""

import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.disk.files import check_is_file, stored_whole
from optimist.data.formats._arrays import KNOWN, NamedArrayFacts, common_length, rows_together
from optimist.data.formats._bytes import ArrayStream, readable, write_array
from optimist.data.formats._incoming import OURS, signed
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
FAST = 1  # the other levels of compression take many times as long


@dataclass(frozen=True)
class ReadOptions(NamedArrayFacts):
    """Facts that are not in the arrays."""


@dataclass(frozen=True)
class WriteOptions:
    """No options: a view is written as it is."""


def detect(address: str | Path) -> bool:
    return Path(address).suffix == ".npz" and Path(address).is_file()


def open(address: str | Path, options: ReadOptions) -> Log:
    """The log in the file, after a check of the names and lengths of its arrays."""
    path = Path(address)
    check_is_file(path)
    with _arrays(path) as (names, array):
        ours = signed(str(array(OURS).whole()) if OURS in names else None, path)
        names = [name for name in names if name != OURS]
        dropped = options.dropped(names, path)
        unknown = sorted(set(names) - set(KNOWN) - set(dropped))
        if unknown:
            hint = did_you_mean(unknown[0], KNOWN)
            raise DataError(f'{path} holds an array "{in_one_line(unknown[0])}": {hint}')
        uses = {KNOWN[name]: name for name in names if name not in dropped}
        arrays = {name: array(name) for name in uses.values()}
    shapes = {name: (each.shape, each.dtype) for name, each in arrays.items()}
    rows = common_length(shapes, uses, names, path)
    return Log(
        columns=uses,
        parts=partial(_parts, path, uses, rows),
        rows=rows,
        asked=options.asked(ours.environment, options.truncations),
        spec=ours.spec,
        actions_are_named=True,
        provenance=ours.names,
        notes=[f"left out: {options.drop}"] if options.drop else [],
        heads=("array", "shape", "type"),
        contents=[(name, str(shape), str(dtype)) for name, (shape, dtype) in shapes.items()],
    )


def _parts(path: Path, uses: dict[str, str], rows: int, names: Collection[str]) -> Iterator[Part]:
    """The arrays are read as streams: all of them together may exceed the memory."""
    with _arrays(path) as (_, array):
        arrays = {name: array(uses[name]) for name in names if name in uses}
        size = rows_together((each.shape, each.dtype) for each in arrays.values())
        for start in range(0, rows, size):
            yield {name: each.rows(min(size, rows - start)) for name, each in arrays.items()}


@contextmanager
def _arrays(path: Path) -> Iterator[tuple[list[str], Callable[[str], ArrayStream]]]:
    """The names of the arrays in the file, and a function that opens one."""
    with readable(path, ".npz file"), zipfile.ZipFile(path) as archive, ExitStack() as opened:

        def array(name: str) -> ArrayStream:
            entry = archive.getinfo(f"{name}.npy")
            if entry.compress_type not in PACKED or entry.flag_bits & IS_ENCRYPTED:
                raise ValueError(f"{in_one_line(name)} is not packed as NumPy does")
            return ArrayStream(opened.enter_context(archive.open(entry)))

        yield [name.removesuffix(".npy") for name in archive.namelist()], array


def write(dataset: Dataset, out: str | Path, options: WriteOptions) -> Written:
    """Write one file, `out` or `out/log.npz`, which is imported without loss."""
    path = new_file(out, (".npz",))
    with ExitStack() as opened:
        stream = opened.enter_context(stored_whole(path))
        archive = opened.enter_context(zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=FAST))
        for name in (*WRITTEN, *optional_columns(dataset)):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                write_array(entry, (part[name] for part in named_parts(dataset, [name])), len(dataset))
        with archive.open(f"{OURS}.npy", "w") as entry:
            write_array(entry, [np.array(signature(dataset))])
    return written(dataset)
