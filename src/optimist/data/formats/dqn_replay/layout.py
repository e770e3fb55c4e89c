"""The public DQN Replay logs on disk: what a dump is, and how its files are read.

A run's logger kept the last C entries in a ring and dumped all of it whenever `add_count % C == C - 1`. So a
full dump holds the entries of its window `add_count // C` in the slots 0 to C - 2, while slot C - 1 still
holds the last entry of the window before (or nothing, in window 0). At the end it dumped once more, with
`add_count` set to the cursor: only the slots before that are new. A window whose end fell among the padding
entries between two episodes was never dumped, and the numbers in the file names do not tell.
"""

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from optimist.data.formats.dqn_replay.npy_gz import MEND, ArrayFile
from optimist.data.formats.dqn_replay.remote import Place, last_parts
from optimist.errors import DataError

FOLDER = "replay_logs"
STACK = 4
PADDING = STACK - 1  # black entries before each episode
TYPES = {  # name, numpy's name for its type, dimensions
    "observation": ("$store$_observation", "|u1", 3),
    "action": ("$store$_action", "<i4", 1),
    "reward": ("$store$_reward", "<f4", 1),
    "terminal": ("$store$_terminal", "|u1", 1),
    "add_count": ("add_count", "<i8", 0),
    "invalid_range": ("invalid_range", "<i8", 1),
}
COLUMNS = ("action", "reward", "terminal")
IGNORED = "episode_end_indices"  # a pickled set that newer loggers add; nothing here needs it
FILE = re.compile(r"(?P<stem>.+)_ckpt\.(?P<suffix>0|[1-9][0-9]{0,8})\.gz")


@dataclass(frozen=True)
class Dump:
    """One checkpoint of the ring; `fresh` entries are its own, in the slots from 0 on."""

    suffix: int
    add_count: int
    capacity: int
    frame: tuple[int, int]
    window: int
    fresh: int
    joined: bool = False  # slot C - 1 holds the entry between the window before and this one

    @property
    def slots(self) -> np.ndarray:
        """Where its entries lie, in the order in which they happened."""
        return np.concatenate([[self.capacity - 1] * self.joined, np.arange(self.fresh)]).astype(np.int64)


@dataclass
class Log:
    """Every dump of a run in the order of time, and what is odd about them."""

    where: Place
    sizes: dict[str, int]
    dumps: list[Dump] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)  # an import refuses these
    notes: list[str] = field(default_factory=list)  # an import works around these, and says so

    @property
    def label(self) -> str:
        return "/".join(
            last_parts(self.where, 3)[: -1 if last_parts(self.where, 1) == (FOLDER,) else None][-2:]
        )

    @property
    def missing(self) -> list[int]:
        """The windows between the run's start and its last dump that were not dumped, or not fetched."""
        present = {dump.window for dump in self.dumps}
        return [window for window in range(max(present, default=-1) + 1) if window not in present]

    @property
    def fingerprint(self) -> str:
        """Changes when a file is added, removed, renamed or becomes longer or shorter."""
        return hashlib.sha256(repr(sorted(self.sizes.items())).encode()).hexdigest()

    def file(self, name: str, suffix: int) -> ArrayFile:
        stem, dtype, dimensions = TYPES[name]
        full = f"{stem}_ckpt.{suffix}.gz"
        return ArrayFile(self.where, full, self.sizes[full], dtype, dimensions)

    def array(self, name: str, suffix: int) -> np.ndarray:
        """A small array, whole."""
        with self.file(name, suffix) as file:
            found = np.empty(file.shape, file.dtype)
            file.fill(found)
            file.finish()
        return found

    def columns(self, dump: Dump) -> dict[str, np.ndarray]:
        """Everything but frames, of the dump's entries in the order in which they happened."""
        return {name: self.array(name, dump.suffix)[dump.slots] for name in COLUMNS}

    def name(self, name: str, suffix: int) -> str:
        return f"{self.where.address}/{TYPES[name][0]}_ckpt.{suffix}.gz"

    def refusal(self, name: str, suffix: int, what: str) -> DataError:
        return DataError(f"{self.name(name, suffix)} {what}; {MEND}")


def is_log(path: str | Path) -> bool:
    """Whether this looks like a run's logs, whole or not."""
    folder = Path(path) / FOLDER
    folder = folder if folder.is_dir() else Path(path)
    return folder.is_dir() and any(FILE.fullmatch(file.name) for file in folder.glob("*_ckpt.*.gz"))


def leading_padding(log: Log, dump: Dump) -> int:
    """With how many entries a dump begins that are zero in all they hold, as padding is."""
    count = min(PADDING, dump.fresh)
    frames = np.empty((count, *dump.frame), np.uint8)
    with log.file("observation", dump.suffix) as file:
        file.fill(frames)
    used = frames.any(axis=(1, 2))
    for name in COLUMNS:
        used |= log.array(name, dump.suffix)[:count] != 0
    return int(np.argmax(used)) if used.any() else count
