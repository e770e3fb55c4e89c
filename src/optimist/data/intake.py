"""Writing of a log into a dataset folder by whole arrays: the way in of every log that is not recorded step
by step."""

import contextlib
import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optimist.data.disk import manifest as manifests
from optimist.data.disk.appending import APPENDED, appended, begun_with, check_is_new, to_extend
from optimist.data.disk.files import remove, write_whole
from optimist.data.disk.lock import APPENDING, LOCK, clean_up, discard_held, writing
from optimist.data.disk.manifest import Manifest, Shard
from optimist.data.disk.shard import write_shard
from optimist.data.machine import with_home
from optimist.data.rules.joining import Joining, LeftOut, Piece, at_ends, if_known, joined, with_last_frame
from optimist.data.rules.log import FRAMES, Part
from optimist.data.transition import NEXT, OF_STEPS, OPTIONAL, Spec
from optimist.data.views import View, episodes_in_words
from optimist.errors import DataError, OptimistError

NEEDED = ("observations", "actions", "rewards", "terminals")
AFTER = ("next_observations", "next_allowed_actions")  # every part of a log must have them, or none
KNOWN = tuple(dict.fromkeys((*NEEDED, "next_observations", *(column.plural for column in OF_STEPS))))
UNFINISHED = "it was interrupted; remove the folder, or import again with --restart"
SHARD_BYTES, SHARD_STEPS = 2**26, 2**20  # the most of each in a shard: a writer has four shards in memory
FEW_STEPS = 4096  # pieces with fewer are joined early: a thousand arrays of one row take a hundredfold memory


