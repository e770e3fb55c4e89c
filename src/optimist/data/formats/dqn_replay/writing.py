"""Export of a dataset to logs in the layout of the public DQN Replay data, which its released readers open.

The format holds one sequence of whole episodes. It does not distinguish time-outs from ends of the game,
clips rewards, and drops the observation after an episode's last step. Only the last episode may be
unfinished; one extra entry then holds its last observation, so that an import returns the same steps.
"""

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.disk.files import built_beside, make_folder, stored_whole
from optimist.data.disk.lock import writing
from optimist.data.formats._bytes import write_array
from optimist.data.formats._outgoing import Written
from optimist.data.formats.dqn_replay.dumps import FOLDER, MOST_SLOTS, PADDING, STACK, TYPES, Dump
from optimist.errors import DataError

ROWS_AT_ONCE = 1024
PUBLISHED = 1_000_000  # entries of each public file


@dataclass(frozen=True)
class WriteOptions:
    """Options of an export."""

    capacity: Annotated[
        int | None, "entries per file, to which each is padded; none: as many as there are, at most 1,000,000"
    ] = None
    # The public files have 9, which takes several times as long and saves a few percent.
    level: Annotated[int, "compression level of gzip, 0 to 9"] = 6

    def __post_init__(self) -> None:
        if self.capacity is not None and not PADDING + 2 <= self.capacity <= MOST_SLOTS:
            raise DataError(f"a capacity of {self.capacity}: choose one from {PADDING + 2} to {MOST_SLOTS}")
        if not 0 <= self.level <= 9:
            raise DataError(f"a compression level of {self.level}: choose one from 0 to 9")


def write(dataset: Dataset, out: str | Path, options: WriteOptions) -> Written:
    """Write a dataset or a view as `out/replay_logs`; the folder appears when it is complete."""
    spec = dataset.spec
    grey = spec.frame_dtype == "uint8" and len(spec.frame_shape) == 3 and spec.frame_shape[2] == 1
    if not (grey and spec.discrete):
        held = "HxWx1 uint8 frames and discrete actions"
        raise DataError(f"{spec.in_words()} do not fit these logs: they hold {held}")
    stream, folder = Stream(dataset), Path(out) / FOLDER
    if folder.exists():
        raise DataError(f"{folder} exists already; export into another folder")
    capacity = options.capacity or min(PUBLISHED, len(stream) + 1)  # of a full file one slot is free
    with writing(folder.parent), built_beside(folder) as partial:
        make_folder(partial)
        for suffix, (added, counted) in enumerate(_dumps(len(stream), capacity)):
            dump = Dump(suffix, added, capacity, stream.frame, added % capacity)
            _write_dump(stream, partial, dump, counted, options.level)
    return Written(int(stream.lengths.sum()), len(stream.lengths), tuple(stream.losses(dataset)))


def _dumps(entries: int, capacity: int) -> Iterator[tuple[int, int]]:
    """For each dump the number of entries added so far, and the value of its `add_count`."""
    yield from ((added, added) for added in range(capacity - 1, entries + 1, capacity))
    if entries % capacity != capacity - 1:
        yield entries, entries % capacity


