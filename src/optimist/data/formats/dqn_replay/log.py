"""DQN Replay logs: the contents of the dumps, their order, and which entries are steps.

A run's logger kept the last C entries in a ring and dumped the ring whenever `add_count % C == C - 1`. So a
full dump holds the entries of window `add_count // C` in the slots 0 to C - 2, while slot C - 1 still holds
the last entry of the window before (or nothing, in window 0). At its end the run dumped once more, with
`add_count` set to the cursor: only the slots before the cursor are new. If the end of a window fell among the
padding entries between two episodes, that window was never dumped; the file names do not show that.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from optimist.data.formats.dqn_replay.files import MEND, ArrayFile, Folder
from optimist.errors import DataError

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
COLUMNS = ("action", "reward", "terminal")
IGNORED = "episode_end_indices"  # a pickled set that newer loggers add; not needed here
FILE = re.compile(r"(?P<stem>.+)_ckpt\.(?P<suffix>0|[1-9][0-9]{0,8})\.gz")
BYTES_AT_ONCE = 1 << 21  # of frames: few enough to be in the cache when they are copied
MOST_SLOTS = 1 << 24  # a limit, because each slot takes some memory
MOST_PIXELS = 1 << 20
LONGEST_HORIZON = 1000


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
class Log:
    """Every dump of a run in time order, and the problems found."""

    folder: Folder
    sizes: dict[str, int]
    dumps: list[Dump] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)  # an import fails because of these
    notes: list[str] = field(default_factory=list)  # an import works around these and reports them

    @property
    def label(self) -> str:
        """The end of the address: it names the run, not the machine."""
        parts = self.folder.parts
        return "/".join(parts[: -1 if parts[-1:] == [FOLDER] else None][-2:])

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

    def file(self, name: str, suffix: int) -> ArrayFile:
        stem, dtype, dimensions = TYPES[name]
        full = f"{stem}_ckpt.{suffix}.gz"
        return ArrayFile(self.folder, full, self.sizes[full], dtype, dimensions)

    def array(self, name: str, suffix: int) -> np.ndarray:
        """A whole array; for the small ones."""
        with self.file(name, suffix) as file:
            found = np.empty(file.shape, file.dtype)
            file.fill(found)
            file.finish()
        return found

    def frames(self, dump: Dump) -> Iterator[tuple[int, np.ndarray]]:
        """All frames in blocks, each with its first slot, then a check of the file's end. Each block
        overwrites the one before."""
        rows = max(1, BYTES_AT_ONCE // prod(dump.frame))
        block = np.empty((min(rows, dump.capacity), *dump.frame), np.uint8)
        with self.file("observation", dump.suffix) as file:
            for start in range(0, dump.capacity, rows):
                frames = block[: dump.capacity - start]
                file.fill(frames)
                yield start, frames
            file.finish()

    def leading_padding(self, dump: Dump) -> int:
        """The number of padding entries (all zero) with which a dump begins."""
        count = min(PADDING, dump.fresh)
        frames = np.empty((count, *dump.frame), np.uint8)
        with self.file("observation", dump.suffix) as file:
            file.fill(frames)
        used = frames.any(axis=(1, 2))
        for name in COLUMNS:
            used |= self.array(name, dump.suffix)[:count] != 0
        return int(np.argmax(used)) if used.any() else count


@dataclass(frozen=True)
class Entries:
    """The entries of a dump without frames, in time order."""

    slots: np.ndarray
    columns: dict[str, np.ndarray]
    is_padding: np.ndarray
    due: int  # the number of padding entries at its beginning
    padding_after: int  # the number of padding entries that follow its last entry

    @cached_property
    def steps(self) -> tuple[np.ndarray, ...]:
        """Action, reward and terminal of the entries that are not padding."""
        return tuple(self.columns[name][~self.is_padding] for name in COLUMNS)

    def faults(self, log: Log, dump: Dump, actions: int | None = None) -> Iterator[str]:
        """One line for each kind of wrong value, with its file and its first row."""
        action, reward, terminal = (self.columns[name] for name in COLUMNS)
        wrong = [
            ("terminal", "is neither 0 nor 1", terminal > 1, MEND),
            ("reward", "is not finite", ~np.isfinite(reward), MEND),
            ("action", "is negative", action < 0, MEND),
        ]
        if actions is not None:
            outside = f"is outside the {actions} actions"
            wrong.append(("action", outside, action >= actions, "give the game's own number of actions"))
        for name, column in self.columns.items():
            what = "should be padding before an episode, but is not zero"
            remedy = "these logs are of another kind, or damaged"
            wrong.append((name, what, self.is_padding & (column != 0), remedy))
        for name, what, rows, remedy in wrong:
            if rows.any():
                yield f"{self.first(log, dump, name, rows, what)}; {remedy}"

    def first(self, log: Log, dump: Dump, name: str, rows: np.ndarray, what: str) -> str:
        """A description of these wrong rows of a column: the first row, its value, and their number."""
        at = int(np.argmax(rows))
        where = f"{log.name(name, dump.suffix)} row {int(self.slots[at])}"
        return f"{where}: {self.columns[name][at]:g} {what} ({int(rows.sum())} such rows)"


def entries(log: Log, dump: Dump, due: int | None) -> Entries:
    """The entries of a dump whose first `due` are padding; `due` is None if the dump before it is missing."""
    columns = {name: log.array(name, dump.suffix)[dump.slots] for name in COLUMNS}
    if due is None:
        due = PADDING if dump.window == 0 else log.leading_padding(dump)
    count = len(dump.slots)
    mask = np.zeros(count + PADDING, bool)
    mask[:due] = True
    for distance in range(1, PADDING + 1):
        mask[np.flatnonzero(columns["terminal"]) + distance] = True
    return Entries(dump.slots, columns, mask[:count], due, int(mask[count:].sum()))
