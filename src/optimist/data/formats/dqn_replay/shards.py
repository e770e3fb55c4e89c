"""Shards that are filled out of order, which a Recorder cannot do.

The frame in the last slot of a file is the earliest of its window.
"""

from bisect import bisect_right
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import pairwise
from pathlib import Path

import numpy as np

from optimist.data.disk.manifest import Manifest, Shard
from optimist.data.disk.shard import write_shard
from optimist.data.formats.dqn_replay.log import Log, entries
from optimist.data.formats.dqn_replay.plan import Lane, Piece, Plan
from optimist.data.transition import Spec
from optimist.errors import DataError

WRITERS = 2  # compressing releases the interpreter lock; each writer has the frames of one shard in memory

Progress = Callable[[int, int], None]  # entries read, entries in all


class Draft:
    """A shard in the making: the steps `first` to `stop` of one lane, not all of which have been read.

    Positions count frames along the lane, including the black final frame of each episode."""

    def __init__(self, number: int, lane: Lane, first: int, stop: int, spec: Spec):
        self.number, self.lane, self.first, self.stop, self.spec = number, lane, first, stop, spec
        self.sent = self.ends_open = False  # open: it also holds the successor of its last step
        self._base = self._known = self._placed = 0  # base: the position of the first frame
        self._columns: list[tuple[np.ndarray, ...]] = []
        self._frames = np.empty(0, np.uint8)

    @property
    def complete(self) -> bool:
        """Whether every step has its observation, and the last step its successor if it needs one."""
        return self._known == self.stop - self.first and self._placed == self._known + self.ends_open

    def describe(self, position: int, columns: tuple[np.ndarray, ...]) -> None:
        """Add action, reward and terminal of the next steps, the first of which is at this position."""
        self._base = self._base if self._columns else position
        self._columns.append(columns)
        self._known += len(columns[0])
        self.ends_open = self._known == self.stop - self.first and not columns[2][-1]

    def place(self, position: int, frames: np.ndarray) -> None:
        """Add the frames of consecutive steps, the first of which is at this position."""
        if not len(self._frames):
            # Enough for episodes of one step each; memory that is never written is never used.
            shape = (2 * (self.stop - self.first) + 1, *self.spec.frame_shape)
            self._frames = np.zeros(shape, self.spec.frame_dtype)
        row = position - self._base
        self._frames[row : row + len(frames)] = frames
        self._placed += len(frames)

    def written(self, folder: Path) -> Shard:
        time, lane = np.arange(self.first, self.stop), self.lane.number
        action, reward, terminal = map(np.concatenate, zip(*self._columns, strict=True))
        steps = dict(
            lane=np.full(len(time), lane, np.int32),
            time=time,
            action=action,
            reward=reward,
            terminal=terminal.astype(bool),
            truncated=np.zeros(len(time), bool),
        )
        count = len(time) + int(terminal.sum()) + self.ends_open
        frames, self._frames, self._columns = self._frames[:count], self._frames[:0], []
        return write_shard(folder, self.number, steps, frames, self.spec)


