"""Writing of long arrays as shards of about equal size; a thread writes one while the next one is filled."""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from optimist.data.disk.manifest import Shard
from optimist.data.disk.shard import write_shard
from optimist.data.rules.joining import Piece, at_ends, if_known, joined, with_last_frame
from optimist.data.transition import NEXT, Spec

SHARD_BYTES, SHARD_STEPS = 2**26, 2**20  # the most of each in a shard: a writer has four shards in memory

FEW_STEPS = 4096  # pieces with fewer are joined early: a thousand arrays of one row take a hundredfold memory


def steps_per_shard(spec: Spec) -> int:
    return max(1, min(SHARD_STEPS, SHARD_BYTES // spec.frame_bytes))


class ShardStream:
    """Writes the pieces of one lane after the other; lists its shards at the end, and writes no manifest."""

    def __init__(self, folder: Path, spec: Spec, first_shard: int, shard_steps: int | None = None):
        self.folder, self.spec, self._first = folder, spec, first_shard
        self._limit = shard_steps or steps_per_shard(spec)
        self._closed: list[Piece] = []  # lanes, or parts of lanes, for the next shard
        self._pieces: list[Piece] = []  # of the lane that is being filled
        self._closed_steps = self._steps = 0  # of both
        self._lane = 0
        self._shards: list[Future[Shard]] = []
        self.has_next_masks = False  # in a shard that was written
        self._thread = ThreadPoolExecutor(1, "shards")

    def begin(self, lane: int) -> None:
        """The next pieces are the first of this lane."""
        self._lane = lane

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
        columns["lane"] = np.full(steps, self._lane, np.int32)
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