def steps_per_shard(spec: Spec) -> int:
    return max(1, min(SHARD_STEPS, SHARD_BYTES // spec.frame_bytes))


@dataclass(frozen=True)
class Counts:
    """The number of steps and episodes that were read or written."""

    steps: int
    episodes: int
    left_out: LeftOut = LeftOut()

    def lines(self) -> list[str]:
        lost = [f"left out: {self.left_out}"] if self.left_out.steps else []
        return [f"{self.steps:,} steps in {episodes_in_words(self.episodes)}", *lost]


class Intake:
    """Writes steps into a new dataset folder, or with `append` as new lanes of an existing one.

        with Intake("log", spec, provenance={"source": "shop"}) as intake:
            for part in parts:
                intake.add({"observations": ..., "actions": ..., "rewards": ..., "terminals": ..., ...})
        print(intake.counts)

    Whole shards are written at a time, and memory stays within a few of them. The manifest names the steps at
    the end and not before. After an error the folder is as it was; after a crash a new folder is refused by
    `Dataset.open`, and a folder that was appended to holds its earlier steps."""

    def __init__(
        self,
        folder: str | Path,
        spec: Spec,
        *,
        provenance: Mapping[str, Any] | None = None,
        append: bool = False,
        restart: bool = False,
        shard_steps: int | None = None,
        is_padded: bool = False,
        unknown_masks: bool = False,
        source: View | None = None,  # the dataset that the steps are from
    ):
        self.folder, self.spec, self._source = Path(with_home(folder)), spec, source
        self.counts = Counts(0, 0)
        self._is_padded = is_padded  # rows without successors are not steps: they hold final observations
        self._given_left_out = LeftOut.said(provenance or {})
        self._is_new_folder = not self.folder.exists()
        extended = partial(to_extend, self.folder, spec, provenance or {}, append, restart)
        if not os.path.lexists(self.folder / manifests.NAME):
            extended()  # refuses a folder of something else before there is a lock in it
        self._lock = writing(self.folder)
        try:
            existing = extended()
            if existing is None:
                discard_held(self.folder)
                begun = begun_with(provenance or {}, source if append else None)
                self._manifest = Manifest(spec, {**begun, "unfinished": UNFINISHED})
                self._manifest.write(self.folder)
            else:
                self._manifest = existing
                if source is not None:
                    check_is_new(self.folder, existing, source)
                clean_up(self.folder, existing)
                write_whole(self.folder / APPENDING, b"an append is being written, or was interrupted\n")
        except BaseException:
            self._lock.release()
            raise
        self._appends = existing is not None
        self._first_lane = self._manifest.next_lane
        self._steps = self._lane = self._lane_start = 0  # of the steps: the number of the lane, its first one
        self._stream = _ShardStream(self.folder, spec, len(self._manifest.shards), shard_steps)
        self._stream.lane = self._first_lane
        # In a file of ours a next mask without actions is one that is not known.
        self._joining = Joining(spec, unknown_masks=unknown_masks)
        self._rows_at_once = shard_steps or steps_per_shard(spec)
        self._is_first = True  # no step was added yet
        self._after: set[str] | None = None  # which of AFTER were given

    def add(self, columns: Mapping[str, ArrayLike | None]) -> None:
        """Add rows in time order; they continue after those of the last call.

        Each row has `observations`, `actions` (0 to n - 1, or vectors), `rewards`, `terminals` and perhaps
        `truncations`, `next_observations`, `probabilities`, `allowed_actions` and `next_allowed_actions`, of
        which the last need next_observations. Without next_observations the successor of a row is the
        observation of the next row; a truncated row, and the last one, has none and is dropped. A terminal
        row then gets a black final observation, which has no effect. `frames` may stand for both columns of
        observations: those of the rows, with the final one of every episode after its last row."""
        rows = {name: np.asarray(values) for name, values in columns.items() if values is not None}
        if FRAMES in rows:
            return self._add(rows)
        unknown = sorted(set(columns) - set(KNOWN))
        if unknown or any(name not in rows for name in NEEDED):
            raise DataError(
                f"columns {', '.join(map(str, columns))}: give {', '.join(KNOWN)}; the first 4 are needed"
            )
        count = len(rows["rewards"]) if rows["rewards"].ndim else -1
        for name, array in rows.items():
            if not array.ndim or len(array) != count:
                raise DataError(f"{name} have shape {array.shape}: give {count} rows, one for each reward")
        after = {name for name in AFTER if name in rows}
        if self._after is not None and self._after != after:
            name = min(self._after ^ after)
            raise DataError(f"every part of a log must have {name}, or none may: give the same")
        self._after = after
        for start in range(0, count, self._rows_at_once):
            self._add({name: array[start : start + self._rows_at_once] for name, array in rows.items()})

    def _add(self, rows: Part) -> None:
        piece = self._joining.add(rows)
        self.extend(piece, np.arange(self._steps, self._steps + len(piece)))
        self._steps += len(piece)

    def next_lane(self) -> None:
        """The next rows follow a gap: what came after the last row is not known."""
        self._stream.end(self._joining.end())
        if self._steps > self._lane_start:  # rows that leave no step make no lane
            self._lane, self._lane_start = self._lane + 1, self._steps
            self._stream.lane = self._first_lane + self._lane

    def begin_lane(self, number: int) -> None:
        """The next steps are the first of this lane; its number counts from the first new lane."""
        self._stream.lane = self._first_lane + number

    def extend(self, piece: Piece, time: np.ndarray) -> None:
        """Add steps that are known to be right, such as those of another dataset, at these times, counted
        from the first new step. All steps must have the same optional columns, those of the folder too; next
        masks may be new to it, or be missing."""
        names = tuple(name for name in OPTIONAL if name in piece.steps and name != NEXT)
        if self._is_first and not self._appends:
            self._manifest.columns = names
        self._is_first = False
        before = tuple(name for name in self._manifest.columns if name != NEXT)
        if names != before:
            held, given = (", ".join(each) or "none" for each in (before, names))
            raise DataError(
                f"all steps must have the same optional columns: those in {self.folder} have {held}, and "
                f"these have {given}; choose a new folder, or give the same"
            )
        self._stream.extend(Piece(piece.frames, {**piece.steps, "time": self._manifest.steps + time}))

    def end_lane(self, last_frame: np.ndarray | None) -> None:
        """End a lane; the frame is that after its last step if the episode has no end."""
        self._stream.end(last_frame)

    def close(self) -> Counts:
        """Write the rest and make the steps part of the dataset; returns the counts of what was written."""
        self._stream.end(self._joining.end())
        left_out = LeftOut() if self._is_padded else self._joining.left_out
        shards = self._stream.finish()
        before = self._manifest
        if not shards:
            raise DataError("no transition is left: give next_observations, or longer episodes")
        provenance = {name: value for name, value in before.provenance.items() if name != "unfinished"}
        if self._appends:
            # The players of these steps are not those of the recording before.
            new = [self._source.fingerprint] if self._source else []
            provenance[APPENDED] = [*appended(provenance), *new] or True
            provenance = self._given_left_out.noted_in(provenance)
        columns = before.columns
        if self._stream.has_next_masks and NEXT not in columns:
            columns = (*columns, NEXT)
        whole = Manifest(self.spec, left_out.noted_in(provenance), [*before.shards, *shards], columns)
        whole.write(self.folder)
        remove(self.folder / APPENDING)
        self._lock.release()
        steps, episodes = whole.steps - before.steps, whole.episodes - before.episodes
        self.counts = Counts(steps, episodes, left_out)
        return self.counts

    def cancel(self) -> None:
        """Remove what was written; the folder is then as it was."""
        self._stream.cancel()
        if self._appends:
            clean_up(self.folder, self._manifest)
        else:
            discard_held(self.folder)
        self._lock.release()
        if self._is_new_folder:
            remove(self.folder / LOCK)
            self.folder.rmdir()

    def __enter__(self) -> "Intake":
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        try:
            if problem is None:
                self.close()
        except BaseException as raised:
            problem = raised
            raise
        finally:
            if problem is not None:
                with contextlib.suppress(OptimistError, OSError):  # the first error is the one to report
                    self.cancel()


class _ShardStream:
    """Writes the pieces of one lane after the other as shards of about equal size; a thread writes one while
    the next one is filled. It lists its shards at the end, and writes no manifest."""

    def __init__(self, folder: Path, spec: Spec, first_shard: int, shard_steps: int | None = None):
        self.folder, self.spec, self._first = folder, spec, first_shard
        self._limit = shard_steps or steps_per_shard(spec)
        self._closed: list[Piece] = []  # lanes, or parts of lanes, for the next shard
        self._pieces: list[Piece] = []  # of the lane that is being filled
        self._closed_steps = self._steps = 0  # of both
        self.lane = 0  # of the next pieces
        self._shards: list[Future[Shard]] = []
        self.has_next_masks = False  # in a shard that was written
        self._thread = ThreadPoolExecutor(1, "shards")

    def extend(self, piece: Piece) -> None:
        """Add steps with all columns except the lane."""
        if not len(piece.frames):
            return
        self._pieces.append(piece)
        self._steps += len(piece)
        while len(self._pieces) > 1 and len(self._pieces[-2]) <= len(self._pieces[-1]) < FEW_STEPS:
            self._pieces[-2:] = [joined(self._pieces[-2:])]
        # More steps than fit: the frame after the last one of a shard is then known.
        while self._closed_steps + self._steps > self._limit:
            if self._closed_steps < self._limit:
                self._close_block(self._limit - self._closed_steps)
            self._write()

    def end(self, last_frame: np.ndarray | None) -> None:
        """End the lane; the frame is that after its last step if the episode has no end."""
        if not self._steps:
            return
        if last_frame is not None:
            self._pieces = with_last_frame(self._pieces, last_frame)
        self._close_block(self._steps)

    def finish(self) -> list[Shard]:
        """Write the rest; returns all shards."""
        if self._closed:
            self._write()
        shards = [shard.result() for shard in self._shards]
        self._thread.shutdown()
        return shards

    def cancel(self) -> None:
        """Wait for the thread, whatever its result; nothing is written afterwards."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _close_block(self, steps: int) -> None:
        """Move the first steps of this lane into the next shard."""
        whole = joined(self._pieces)
        ended = whole.steps["terminal"] | whole.steps["truncated"]
        closed, is_open = int(ended[:steps].sum()), not ended[steps - 1]
        frames = steps + closed
        rest = Piece(whole.frames[frames:], {name: c[steps:] for name, c in whole.steps.items()})
        ends_lane = [-1] if not len(rest) else []
        columns = at_ends({name: c[:steps] for name, c in whole.steps.items()}, ends_lane)
        columns["lane"] = np.full(steps, self.lane, np.int32)
        self._closed.append(Piece(whole.frames[: frames + is_open], columns))
        self._pieces = [rest] if len(rest) else []
        self._closed_steps, self._steps = self._closed_steps + steps, self._steps - steps

    def _write(self) -> None:
        """Start writing the closed blocks as a shard, after the one before it is on disk."""
        if self._shards:
            self._shards[-1].result()
        number = self._first + len(self._shards)
        self._shards.append(self._thread.submit(self._written, number, self._closed))
        self._closed, self._closed_steps = [], 0

    def _written(self, number: int, pieces: list[Piece]) -> Shard:
        whole = joined(pieces)
        columns = if_known(whole.steps)
        self.has_next_masks |= NEXT in columns
        return write_shard(self.folder, number, columns, whole.frames, self.spec)


def discard_unfinished(folder: Path) -> None:
    """Remove what an interrupted import left in a folder, and nothing else."""
    if not os.path.lexists(folder / manifests.NAME) or "unfinished" not in manifests.read(folder).provenance:
        return
    with writing(folder):
        discard_held(folder)


def copy_into(intake: Intake, view: View) -> None:
    """Write the steps of a view lane by lane, in parts; the order of time over all lanes is kept."""
    if not len(view):
        raise DataError("there is no transition to save: the view is empty")
    timeline, at_once = view.timeline, steps_per_shard(view.spec)
    lane = np.searchsorted(timeline.lane_starts, view.starts, side="right") - 1  # of each range
    first_ranges = np.flatnonzero(np.diff(lane, prepend=-1))
    times = None
    if len(first_ranges) > 1:  # the place of each step in the order of time over all lanes
        order = np.argsort(timeline.time[view.steps()], kind="stable")
        times = np.empty_like(order)
        times[order] = np.arange(len(order))
    borders = [*view.offsets[first_ranges].tolist(), len(view)]
    for number, (start, stop) in enumerate(pairwise(borders)):
        intake.begin_lane(int(timeline.lanes[lane[first_ranges[number]]]))
        for first in range(start, stop, at_once):
            positions = np.arange(first, min(first + at_once, stop))
            piece = _piece(view, positions)
            intake.extend(piece, positions if times is None else times[positions])
        goes_on = not (piece.steps["terminal"][-1] or piece.steps["truncated"][-1])
        last = view.steps_at(positions[-1:])
        intake.end_lane(timeline.frames(timeline.frame_of(last) + 1)[0] if goes_on else None)


def _piece(view: View, positions: np.ndarray) -> Piece:
    """These steps, of which a time limit truncated some, and the view others, by a cut. The last episode of a
    lane may have no end, as in the recording."""
    timeline, steps = view.timeline, view.steps_at(positions)
    columns = {name: column[steps] for name, column in timeline.columns.items()}
    ends_range, ends_lane = np.isin(positions + 1, view.offsets[1:]), np.isin(steps + 1, timeline.lane_stops)
    columns["truncated"] |= ends_range & ~columns["terminal"] & ~ends_lane
    if timeline.allowed is not None:
        columns[NEXT] = timeline.allowed_after(steps)  # the row after a cut is not saved
    frame = timeline.frame_of(steps)
    ended = np.flatnonzero(columns["terminal"] | columns["truncated"])
    return Piece(timeline.frames(np.insert(frame, ended + 1, frame[ended] + 1)), columns)