class Stream:
    """The entries of the logs by their number: padding, the steps of whole episodes in the order of their
    ends, and the final observation of the last episode if it is unfinished."""

    def __init__(self, dataset: Dataset):
        self.timeline, episodes = dataset.timeline, dataset.episodes
        self.frame = (dataset.spec.frame_shape[0], dataset.spec.frame_shape[1])
        finished = episodes.terminal | episodes.truncated
        chosen = np.flatnonzero(finished)
        chosen = chosen[np.argsort(episodes.time[chosen], kind="stable")]
        unfinished = np.flatnonzero(~finished)
        self.open = bool(len(unfinished))
        if self.open:
            chosen = np.append(chosen, unfinished[np.argmax(episodes.time[unfinished])])
        self.starts, self.lengths = dataset.starts[chosen], episodes.lengths[chosen]
        rows = PADDING + self.lengths
        rows[-1] += self.open
        self.borders = np.concatenate([[0], np.cumsum(rows)])

    def __len__(self) -> int:
        return int(self.borders[-1])

    def _places(self, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which entries are not padding, their timeline steps, and which of those are steps. A final
        observation is not a step; it has the number after its episode's last step."""
        episode = np.searchsorted(self.borders, entries, side="right") - 1
        offset = entries - self.borders[episode] - PADDING
        real = (entries >= 0) & (offset >= 0)
        episode, offset = episode[real], offset[real]
        return real, self.starts[episode] + offset, offset < self.lengths[episode]

    def frames(self, entries: np.ndarray) -> np.ndarray:
        real, steps, is_step = self._places(entries)
        found = np.zeros((len(entries), *self.frame), np.uint8)
        before = steps - ~is_step  # a final observation is the frame after that of the last step
        found[real] = self.timeline.frames(before + self.timeline.episode_of(before) + ~is_step)[..., 0]
        return found

    def columns(self, entries: np.ndarray) -> dict[str, np.ndarray]:
        real, steps, is_step = self._places(entries)
        steps, rows = steps[is_step], np.flatnonzero(real)[is_step]
        action, reward, terminal = (np.zeros(len(entries), kind) for kind in ("<i4", "<f4", "|u1"))
        action[rows] = self.timeline.action[steps]
        reward[rows] = np.clip(self.timeline.reward[steps], -1, 1)
        terminal[rows] = self.timeline.terminal[steps] | self.timeline.truncated[steps]
        return {"action": action, "reward": reward, "terminal": terminal}

    def losses(self, dataset: Dataset) -> list[str]:
        """One line for each kind of difference between the logs and the dataset."""
        timeline, episodes = self.timeline, dataset.episodes
        clipped = sum(
            int((np.abs(timeline.reward[start : start + length]) > 1).sum())
            for start, length in zip(self.starts, self.lengths, strict=True)
        )
        steps = len(dataset) - int(self.lengths.sum())
        said = {
            f"unfinished episodes left out, with {steps:,} steps": len(dataset.starts) - len(self.starts),
            "time-outs written as ends of the game": (episodes.truncated & ~episodes.terminal).sum(),
            "rewards clipped to [-1, 1]": clipped,
            "episodes without their first steps, which are not in this view": (
                timeline.episode_starts[timeline.episode_of(self.starts)] != self.starts
            ).sum(),
        }
        return [f"{count:,} {what}" for what, count in said.items() if count]


def _write_dump(stream: Stream, folder: Path, dump: Dump, counted: int, level: int) -> None:
    """Write the contents of a ring after all entries added so far; unwritten slots are zero."""
    slots, capacity = np.arange(dump.capacity), dump.capacity
    window, cursor = divmod(dump.add_count, capacity)
    entries = slots + np.where(slots < cursor, window, window - 1) * capacity
    frames = (stream.frames(entries[at : at + ROWS_AT_ONCE]) for at in range(0, capacity, ROWS_AT_ONCE))
    invalid = (cursor - 1 + np.arange(STACK + 1)) % capacity
    arrays: dict[str, Iterable[np.ndarray]] = {
        **{name: [column] for name, column in stream.columns(entries).items()},
        "add_count": [np.array(counted, "<i8")],
        "invalid_range": [invalid.astype("<i8")],
    }
    for name, blocks in {**arrays, "observation": frames}.items():
        with (
            stored_whole(folder / f"{TYPES[name][0]}_ckpt.{dump.suffix}.gz") as file,
            gzip.GzipFile("", "wb", level, file, mtime=0) as packed,  # the bytes are the same each time
        ):
            write_array(packed, blocks, capacity if name == "observation" else None)  # type: ignore[arg-type]
