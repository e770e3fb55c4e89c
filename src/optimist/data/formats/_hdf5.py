"""HDF5 files: opened with a one-line error for whatever is wrong, and read a part at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from optimist.data.disk.files import check_is_file
from optimist.errors import DataError, UsageError, in_one_line

MAGIC = b"\x89HDF\r\n\x1a\n"


def is_hdf5(path: Path) -> bool:
    try:
        with open(path, "rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def package(extra: str = "hdf5") -> Any:
    """The module h5py, or a UsageError with the command that installs it."""
    try:
        import h5py
    except ImportError:
        raise UsageError(f'HDF5 files need h5py: pip install "optimist-rl[{extra}]"') from None
    return h5py


@contextmanager
def opened(path: Path, extra: str = "hdf5") -> Iterator[Any]:
    """The open file; errors of h5py become DataErrors."""
    h5py = package(extra)
    check_is_file(path)
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, KeyError) as problem:
        reason = in_one_line(str(problem).partition("\n")[0], 160)
        raise DataError(f"{path} is not a readable HDF5 file ({reason}); fetch or save it again") from None


def dataset(group: Any, name: str, file: Path) -> Any:
    """A dataset of a group; DataError if it is missing or not an array."""
    found = group.get(name)
    if found is None or not hasattr(found, "shape"):
        held = ", ".join(in_one_line(each, 40) for each in list(group)[:12]) or "nothing"
        raise DataError(f'{file} lacks "{name}" in {group.name}, which holds {held}')
    return found


def rows(array: Any, start: int, stop: int) -> np.ndarray:
    return np.asarray(array[start:stop])


def plain(array: Any, rows: slice) -> np.ndarray:
    """These rows; texts as NumPy's own, which h5py gives as objects of bytes."""
    if package().check_string_dtype(array.dtype) is None:
        return array[rows]
    return array.asstr(errors="replace")[rows].astype(str)
