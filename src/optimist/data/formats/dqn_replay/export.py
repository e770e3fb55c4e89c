"""A dataset becomes logs in the layout of the public DQN Replay data, which its released readers open.

The format holds one stream of whole episodes: a time-out looks like an end, rewards are clipped, and the
observation after an episode's last step is not kept. Only the last episode may be unfinished; one more
entry then carries its last observation, so that an import gives back the same steps.
"""

import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.disk.files import TEMPORARY, make_folder, remove, stored_whole
from optimist.data.disk.lock import writing
from optimist.data.formats.dqn_replay.layout import FOLDER, PADDING, STACK, TYPES
from optimist.errors import DataError, StorageError

LEVEL = 6  # the public files have 9, which takes several times as long for a few percent
ROWS_AT_ONCE = 1024
GZIP = 31  # window bits that mean: with gzip's header and checksum


@dataclass(frozen=True)
class Exported:
    """What was written, and what the format could not hold."""

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
        """One line for each thing that is not in the logs as it is in the dataset."""
        said = {
            f"unfinished episodes left out, with {self.steps_left_out:,} steps": self.unfinished_left_out,
            "time-outs written as ends of the game": self.truncated_as_terminal,
            "rewards clipped to [-1, 1]": self.rewards_clipped,
            "episodes that begin late, because this view cuts them": self.begun_late,
        }
        return [f"{count:,} {what}" for what, count in said.items() if count]


def export_dqn_replay(
    dataset: Dataset, out: str | Path, *, capacity: int = 1_000_000, level: int = LEVEL
) -> Exported:
    """Write `out/replay_logs` from a dataset or a view; it appears when it is complete."""
    _check(dataset, capacity, level)
    stream = Stream(dataset)
    folder = Path(out) / FOLDER
    if folder.exists():
        raise DataError(f"{folder} is there already; export into another folder")
    with writing(folder.parent):
        return _export(stream, folder, capacity, level)


def _export(stream: "Stream", folder: Path, capacity: int, level: int) -> Exported:
    partial = folder.with_name(folder.name + TEMPORARY)
    if partial.is_symlink():
        remove(partial)
    shutil.rmtree(partial, ignore_errors=True)
    make_folder(partial)
    dumps = list(_dumps(len(stream), capacity))
    for suffix, (added, counted) in enumerate(dumps):
        _write_dump(stream, partial, suffix, added=added, counted=counted, capacity=capacity, level=level)
    size = sum(path.stat().st_size for path in partial.iterdir())
    try:
        partial.rename(folder)
    except OSError as problem:
        raise StorageError(f"cannot make {folder}: {problem.strerror}; choose another folder") from problem
    return stream.summary(len(dumps), size)


def _check(dataset: Dataset, capacity: int, level: int) -> None:
    spec = dataset.spec
    if spec.frame_dtype != "uint8" or len(spec.frame_shape) != 3 or spec.frame_shape[2] != 1:
        shape = "x".join(map(str, spec.frame_shape))
        raise DataError(f"{shape} {spec.frame_dtype} frames do not fit these logs: they hold HxWx1 uint8")
    if not spec.discrete:
        raise DataError("vector actions do not fit these logs: they hold discrete ones")
    if not PADDING + 2 <= capacity <= 1 << 24:
        raise DataError(f"a capacity of {capacity}: choose one from {PADDING + 2} to {1 << 24}")
    if not 0 <= level <= 9:
        raise DataError(f"a compression level of {level}: choose one from 0 to 9")


def _dumps(entries: int, capacity: int) -> Iterator[tuple[int, int]]:
    """How many entries had been added at each dump, and what its `add_count` says."""
    yield from ((added, added) for added in range(capacity - 1, entries + 1, capacity))
    if entries % capacity != capacity - 1:
        yield entries, entries % capacity


class Stream:
    """The entries of the logs by their number: padding, the steps of whole episodes in the order in which
    they ended, and the closing observation of the last one if it is unfinished."""

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
        """Which entries are not padding, with their timeline steps; and which of those are steps: a closing
        observation is not, it stands one after the last."""
        episode = np.searchsorted(self.borders, entries, side="right") - 1
        offset = entries - self.borders[episode] - PADDING
        real = (entries >= 0) & (offset >= 0)
        episode, offset = episode[real], offset[real]
        return real, self.starts[episode] + offset, offset < self.lengths[episode]

    def frames(self, entries: np.ndarray) -> np.ndarray:
        real, steps, is_step = self._places(entries)
        found = np.zeros((len(entries), *self.spec.frame_shape[:2]), np.uint8)
        before = steps - ~is_step  # the closing observation is the frame after its last step's
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
    """What a ring of this capacity holds after so many entries; slots never written are zero."""
    slots = np.arange(capacity)
    window, cursor = divmod(added, capacity)
    entries = slots + np.where(slots < cursor, window, window - 1) * capacity
    columns = stream.columns(entries)
    arrays = {
        **columns,
        "add_count": np.array(counted),
        "invalid_range": (cursor - 1 + np.arange(STACK + 1)) % capacity,
    }
    for name, array in arrays.items():
        stem, dtype, _ = TYPES[name]
        path = folder / f"{stem}_ckpt.{suffix}.gz"
        _write_array(path, array.astype(dtype), array.shape, dtype, level)
    blocks = (
        stream.frames(entries[start : start + ROWS_AT_ONCE]) for start in range(0, capacity, ROWS_AT_ONCE)
    )
    stem, dtype, _ = TYPES["observation"]
    shape = (capacity, *stream.spec.frame_shape[:2])
    _write_array(folder / f"{stem}_ckpt.{suffix}.gz", blocks, shape, dtype, level)


def _write_array(path: Path, blocks, shape: tuple[int, ...], dtype: str, level: int) -> None:
    """A gzipped .npy file as numpy writes it, in the same bytes each time."""
    deflate = zlib.compressobj(level, zlib.DEFLATED, GZIP)
    with stored_whole(path) as stream:
        stream.write(deflate.compress(_header(shape, dtype)))
        for block in [blocks] if isinstance(blocks, np.ndarray) else blocks:
            stream.write(deflate.compress(np.ascontiguousarray(block).reshape(-1).view(np.uint8).data))
        stream.write(deflate.flush())


def _header(shape: tuple[int, ...], dtype: str) -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    size = -(-(10 + len(text) + 1) // 64) * 64 - 10  # magic and header together fill multiples of 64 bytes
    return b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + text.ljust(size - 1).encode() + b"\n"
