"""HDF5 files, opened in this place only: with a one-line error for whatever is wrong, and never left.

An HDF5 file can name other files of its reader as the storage of an array, as a group, or as the parts of a
virtual array: without a word their bytes would become observations. So a reader gets a `Group`, which finds
only what the file itself holds.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from optimist.data.disk.files import check_is_file
from optimist.data.formats._bytes import readable
from optimist.errors import DataError, UsageError, in_one_line, some_of

MAGIC = b"\x89HDF\r\n\x1a\n"
MOST_GAIN = 2**11  # bytes of numbers for each byte in the file; HDF5's own compression makes at most 1,032
ANYWAY = 2**24  # so many bytes of numbers may have none in the file, such as flags that were never written
MOST_LINKS = 8  # from one name to another, within a file
SAME_FILE = "an array must be in the file itself: copy it there"


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
def created(path: Path, extra: str = "hdf5", **options: Any) -> Iterator[Any]:
    """A new file, to be filled."""
    with package(extra).File(path, "w", **options) as file:
        yield file


@contextmanager
def opened(path: Path, extra: str = "hdf5") -> Iterator["Group"]:
    """The contents of the file; errors of h5py become DataErrors."""
    h5py = package(extra)
    check_is_file(path)
    with readable(path, "HDF5 file", "fetch or save it again"), h5py.File(path, "r") as file:
        yield Group(file, path)


class Group:
    """A group of a file; it gives its own groups and arrays, and nothing of another file."""

    def __init__(self, group: Any, path: Path):
        self._group, self._path = group, path

    def __iter__(self) -> Iterator[str]:
        return iter(self._group)

    def __len__(self) -> int:
        return len(self._group)

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    @property
    def attributes(self) -> Any:
        return self._group.attrs

    @property
    def place(self) -> str:
        """The file, and the group in it."""
        return f"{self._path} {self._group.name}"

    def get(self, name: str) -> Any:
        """The group or the array of this name, which may hold slashes; None if there is none."""
        h5py = package()
        found = _found(self._group, name, MOST_LINKS)
        if isinstance(found, h5py.Group):
            return Group(found, self._path)
        if isinstance(found, h5py.Dataset):
            self._check_array(name, found)
        elif found is not None and not isinstance(found, h5py.Datatype):
            raise self._wrong(name, f"is a link that leads out of the file; {SAME_FILE}")
        return found

    def _check_array(self, name: str, found: Any) -> None:
        if found.external or found.is_virtual:
            kind = "virtual" if found.is_virtual else "stored in another file"
            raise self._wrong(name, f"is {kind}; {SAME_FILE}")
        try:
            _ = found.dtype
        except TypeError as problem:  # NumPy has no such type
            raise self._wrong(name, f"has an unknown type ({in_one_line(problem)})") from None

    def group(self, name: str) -> "Group":
        found = self.get(name)
        if not isinstance(found, Group):
            raise DataError(f'{self.place} lacks the group "{name}"; fetch the dataset again')
        return found

    def array(self, name: str, *, of: str = "numbers") -> Any:
        """The array of this name, with a row for each step; `of` "texts" or "files" its rows may be those."""
        found = self._array(name)
        if not found.shape:
            raise self._wrong(name, "is not an array with a row for each step; save it again")
        texts = of == "texts" and package().check_string_dtype(found.dtype) is not None
        files = of == "files" and package().check_vlen_dtype(found.dtype) == np.uint8
        if not (texts or files or found.dtype.kind in "biuf"):
            raise self._wrong(name, f"has type {found.dtype} instead of {of}; save it again")
        claimed = max(math.prod(found.shape), math.prod(found.chunks or ())) * found.dtype.itemsize
        stored = found.id.get_storage_size()
        if claimed > max(ANYWAY, MOST_GAIN * stored):
            raise self._wrong(
                name, f"has the shape {found.shape} and {stored:,} bytes in the file; save it again"
            )
        return found

    def value(self, name: str) -> Any:
        """The number or text of this name, as Python's own."""
        found = self._array(name)
        if found.shape != () or not (
            found.dtype.kind in "biufS" or package().check_string_dtype(found.dtype) is not None
        ):
            raise self._wrong(name, f"has shape {found.shape} and type {found.dtype}, and must be one value")
        value = found[()]
        return value.decode(errors="replace") if isinstance(value, bytes) else value.item()

    def _array(self, name: str) -> Any:
        found = self.get(name)
        if not isinstance(found, package().Dataset):
            held = some_of([in_one_line(each, 40) for each in self], 12) or "nothing"
            raise DataError(f'{self._path} lacks "{name}" in {self._group.name}, which holds {held}')
        return found

    def _wrong(self, name: str, what: str) -> DataError:
        inside = f"{self._group.name.rstrip('/')}/{name}"
        return DataError(f'"{in_one_line(inside)}" in {self._path} {what}')


def _found(group: Any, name: str, links: int) -> Any:
    """What has this name: followed part by part, so that no link is followed before its kind is known. The
    link itself if it leads out of the file, or through too many others."""
    h5py, found = package(), group
    for part in filter(None, name.split("/")):
        if not isinstance(found, h5py.Group):
            return None
        try:
            link = found.get(part, getlink=True)
        except TypeError:  # a kind that h5py does not know
            return "link"
        if isinstance(link, h5py.SoftLink) and links:
            start = found.file if link.path.startswith("/") else found
            found = _found(start, link.path, links - 1)
        elif isinstance(link, h5py.HardLink):
            found = found[part]
        else:
            return link
        if isinstance(found, str | h5py.SoftLink | h5py.ExternalLink):
            return found
    return found


def plain(array: Any, rows: slice) -> np.ndarray:
    """These rows; texts as NumPy's own, which h5py gives as objects of bytes."""
    if package().check_string_dtype(array.dtype) is None:
        return array[rows]
    return array.asstr(errors="replace")[rows].astype(str)
