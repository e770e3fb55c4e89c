"""Export of a dataset to logs in the layout of the public DQN Replay data, which its released readers open.

The format holds one sequence of whole episodes. It does not distinguish time-outs from ends of the game,
clips rewards, and drops the observation after an episode's last step. Only the last episode may be
unfinished; one extra entry then holds its last observation, so that an import returns the same steps.
"""

import shutil
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.lib import format as npy

from optimist.data.dataset import Dataset
from optimist.data.disk.files import TEMPORARY, make_folder, remove, stored_whole
from optimist.data.disk.lock import writing
from optimist.data.formats.dqn_replay.files import GZIP
from optimist.data.formats.dqn_replay.log import FOLDER, MOST_SLOTS, PADDING, STACK, TYPES
from optimist.data.transition import Spec
from optimist.errors import DataError, StorageError

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


@dataclass(frozen=True)
class Exported:
    """What was written, and what the format cannot hold."""

    steps: int
    episodes: int
    dumps: int
    bytes: int
    unfinished_left_out: int
    steps_left_out: int
    truncated_as_terminal: int
    rewards_clipped: int
    begun_late: int  # episodes of a view whose first steps are not in it

    def losses(self) -> list[str]:
        """One line for each kind of difference between the logs and the dataset."""
        said = {
            f"unfinished episodes left out, with {self.steps_left_out:,} steps": self.unfinished_left_out,
            "time-outs written as ends of the game": self.truncated_as_terminal,
            "rewards clipped to [-1, 1]": self.rewards_clipped,
            "episodes without their first steps, which are not in this view": self.begun_late,
        }
        return [f"{count:,} {what}" for what, count in said.items() if count]

    def lines(self) -> list[str]:
        size = f"{self.bytes / 2**20:,.1f} MiB"
        written = f"{self.steps:,} steps in {self.dumps} dumps, {size}"
        return [written, *(f"note: {loss}" for loss in self.losses())]


def write(
    dataset: Dataset,
    out: str | Path,
    options: WriteOptions = WriteOptions(),  # noqa: B008  (frozen)
) -> Exported:
    """Write a dataset or a view as `out/replay_logs`; the folder appears when it is complete."""
    _check(dataset.spec)
    stream, folder = Stream(dataset), Path(out) / FOLDER
    if folder.exists():
        raise DataError(f"{folder} exists already; export into another folder")
    with writing(folder.parent):
        return _export(stream, folder, options)


def _export(stream: "Stream", folder: Path, options: WriteOptions) -> Exported:
    partial = folder.with_name(folder.name + TEMPORARY)
    if partial.is_symlink():
        remove(partial)
    shutil.rmtree(partial, ignore_errors=True)
    make_folder(partial)
    capacity = options.capacity or min(PUBLISHED, len(stream) + 1)  # of a full file one slot is free
    dumps = list(_dumps(len(stream), capacity))
    for suffix, (added, counted) in enumerate(dumps):
        _write_dump(
            stream, partial, suffix, added=added, counted=counted, capacity=capacity, level=options.level
        )
    size = sum(path.stat().st_size for path in partial.iterdir())
    try:
        partial.rename(folder)
    except OSError as problem:
        raise StorageError(f"cannot make {folder}: {problem.strerror}; choose another folder") from problem
    return stream.summary(len(dumps), size)


def _check(spec: Spec) -> None:
    grey = spec.frame_dtype == "uint8" and len(spec.frame_shape) == 3 and spec.frame_shape[2] == 1
    if not (grey and spec.discrete):
        held = "HxWx1 uint8 frames and discrete actions"
        raise DataError(f"{spec.in_words()} do not fit these logs: they hold {held}")


def _dumps(entries: int, capacity: int) -> Iterator[tuple[int, int]]:
    """For each dump the number of entries added so far, and the value of its `add_count`."""
    yield from ((added, added) for added in range(capacity - 1, entries + 1, capacity))
    if entries % capacity != capacity - 1:
        yield entries, entries % capacity


class Stream:
    """The entries of the logs by their number: padding, the steps of whole episodes in the order of their
    ends, and the final observation of the last episode if it is unfinished."""

    def __init__(self, dataset: Dataset):
        self.timeline, self.spec, episodes = dataset.timeline, dataset.spec, dataset.episodes
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
        self._left_out = (max(0, len(unfinished) - 1), len(dataset) - int(self.lengths.sum()))
        begins = self.timeline.episode_starts[self.timeline.episode_of(self.starts)] == self.starts
        self._begun_late = int((~begins).sum())
        self._truncated = int((episodes.truncated & ~episodes.terminal).sum())

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
        found = np.zeros((len(entries), *self.spec.frame_shape[:2]), np.uint8)
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

    def summary(self, dumps: int, size: int) -> Exported:
        clipped = sum(
            int((np.abs(self.timeline.reward[start : start + length]) > 1).sum())
            for start, length in zip(self.starts, self.lengths, strict=True)
        )
        unfinished, steps = self._left_out
        return Exported(
            steps=int(self.lengths.sum()),
            episodes=len(self.lengths),
            dumps=dumps,
            bytes=size,
            unfinished_left_out=unfinished,
            steps_left_out=steps,
            truncated_as_terminal=self._truncated,
            rewards_clipped=clipped,
            begun_late=self._begun_late,
        )


def _write_dump(
    stream: Stream, folder: Path, suffix: int, *, added: int, counted: int, capacity: int, level: int
) -> None:
    """Write the contents of a ring of this capacity after `added` entries; unwritten slots are zero."""
    slots = np.arange(capacity)
    window, cursor = divmod(added, capacity)
    entries = slots + np.where(slots < cursor, window, window - 1) * capacity
    shape = (capacity, *stream.spec.frame_shape[:2])
    blocks = (stream.frames(entries[at : at + ROWS_AT_ONCE]) for at in range(0, capacity, ROWS_AT_ONCE))
    arrays = {
        **stream.columns(entries),
        "add_count": np.array(counted),
        "invalid_range": (cursor - 1 + np.arange(STACK + 1)) % capacity,
    }
    for name, array in arrays.items():
        _write_array(folder, name, suffix, array.shape, [array], level)
    _write_array(folder, "observation", suffix, shape, blocks, level)


def _write_array(
    folder: Path, name: str, suffix: int, shape: tuple[int, ...], blocks: Iterable[np.ndarray], level: int
) -> None:
    """Write a gzipped .npy file with numpy's header; the bytes are the same each time."""
    stem, dtype, _ = TYPES[name]
    header = BytesIO()
    npy.write_array_header_1_0(header, {"descr": dtype, "fortran_order": False, "shape": shape})
    deflate = zlib.compressobj(level, zlib.DEFLATED, GZIP)
    with stored_whole(folder / f"{stem}_ckpt.{suffix}.gz") as stream:
        stream.write(deflate.compress(header.getvalue()))
        for block in blocks:
            stream.write(deflate.compress(block.astype(dtype, copy=False).tobytes()))
        stream.write(deflate.flush())
