"""The timeline of a dataset folder: where each step and each frame is in the shards."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from optimist.data import machine
from optimist.data.disk.codec import Decoder
from optimist.data.disk.files import File, check_hash, check_length, checked_path
from optimist.data.disk.manifest import Manifest, Shard
from optimist.data.disk.shard import MEND, mapped, open_frames, read_steps
from optimist.data.timeline import Masks, Timeline
from optimist.data.transition import COLUMNS, NEXT, OF_STEPS, Column, Columns, Spec
from optimist.errors import DataError

THREADS = min(4, os.cpu_count() or 1)  # hashing and decompressing release the interpreter lock
BYTES_WORTH_THREADS = 2**19  # smaller requests are faster without threads
MEMORY = machine.memory()
FEWEST_BYTES_PER_STEP = 16  # a steps file with fewer does not hold the declared steps
(TIME,) = (column for column in COLUMNS if column.name == "time")
Maps = dict[str, Any]  # by the names of the files
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Layout:
    """The place of each block of each shard, in its files and on the timeline. Arrays in manifest order."""

    shard: np.ndarray
    lane: np.ndarray
    steps: np.ndarray
    frames: np.ndarray  # on the timeline, without the spare last frame of a continued block
    file_step: np.ndarray
    file_frame: np.ndarray
    timeline_step: np.ndarray
    timeline_frame: np.ndarray

    @classmethod
    def of(cls, manifest: Manifest) -> "Layout":
        rows = [
            (number, block.lane, block.steps, block.frames, block.ends_open)
            for number, shard in enumerate(manifest.shards)
            for block in shard.blocks
        ]
        shard, lane, steps, stored, ends_open = np.array(rows, np.int64).reshape(-1, 5).T
        order = np.lexsort((shard, lane))
        continued = np.zeros(len(rows), bool)
        continued[order[:-1]] = lane[order[1:]] == lane[order[:-1]]
        frames = stored - (ends_open.astype(bool) & continued)
        timeline_step, timeline_frame = _running_total(steps[order]), _running_total(frames[order])
        place = np.argsort(order)
        first = np.searchsorted(shard, shard)
        file_step, file_frame = (_running_total(n) - _running_total(n)[first] for n in (steps, stored))
        return cls(
            shard, lane, steps, frames, file_step, file_frame, timeline_step[place], timeline_frame[place]
        )

    def blocks(self, shard: int) -> slice:
        return slice(*np.searchsorted(self.shard, [shard, shard + 1]))


def _running_total(counts: np.ndarray) -> np.ndarray:
    return np.cumsum(counts) - counts


def _spread(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """starts[0], starts[0] + 1, ... (counts[0] of them), starts[1], ..."""
    return np.repeat(starts - _running_total(counts), counts) + np.arange(counts.sum())


def _read(folder: Path, file: File, held: Maps, read: Callable[[Any], Found]) -> Found:
    """Read a file, or its map if it was replaced since it was opened."""
    try:
        return read(None)
    except DataError:
        if file.file not in held or os.path.lexists(folder / file.file):
            raise
        return read(held[file.file])


class ShardFrames:
    """Frames in the memory-mapped shards of a folder, decoded on request.

    Before the first frame of a file is decoded, the whole file is compared with its hash. The checksums of
    compressed frames are not enough: they protect the pixels of a frame, but a damaged offset may lead to
    another intact frame, a swapped file holds only intact frames, and frames that are stored plain have no
    checksum. Each file is hashed once: the 8.5 GB of fifty million Atari steps take about half a minute of
    one slow core, spread over the first thousand batches."""

    def __init__(self, folder: Path, manifest: Manifest, layout: Layout, held: Maps):
        self.folder, self.manifest, self.layout = folder, manifest, layout
        self.frame_bytes = sum(shard.frames.bytes for shard in manifest.shards)
        self.step_bytes = sum(shard.steps.bytes for shard in manifest.shards)
        self._order = np.argsort(layout.timeline_frame)
        self._borders = layout.timeline_frame[self._order]
        self._held = held
        self._decoders: dict[int, Decoder] = {}
        self._opening = [threading.Lock() for _ in manifest.shards]  # one per shard: threads hash in parallel

    def _decoder(self, number: int) -> Decoder:
        """The decoder of a file, whose hash is checked at the first call, and its length at each."""
        if number not in self._decoders:
            with self._opening[number]:
                if number not in self._decoders:
                    shard = self.manifest.shards[number]
                    opened = partial(self._opened, shard)
                    self._decoders[number] = _read(self.folder, shard.frames, self._held, opened)
        decoder = self._decoders[number]
        check_length(decoder.name)
        return decoder

    def _opened(self, shard: Shard, held: Any) -> Decoder:
        check_hash(self.folder, shard.frames, held)
        decoder = open_frames(self.folder, shard.frames, shard.frame_rows, self.manifest.spec, held)
        decoder.check()
        return decoder

    def _empty(self, count: int) -> np.ndarray:
        """An array for this many frames; DataError if they exceed the memory, as a small forged file may."""
        spec = self.manifest.spec
        needed = count * spec.frame_bytes
        if needed > MEMORY:
            raise DataError(
                f"{self.folder}: {count:,} frames take {needed:,} bytes, more than this machine's memory; "
                "use a smaller batch, a view, or --feed compressed"
            )
        return np.empty((count, *spec.frame_shape), spec.frame_dtype)

    def take(self, indices: np.ndarray) -> np.ndarray:
        """The frames with these numbers; threads decode large requests."""
        frames = self._empty(len(indices))
        block = self._order[np.searchsorted(self._borders, indices, side="right") - 1]
        rows = self.layout.file_frame[block] + indices - self.layout.timeline_frame[block]
        shards = self.layout.shard[block]
        order = np.argsort(shards, kind="stable")
        borders = np.flatnonzero(np.diff(shards[order], prepend=-1, append=-1)).tolist()
        places = [order[start:stop] for start, stop in pairwise(borders)]
        groups = [(int(shards[each[0]]), each, rows[each]) for each in places]
        if frames.nbytes < BYTES_WORTH_THREADS or len(groups) < 2:
            self._fill(frames, groups)
        else:
            list(self._pool.map(partial(self._fill, frames), [groups[n::THREADS] for n in range(THREADS)]))
        return frames

    def _fill(self, frames: np.ndarray, groups: list[tuple[int, np.ndarray, np.ndarray]]) -> None:
        """Decode the frames of these shards: their places among the frames, and their rows in the file."""
        for shard, places, rows in groups:
            first, last = int(places[0]), int(places[-1])
            if last - first == len(places) - 1:  # adjacent, as the frames of a transition are
                self._decoder(shard).decode_into(frames[first : last + 1], rows)
            else:
                frames[places] = self._decoder(shard).decode(rows)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(THREADS, "frames")

    def decoded(self) -> np.ndarray:
        self._decoder(0)  # check the size of a frame before memory for all of them is allocated
        layout, frames = self.layout, self._empty(int(self.layout.frames.sum()))

        def decode(shard: int) -> None:
            blocks, decoder = layout.blocks(shard), self._decoder(shard)
            rows = _spread(layout.file_frame[blocks], layout.frames[blocks])
            places = _spread(layout.timeline_frame[blocks], layout.frames[blocks])
            for start in range(0, len(rows), decoder.rows_at_once):
                part = slice(start, start + decoder.rows_at_once)
                frames[places[part]] = decoder.decode(rows[part])

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(decode, range(len(self.manifest.shards))))
        return frames


def read_timeline(folder: Path, manifest: Manifest) -> Timeline:
    """The timeline of a dataset folder; reads and checks every steps file, and no frames."""
    manifest.check_complete(folder)
    if not manifest.shards:
        raise DataError(f"{folder} is empty: record into it first")
    for shard in manifest.shards:
        checked_path(folder, shard.frames)
        path = checked_path(folder, shard.steps)
        if shard.step_rows * FEWEST_BYTES_PER_STEP > shard.steps.bytes:
            raise DataError(f"{path} is too small for the {shard.step_rows} steps of the manifest; {MEND}")
    layout = Layout.of(manifest)
    # The maps of the last shard's files. A recording replaces them by longer ones, and a map keeps what the
    # manifest names.
    held = {file.file: mapped(folder, file) for file in manifest.shards[-1].files}
    columns = partial(_columns, folder, manifest, layout, held)
    numbers, first = np.unique(layout.lane, return_index=True)
    needed = [column for column in OF_STEPS if not column.is_optional or column.name in manifest.columns]
    timeline = Timeline(
        columns=columns(needed),
        actions=manifest.spec.actions,
        lanes=numbers.astype(np.int32),
        lane_starts=layout.timeline_step[first],
        clock=lambda: columns([TIME])["time"],
        source=ShardFrames(folder, manifest, layout, held),
    )
    if timeline.frame_count != layout.frames.sum():
        raise DataError(f"{folder}: steps and frames do not match; run `optimist data verify` on it")
    return timeline


def _columns(
    folder: Path, manifest: Manifest, layout: Layout, held: Maps, wanted: Sequence[Column]
) -> Columns:
    """These columns of all steps in timeline order; every byte of every steps file is checked."""
    spec, shards = manifest.spec, manifest.shards
    columns = {column.name: column.empty(int(layout.steps.sum()), spec) for column in wanted}

    def fill(number: int) -> None:
        blocks = layout.blocks(number)
        file, rows_there = shards[number].steps, shards[number].step_rows
        read = partial(read_steps, folder, file, rows_there, spec, manifest.columns)
        steps = _read(folder, file, held, read)
        for what, wrong in wrong_values(steps, spec).items():
            if wrong.any():
                raise DataError(
                    f"{folder / file.file} holds {what} in row {wrong.argmax()}; `optimist data verify` "
                    "lists all of them"
                )
        numbers = (layout.file_step[blocks], layout.timeline_step[blocks], layout.steps[blocks])
        parts = list(zip(*(array.tolist() for array in numbers), strict=True))
        for name, column in columns.items():
            rows = steps.get(name)
            for row, place, count in parts:
                column[place : place + count] = 0 if rows is None else rows[row : row + count]

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(fill, range(len(shards))))
    return columns


def wrong_values(steps: Columns, spec: Spec) -> dict[str, np.ndarray]:
    """The rows with impossible values, by the name of the problem."""
    outside = spec.outside(steps["action"])
    wrong = {
        "an action outside the spec": outside,
        "a reward that is not finite": ~np.isfinite(steps["reward"]),
    }
    if (probability := steps.get("probability")) is not None:
        wrong["a probability that is not above 0 and at most 1"] = ~((probability > 0) & (probability <= 1))
    if (allowed := steps.get("allowed")) is not None:
        inside = np.where(outside, 0, steps["action"])
        wrong["an action that its mask does not allow"] = ~Masks(allowed, spec.actions).allow(inside)
    if (after := steps.get(NEXT)) is not None:
        beyond = 0xFF >> (spec.actions - 1) % 8 + 1  # the bits of the last byte that belong to no action
        wrong["a mask of the next state that allows an action outside the spec"] = (after[:, -1] & beyond) > 0
    return wrong