class Writing:
    """Adds the windows that a manifest lacks. Shards are written in the background, few at a time, so that
    memory stays bounded."""

    def __init__(self, log: Log, made: Plan, folder: Path, manifest: Manifest, shard_steps: int):
        self.log, self.plan, self.folder, self.manifest = log, made, folder, manifest
        borders = [(lane, at) for lane in made.lanes for at in range(lane.first, lane.stop, shard_steps)]
        self._drafts = [
            Draft(number, lane, first, min(first + shard_steps, lane.stop), manifest.spec)
            for number, (lane, first) in enumerate(borders)
        ]
        self._firsts = [draft.first for draft in self._drafts]
        for draft in self._drafts[: len(manifest.shards)]:
            draft.sent = True
        self._pool = ThreadPoolExecutor(WRITERS)
        self._shards: dict[int, Future[Shard]] = {}

    def run(self, progress: Progress | None) -> None:
        total, before = sum(piece.dump.fresh for piece in self.plan.pieces), 0
        report = progress or (lambda done, total: None)
        try:
            for number, piece in enumerate(self.plan.pieces):
                if self._is_needed(number):
                    for rows in Window(self, piece).read():
                        report(before + min(rows, piece.dump.fresh), total)
                    self._commit(number + 1)
                before += piece.dump.fresh
        finally:
            self._pool.shutdown(wait=True, cancel_futures=True)
        if self.manifest.steps != self.plan.steps:
            raise DataError(f"{self.folder} was changed while it was written; remove it and import again")

    def _is_needed(self, number: int) -> bool:
        """Whether this window is not imported yet, or holds frames of an incomplete shard."""
        if number >= self.manifest.provenance["windows_imported"]:
            return True
        piece, after = self.plan.pieces[number], self.plan.pieces[number + 1 : number + 2]
        stop = after[0].first if after and after[0].lane is piece.lane else piece.lane.stop
        return stop > self.manifest.steps

    def _commit(self, windows: int) -> None:
        """Add the complete shards to the manifest and write it; a crash before this loses only the window."""
        while len(self.manifest.shards) in self._shards:
            self.manifest.shards.append(self._shards.pop(len(self.manifest.shards)).result())
        done = max(windows, self.manifest.provenance["windows_imported"])
        self.manifest.provenance = {**self.manifest.provenance, "windows_imported": done}
        if done == len(self.plan.pieces):
            self.manifest.provenance.pop("unfinished", None)
        self.manifest.write(self.folder)

    def drafts(self, lane: Lane, first: int, last: int) -> list[Draft]:
        """The unfinished drafts of a lane that need the steps `first` to `last`; a draft also needs the
        observation of the step after its last one."""
        low, high = bisect_right(self._firsts, first - 1) - 1, bisect_right(self._firsts, last)
        return [draft for draft in self._drafts[max(0, low) : high] if draft.lane is lane and not draft.sent]

    def send(self, draft: Draft) -> None:
        draft.sent = True
        for shard in self._shards.values():
            if shard.done():
                shard.result()  # raise a write error now, not at the end of the window
        unfinished = [shard for shard in self._shards.values() if not shard.done()]
        if len(unfinished) >= WRITERS:
            wait(unfinished, return_when=FIRST_COMPLETED)
        self._shards[draft.number] = self._pool.submit(draft.written, self.folder)


class Window:
    """The steps of one dump; arrays in time order."""

    def __init__(self, target: Writing, piece: Piece):
        self.target, self.dump, self.lane, self.first = target, piece.dump, piece.lane, piece.first
        found = entries(target.log, self.dump, piece.due)
        self.padding, self.slot = found.slots[found.is_padding], found.slots[~found.is_padding]
        count, terminal = len(self.slot), found.steps[-1]
        ended = piece.ended + np.cumsum(terminal, dtype=np.int64) - terminal
        self.position = self.first + np.arange(count) + ended
        for draft in self._drafts(0, count):
            rows = slice(*np.clip([draft.first - self.first, draft.stop - self.first], 0, count))
            if rows.start < rows.stop:
                draft.describe(self.position[rows.start], tuple(column[rows] for column in found.steps))

    def _drafts(self, start: int, stop: int) -> list[Draft]:
        last = self.first + stop - 1
        return self.target.drafts(self.lane, self.first + start, last) if start < stop else []

    def read(self):
        """Read all frames of the file and put each into its draft; yields the number of rows read."""
        dump = self.dump
        # The entry in the last slot is the earliest of the window, but the last in the file.
        joint = int(dump.joined and bool(len(self.slot)) and self.slot[0] == dump.capacity - 1)
        in_order = self.slot[joint:]
        for start, frames in self.target.log.frames(dump):
            self._check_padding(start, frames)
            begin, end = joint + np.searchsorted(in_order, [start, start + len(frames)])
            self._place(int(begin), int(end), start, frames)
            yield start + len(frames)
        if joint:
            self._place(0, 1, start, frames)

    def _check_padding(self, start: int, frames: np.ndarray) -> None:
        rows = self.padding[(self.padding >= start) & (self.padding < start + len(frames))] - start
        bright = frames[rows].any(axis=(1, 2))
        if bright.any():
            name = self.target.log.name("observation", self.dump.suffix)
            row = start + int(rows[np.argmax(bright)])
            raise DataError(
                f"{name} row {row}: the frame should be padding before an episode, but is not black; "
                "these logs are of another kind, or damaged"
            )

    def _place(self, begin: int, end: int, start: int, frames: np.ndarray) -> None:
        """Put the frames of these entries into their drafts; `start` is the slot of the first frame."""
        for draft in self._drafts(begin, end):
            low = max(draft.first - self.first, begin)
            high = min(draft.stop - self.first + draft.ends_open, end)
            shift = self.position[low:high] - self.slot[low:high]  # constant between two episodes
            for one, other in pairwise([low, *(low + 1 + np.flatnonzero(np.diff(shift))).tolist(), high]):
                if one < other:
                    slots = slice(self.slot[one] - start, self.slot[other - 1] + 1 - start)
                    draft.place(self.position[one], frames[slots, ..., None])
            if draft.complete:
                self.target.send(draft)
