"""The dumps of a DQN Replay log: which there are in a folder, what they hold, and their order.

A run's logger kept the last C entries in a ring and dumped the ring whenever `add_count % C == C - 1`. So a
full dump holds the entries of window `add_count // C` in the slots 0 to C - 2, while slot C - 1 still holds
the last entry of the window before (or nothing, in window 0). At its end the run dumped once more, with
`add_count` set to the cursor: only the slots before the cursor are new. If the end of a window fell among the
padding entries between two episodes, that window was never dumped; the file names do not show that.
"""

import contextlib
import gzip
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import IO

import numpy as np

from optimist.data.disk.files import refuse_links
from optimist.data.formats._bytes import ArrayStream, readable
from optimist.errors import DataError, UsageError

FOLDER = "replay_logs"
STACK = 4
PADDING = STACK - 1  # black entries before each episode
TYPES = {  # file name, type in numpy's notation, number of dimensions
    "observation": ("$store$_observation", "|u1", 3),
    "action": ("$store$_action", "<i4", 1),
    "reward": ("$store$_reward", "<f4", 1),
    "terminal": ("$store$_terminal", "|u1", 1),
    "add_count": ("add_count", "<i8", 0),
    "invalid_range": ("invalid_range", "<i8", 1),
}
STEMS = {stem for stem, _, _ in TYPES.values()}
COLUMNS = ("action", "reward", "terminal")
IGNORED = "episode_end_indices"  # a pickled set that newer loggers add; not needed here
FILE = re.compile(r"(?P<stem>.+)_ckpt\.(?P<suffix>0|[1-9][0-9]{0,8})\.gz")
MEND = "fetch it again"
BYTES_AT_ONCE = 1 << 23  # of frames
MOST_GAIN = 1032  # bytes that deflate can make of one byte, at most
MOST_SLOTS = 1 << 24  # a limit, because each slot takes some memory
MOST_PIXELS = 1 << 20
LONGEST_HORIZON = 1000


class Folder:
    """A folder at a path or an address such as gs://bucket/folder, for reading."""

    def __init__(self, address: str | Path):
        self.address = self._path = str(address).rstrip("/") or "/"
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
    def label(self) -> str:
        """The end of the address: it names the run, not the machine."""
        path = os.path.realpath(self._path) if self._store is None else self._path
        return "/".join([part for part in path.split("/") if part and part != FOLDER][-2:])

    def entries(self) -> dict[str, int | None]:
        """The size of every file in it by name; None for everything else."""
        with _reached(self.address):
            if self._store is None:
                paths = sorted(Path(self._path).iterdir())
                return {path.name: path.stat().st_size if path.is_file() else None for path in paths}
            listed = {each["name"].rstrip("/"): each for each in self._store.ls(self._path, detail=True)}
            sizes = {path: each["size"] if each["type"] == "file" else None for path, each in listed.items()}
            return {path.rpartition("/")[2]: sizes[path] for path in sorted(sizes)}

    def open(self, name: str) -> IO[bytes]:
        path = f"{self._path.rstrip('/')}/{name}"
        if self._store is None:
            refuse_links([Path(path)])
        with _reached(f"{self.address}/{name}"):
            return open(path, "rb") if self._store is None else self._store.open(path, "rb")


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


@dataclass(frozen=True)
class Dump:
    """One dump of the ring; its first `fresh` slots hold new entries."""

    suffix: int
    add_count: int
    capacity: int
    frame: tuple[int, int]
    fresh: int
    window: int = -1  # set when all dumps are known
    joined: bool = False  # slot C - 1 holds the last entry of the window before, which is present too

    @property
    def full(self) -> bool:
        return self.fresh == self.capacity - 1

    @property
    def slots(self) -> np.ndarray:
        """The slots of its entries, in time order."""
        return np.concatenate([[self.capacity - 1] * self.joined, np.arange(self.fresh)]).astype(np.int64)


