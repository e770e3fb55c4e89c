"""The one pass over the frames of DQN Replay logs: each goes to the shard that the plan has for it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from optimist.data.disk.manifest import Manifest
from optimist.data.formats.assembly import Draft, Writers
from optimist.data.formats.dqn_replay.layout import Log
from optimist.data.formats.dqn_replay.plan import Lane, Piece, Plan, padding_mask
from optimist.errors import DataError

BYTES_AT_ONCE = 1 << 21  # of frames; what was just inflated is still in the cache when it is copied

Progress = Callable[[int, int], None]  # entries read, entries in all


class Writing:
    """Adds to a manifest the windows that it does not have yet."""

    def __init__(self, log: Log, plan: Plan, folder: Path, manifest: Manifest, shard_steps: int):
        self.log, self.plan, self.folder, self.manifest = log, plan, folder, manifest
        self.shard_steps = shard_steps
        self._drafts: dict[int, Draft] = {}
        self._sent: set[int] = set()
        self._writers = Writers(folder)

    def run(self, progress: Progress | None) -> None:
        pieces = self.plan.pieces
        total, before = sum(piece.dump.fresh for piece in pieces), 0
        try:
            for number, piece in enumerate(pieces):
                if self._is_needed(number):
                    for rows in Window(self, piece).read():
                        if progress:
                            progress(before + min(rows, piece.dump.fresh), total)
                    self._commit(number + 1)
                before += piece.dump.fresh
        finally:
            self._writers.close()
        if self.manifest.steps != self.plan.steps:
            raise DataError(f"{self.folder} was changed while it was written; remove it and import again")

    def _is_needed(self, number: int) -> bool:
        """Whether this window was not imported yet, or holds frames of a shard that was not complete."""
        if number >= self.manifest.provenance["windows_imported"]:
            return True
        lane, after = self.plan.pieces[number].lane, self.plan.pieces[number + 1 :]
        goes_on = after and after[0].lane is lane
        stop = lane.first_step + after[0].entries if goes_on else lane.stop
        return stop > self.manifest.steps

    def _commit(self, windows: int) -> None:
        """Name what is complete in the manifest; a crash before this loses the window and nothing else."""
        self.manifest.shards.extend(self._writers.finished(len(self.manifest.shards)))
        done = max(windows, self.manifest.provenance["windows_imported"])
        self.manifest.provenance = {**self.manifest.provenance, "windows_imported": done}
        if done == len(self.plan.pieces):
            self.manifest.provenance.pop("unfinished", None)
        self.manifest.write(self.folder)

    def drafts(self, lane: Lane, first: int, last: int) -> list[Draft]:
        """The drafts of a lane that want something about the steps `first` to `last`."""
        lowest = max(0, first - lane.first_step - 1) // self.shard_steps
        highest = min((last - lane.first_step) // self.shard_steps, lane.shards(self.shard_steps) - 1)
        numbers = range(lane.first_shard + lowest, lane.first_shard + highest + 1)
        done = len(self.manifest.shards)
        return [
            self._draft(lane, number) for number in numbers if number >= done and number not in self._sent
        ]

    def _draft(self, lane: Lane, number: int) -> Draft:
        if number not in self._drafts:
            first = lane.first_step + (number - lane.first_shard) * self.shard_steps
            stop = min(first + self.shard_steps, lane.stop)
            self._drafts[number] = Draft(number, lane.number, first, stop, self.manifest.spec)
        return self._drafts[number]

    def send(self, draft: Draft) -> None:
        self._sent.add(draft.number)
        self._writers.write(self._drafts.pop(draft.number))


class Window:
    """The entries of one dump that are steps, numbered; arrays in the order in which they happened."""

    def __init__(self, writing: Writing, piece: Piece):
        self.writing, self.dump, self.lane = writing, piece.dump, piece.lane
        columns = writing.log.columns(self.dump)
        is_padding, _ = padding_mask(columns["terminal"], piece.padding)
        self.padding = self.dump.slots[is_padding]
        self.slot = self.dump.slots[~is_padding]
        action, reward, terminal = (columns[name][~is_padding] for name in ("action", "reward", "terminal"))
        ended = piece.ended + np.cumsum(terminal, dtype=np.int64) - terminal
        self.first = self.lane.first_step + piece.entries
        self.position = piece.entries + ended + np.arange(len(ended))
        for draft in self._drafts(0, len(self.slot)):
            rows = slice(*np.clip([draft.first - self.first, draft.stop - self.first], 0, len(self.slot)))
            if rows.start < rows.stop:
                where = (self.first + rows.start, self.position[rows.start])
                draft.describe(*where, action[rows], reward[rows], terminal[rows])

    def _drafts(self, start: int, stop: int) -> list[Draft]:
        return (
            self.writing.drafts(self.lane, self.first + start, self.first + stop - 1) if start < stop else []
        )

    def read(self):
        """Read the frames to the file's verified end, and put each where it belongs; yields rows read."""
        dump = self.dump
        # The entry in the last slot happened before all others, and comes after them in the file.
        joint = int(dump.joined and bool(len(self.slot)) and self.slot[0] == dump.capacity - 1)
        in_order = self.slot[joint:]
        rows = max(1, BYTES_AT_ONCE // (dump.frame[0] * dump.frame[1]))
        block = np.empty((min(rows, dump.capacity), *dump.frame), np.uint8)
        with self.writing.log.file("observation", dump.suffix) as file:
            for start in range(0, dump.capacity, rows):
                frames = block[: min(rows, dump.capacity - start)]
                file.fill(frames)
                self._check_padding(start, frames)
                begin, end = joint + np.searchsorted(in_order, [start, start + len(frames)])
                self._place(int(begin), int(end), start, frames)
                yield start + len(frames)
            file.finish()
        if joint:
            self._place(0, 1, dump.capacity - len(frames), frames)

    def _check_padding(self, start: int, frames: np.ndarray) -> None:
        rows = self.padding[(self.padding >= start) & (self.padding < start + len(frames))] - start
        bright = frames[rows].any(axis=(1, 2))
        if bright.any():
            name = self.writing.log.name("observation", self.dump.suffix)
            row = start + int(rows[np.argmax(bright)])
            raise DataError(
                f"{name} row {row}: the frame should be padding before an episode, but is not black; "
                "these logs are of another kind, or damaged"
            )

    def _place(self, begin: int, end: int, start: int, frames: np.ndarray) -> None:
        """Hand the frames of these entries to their drafts; `start` is the slot of the first frame."""
        for draft in self._drafts(begin, end):
            low = max(draft.first - self.first, begin)
            high = min(draft.stop - self.first + draft.ends_open, end)
            shift = self.position[low:high] - self.slot[low:high]  # constant between two episodes
            borders = [low, *(low + 1 + np.flatnonzero(np.diff(shift))).tolist(), high]
            for one, other in zip(borders[:-1], borders[1:], strict=True):
                if one < other:
                    slots = slice(self.slot[one] - start, self.slot[other - 1] + 1 - start)
                    draft.place(self.position[one], frames[slots, ..., None])
            if draft.complete:
                self.writing.send(draft)