@dataclass
class ReplayLogs:
    """Every dump of a run in time order, and the problems found."""

    folder: Folder
    sizes: dict[str, int]
    dumps: list[Dump] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)  # an import fails because of these
    notes: list[str] = field(default_factory=list)  # an import works around these and reports them

    @property
    def missing(self) -> list[int]:
        """The windows before the last dump that were not dumped or not fetched."""
        present = {dump.window for dump in self.dumps}
        return [window for window in range(max(present, default=-1) + 1) if window not in present]

    @property
    def fingerprint(self) -> str:
        """A hash that changes when a file is added, removed or renamed, or changes its size."""
        return hashlib.sha256(repr(sorted(self.sizes.items())).encode()).hexdigest()

    def name(self, name: str, suffix: int) -> str:
        return f"{self.folder.address}/{TYPES[name][0]}_ckpt.{suffix}.gz"

    def refusal(self, name: str, suffix: int, what: str) -> DataError:
        return DataError(f"{self.name(name, suffix)} {what}; {MEND}")

    @contextlib.contextmanager
    def stream(self, name: str, suffix: int) -> Iterator[ArrayStream]:
        """The array in a file, whose type and shape are as they should be."""
        stem, dtype, dimensions = TYPES[name]
        file = f"{stem}_ckpt.{suffix}.gz"
        with (
            readable(self.name(name, suffix), "gzipped .npy file", MEND),
            self.folder.open(file) as packed,
            gzip.GzipFile(fileobj=packed) as unpacked,
        ):
            array = ArrayStream(unpacked)  # type: ignore[arg-type]
            if array.dtype != np.dtype(dtype):
                raise ValueError(f"numbers of type {array.dtype.str!r} instead of {dtype!r}")
            if array.is_fortran or len(array.shape) != dimensions or min(array.shape, default=0) < 0:
                order = " in Fortran order" * array.is_fortran
                raise ValueError(f"the shape {str(array.shape)[:50]}{order}, not {dimensions} dimensions")
            if array.size > MOST_GAIN * self.sizes[file]:
                raise ValueError(f"{array.size} bytes, more than {self.sizes[file]} packed ones can hold")
            yield array

    def array(self, name: str, suffix: int) -> np.ndarray:
        """A whole array; for the small ones."""
        with self.stream(name, suffix) as array:
            return array.whole()

    def frames(self, dump: Dump) -> Iterator[tuple[int, np.ndarray]]:
        """All frames in blocks, each with its first slot, then a check of the file's end."""
        rows = max(1, BYTES_AT_ONCE // prod(dump.frame))
        with self.stream("observation", dump.suffix) as array:
            for start in range(0, dump.capacity, rows):
                yield start, array.rows(min(rows, dump.capacity - start))
            array.finish()

    def leading_padding(self, dump: Dump) -> int:
        """The number of padding entries (all zero) with which a dump begins."""
        count = min(PADDING, dump.fresh)
        with self.stream("observation", dump.suffix) as array:
            used = array.rows(count).any(axis=(1, 2))
        for name in COLUMNS:
            used |= self.array(name, dump.suffix)[:count] != 0
        return int(np.argmax(used)) if used.any() else count


def is_log(address: str | Path) -> bool:
    """Whether a folder looks like a run's logs, complete or not."""
    return ("://" in str(address) or Path(address).is_dir()) and _logs_folder(Folder(address)) is not None


def _logs_folder(folder: Folder) -> Folder | None:
    """The folder itself, or the `replay_logs` in it, if dumps are there."""
    names = folder.entries()
    if FOLDER in names:
        folder = folder / FOLDER
        names = folder.entries()
    return folder if any(FILE.fullmatch(name) for name in names) else None


def read_logs(address: str | Path) -> ReplayLogs:
    """The dumps of a run, from its folder or the `replay_logs` in it; reads only the smallest files."""
    folder = _logs_folder(Folder(address))
    if folder is None:
        raise _no_logs(Folder(address))
    found = {name: size for name, size in folder.entries().items() if size is not None}
    ours = {name: match for name in found if (match := FILE.fullmatch(name))}
    ours = {name: match for name, match in ours.items() if match["stem"] in {*STEMS, IGNORED}}
    logs = ReplayLogs(folder, {name: found[name] for name in ours if ours[name]["stem"] != IGNORED})
    others = sorted(set(found) - set(ours))
    if others:
        logs.notes.append(f"ignored {len(others)} files that are not part of a logs, such as {others[0]}")
    for suffix in sorted({int(match["suffix"]) for match in ours.values()}):
        try:
            for stem in sorted(STEMS):
                if (name := f"{stem}_ckpt.{suffix}.gz") not in found:
                    raise DataError(f"{folder.address}/{name} is missing; fetch it")
            logs.dumps.append(_dump(logs, suffix))
        except DataError as problem:
            logs.faults.append(str(problem))
    _put_in_order(logs)
    return logs


def _no_logs(folder: Folder) -> DataError:
    inside = folder.entries()
    runs = [name for name, size in inside.items() if size is None and FOLDER in (folder / name).entries()]
    if runs:
        first = f"{folder.address}/{runs[0]}"
        return DataError(f"{folder.address} holds the runs {', '.join(runs)}; name one: {first}")
    return DataError(
        f"{folder.address} holds no DQN Replay logs (files such as $store$_observation_ckpt.0.gz); "
        f"name a run's folder, or the {FOLDER} in it"
    )


def _dump(logs: ReplayLogs, suffix: int) -> Dump:
    """The dump with this suffix, after checks of its shapes and its cursor."""
    add_count, shapes = int(logs.array("add_count", suffix)), {}
    for name in ("observation", *COLUMNS):
        with logs.stream(name, suffix) as array:
            shapes[name] = array.shape
    capacity, *frame = shapes["observation"]
    for name in COLUMNS:
        if shapes[name] != (capacity,):
            raise logs.refusal(name, suffix, f"has {shapes[name][0]} rows, the observations {capacity}")
    if not (PADDING + 2 <= capacity <= MOST_SLOTS and 1 <= prod(frame) <= MOST_PIXELS):
        raise logs.refusal("observation", suffix, f"has the shape {shapes['observation']}, which no log has")
    if add_count < 0:
        raise logs.refusal("add_count", suffix, f"says {add_count}")
    with logs.stream("invalid_range", suffix) as array:  # the entries that may not be sampled, at the cursor
        (length,) = array.shape
        if not 1 <= length - STACK <= LONGEST_HORIZON:
            raise logs.refusal("invalid_range", suffix, f"has {length} numbers, which no log has")
        invalid, cursor = array.whole(), add_count % capacity
    if not np.array_equal(invalid, (cursor - (length - STACK) + np.arange(length)) % capacity):
        beside = f"invalid_range_ckpt.{suffix}.gz says {invalid[:5].tolist()}"
        raise logs.refusal(
            "add_count", suffix, f"puts the cursor at {cursor}, but {beside}: two dumps are mixed"
        )
    return Dump(suffix, add_count, capacity, (frame[0], frame[1]), fresh=cursor)


def _put_in_order(logs: ReplayLogs) -> None:
    """Sort the dumps and set their windows by `add_count`; file names are not reliable."""
    for dump in logs.dumps[1:]:
        first = logs.dumps[0]
        shape, expected = ((each.capacity, *each.frame) for each in (dump, first))
        if shape != expected:
            logs.faults.append(
                f"{logs.name('observation', dump.suffix)} has the shape {shape}, that of suffix "
                f"{first.suffix} is {expected}; keep the logs of each run apart"
            )
    newest = max(logs.dumps, key=lambda dump: dump.suffix, default=None)
    ordered = [replace(dump, window=dump.add_count // dump.capacity) for dump in logs.dumps if dump.full]
    ordered.sort(key=lambda dump: (dump.window, dump.suffix))
    again = next((dump for dump in ordered if newest and dump.suffix == newest.suffix), None)
    if again and again.window == 0 and len(ordered) > 1 and _alike(logs, again, ordered[-1], slice(None)):
        ordered.remove(again)  # a run that ended right after a full dump wrote it twice
        logs.notes.append(f"suffix {again.suffix}, written when the run ended, repeats the dump before it")
    for before, dump in pairwise(ordered):
        if before.window == dump.window:
            both = f"suffixes {before.suffix} and {dump.suffix} are both of window {dump.window}"
            logs.faults.append(
                f"{logs.folder.address}: {both} (add_count {dump.add_count}); remove one of them"
            )
        elif before.suffix > dump.suffix:
            logs.notes.append(f"suffix {before.suffix} is earlier than suffix {dump.suffix} by its add_count")
    for dump in logs.dumps:
        if not dump.full and dump is not newest:
            logs.faults.append(
                f"{logs.name('add_count', dump.suffix)} says {dump.add_count}: neither a full dump nor the "
                "last one; fetch it again, or remove this suffix"
            )
    if newest and not newest.full:
        ordered.append(replace(newest, window=_final_window(logs, newest, ordered)))
    befores = [-2, *(dump.window for dump in ordered)]
    logs.dumps = [
        replace(dump, joined=dump.window == before + 1)
        for dump, before in zip(ordered, befores, strict=False)
    ]
    if logs.missing:
        numbers = f"number{'s' * (len(logs.missing) > 1)} {in_ranges(logs.missing)}"
        logs.notes.append(f"{len(logs.missing)} missing, never dumped or not fetched: window {numbers}")


def in_ranges(numbers: list[int]) -> str:
    """Numbers as text with ranges: "3, 5 to 9"."""
    borders = [i for i in range(1, len(numbers)) if numbers[i] != numbers[i - 1] + 1]
    parts = [numbers[i:j] for i, j in pairwise([0, *borders, len(numbers)]) if i < j]
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts)


def _alike(logs: ReplayLogs, one: Dump, other: Dump, slots: slice) -> bool:
    """Whether two dumps hold the same entries in these slots; frames are not compared."""
    try:
        pairs = [(logs.array(name, one.suffix), logs.array(name, other.suffix)) for name in COLUMNS]
    except DataError as problem:
        logs.faults.append(str(problem))
        return False
    return all(left[slots].tobytes() == right[slots].tobytes() for left, right in pairs)


def _final_window(logs: ReplayLogs, dump: Dump, full: list[Dump]) -> int:
    """The window of the last dump, which is not in its file: that after the last full dump if its old slots
    are the same as there."""
    if dump.add_count >= dump.capacity:
        return dump.add_count // dump.capacity
    if not full:
        # Window 0 begins with padding; otherwise there were earlier windows, which were never dumped.
        begins_the_run = dump.suffix == 0 and logs.leading_padding(dump) == min(PADDING, dump.fresh)
        return 0 if begins_the_run else max(1, dump.suffix)
    before = full[-1]
    if dump.suffix > before.suffix + 1:
        return before.window + dump.suffix - before.suffix
    if _alike(logs, dump, before, slice(dump.fresh, dump.capacity - 1)):
        return before.window + 1
    logs.notes.append(f"suffix {dump.suffix} does not continue suffix {before.suffix}")
    return before.window + 2
