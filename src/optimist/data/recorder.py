"""Recording of every step of every lane, in shards that survive a crash."""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optimist.data.disk.codec import stored_frame_bytes
from optimist.data.disk.growing import GrowingFolder
from optimist.data.disk.reader import read_timeline
from optimist.data.disk.write_buffer import Buffer
from optimist.data.machine import with_home
from optimist.data.timeline import Masks, Timeline
from optimist.data.transition import Spec
from optimist.errors import DataError, StorageError

SHARD_STEPS, SHARD_ROWS = 16384, 1024  # the least of each in a shard; fewer rows if they exceed SHARD_BYTES
SHARD_BYTES = 2**26
WORTH_A_THREAD = 2**20  # bytes of frames; fewer are written before a second buffer is full
ROWS_AT_ONCE = 256  # rows that are read back together


class Recorder:
    """Appends the steps of `lanes` parallel environments to a dataset folder. Recording again into a folder
    adds new lanes, so that a lane is always one uninterrupted sequence of steps.

    Shards are cut by their number of rows alone. What `flush` writes of an unfinished shard is replaced by a
    longer version later, so equal steps give equal shards however often they were flushed.

    A thread writes a full buffer of images while a second buffer takes the next steps. If writing fails, the
    next call raises the error and records nothing; the call after that tries again with the kept buffer."""

    def __init__(
        self,
        path: str | Path,
        spec: Spec,
        *,
        lanes: int,
        provenance: dict[str, Any] | None = None,
        shard_steps: int | None = None,
    ):
        if shard_steps is None:
            shard_steps = usual_shard_steps(spec, lanes)
        if lanes < 1 or shard_steps < 1:
            raise DataError(f"{lanes} lanes in shards of {shard_steps} steps: both must be at least 1")
        self.path, self.spec, self.lanes = Path(with_home(path)), spec, lanes
        self._folder, self._closed = GrowingFolder(self.path, spec, provenance), False
        self._rows = max(1, shard_steps // lanes)
        self._buffer = Buffer(spec, lanes, self._rows)
        self._spare: Buffer | None = None
        self._handed_over: Buffer | None = None  # full; perhaps not yet on disk
        self._writing: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, "recorder")
        self._skipped = 0  # coming rows that are recorded already
        self._first_lane = self._folder.next_lane

    @property
    def steps(self) -> int:
        """All steps so far, including those of earlier sessions and those not yet flushed."""
        waiting = self._handed_over.filled if self._handed_over else 0
        return self._folder.whole_steps + (waiting + self._buffer.filled) * self.lanes

    @property
    def provenance(self) -> dict[str, Any]:
        """What the folder says of the origin of its steps."""
        return self._folder.manifest.provenance

    @property
    def shard_rows(self) -> int:
        """The number of steps of every lane in a full shard."""
        return self._rows

    @property
    def whole_steps(self) -> int:
        """The steps in shards that are written and will not grow."""
        return self._folder.whole_steps

    def go_on(self, steps: int) -> bool:
        """Continue the newest lanes from this step on; False if they do not reach back that far. Steps added
        up to the recording's end are skipped, because they are recorded already. The first new step must
        begin at the recorded frames; otherwise `add` raises DepartedError."""
        manifest = self._folder.manifest
        blocks = [block for shard in manifest.shards for block in shard.blocks]
        lanes = sorted({block.lane for block in blocks})[-self.lanes :]
        recorded = sum(block.steps for block in blocks if block.lane in lanes)
        newest = sorted(block.lane for block in manifest.shards[-1].blocks) if blocks else []
        behind = manifest.steps - steps
        if newest != lanes or len(lanes) != self.lanes or not 0 <= behind <= recorded:
            return False
        self._first_lane, self._skipped = lanes[0], behind // self.lanes
        self._take_up(lanes)
        return True

    def _take_up(self, lanes: list[int]) -> None:
        """Continue after the last steps of these lanes; an unfinished last shard is read back."""
        timeline = read_timeline(self.path, self._folder.manifest)
        last = np.append(timeline.lane_starts[1:], len(timeline))[np.searchsorted(timeline.lanes, lanes)] - 1
        counts = {block.steps for block in self._folder.manifest.shards[-1].blocks}
        rows = max(counts)
        if len(counts) > 1 or rows >= self._rows:
            goes_on = ~(timeline.terminal[last] | timeline.truncated[last])
            self._buffer.lead_to(timeline.frames(timeline.frame_of(last) + 1), goes_on)
            return
        _read_back(timeline, last + np.arange(1 - rows, 1)[:, None], self._buffer)
        self._folder.reopen_last()

    def add(
        self,
        observation: ArrayLike,
        action: ArrayLike,
        reward: ArrayLike,
        terminal: ArrayLike,
        truncated: ArrayLike,
        next_observation: ArrayLike,
        next_allowed: ArrayLike | None = None,
        allowed: ArrayLike | None = None,
    ) -> None:
        """Record one step of every lane; `next_observation` is the true successor, also at the end. Masks of
        the actions that could be chosen, (lanes, A), are given with every step or with none."""
        if self._closed:
            raise DataError(f"the recorder of {self.path} is closed: open another one to record more")
        if self._skipped:
            self._skipped -= 1
            return
        self._folder.check_masks(allowed is not None)
        if self._writing is None or self._writing.done():
            self._settle()
        if self._buffer.full:  # writing it failed last time
            self._hand_over()
        columns = (reward, terminal, truncated, next_observation, next_allowed, allowed)
        self._buffer.put(observation, action, *columns)
        if self._buffer.full:
            self._hand_over()

    def flush(self) -> None:
        """Write the steps in memory; every recorded step is on disk afterwards."""
        self._settle()
        if self.steps > self._folder.manifest.steps:
            self._write(self._buffer)
        if self._buffer.full:
            self._folder.end_shard()
            self._buffer.clear()

    def _hand_over(self) -> None:
        """Start writing the full buffer; at most two buffers are in memory."""
        if self._buffer.bytes < WORTH_A_THREAD:
            return self.flush()
        self._settle()
        following = self._spare or Buffer(self.spec, self.lanes, self._rows)
        following.continue_from(self._buffer)
        self._handed_over, self._buffer, self._spare = self._buffer, following, None
        self._writing = self._thread.submit(self._write, self._handed_over)

    def _settle(self) -> None:
        """Wait until the buffer that was handed over is on disk; if writing failed before, try again."""
        if self._handed_over is None:
            return
        try:
            if self._writing:
                self._writing.result()
            else:
                self._write(self._handed_over)
        except Exception:  # not KeyboardInterrupt: the thread would still be writing
            self._writing = None
            raise
        self._folder.end_shard()
        self._spare, self._handed_over, self._writing = self._handed_over, None, None

    def _write(self, buffer: Buffer) -> None:
        """Write this buffer as the shard after the whole ones; the buffer stays as it is."""
        steps = buffer.steps(self._first_lane, first_time=self._folder.whole_steps)
        self._folder.write(steps, buffer.frames())

    def close(self) -> None:
        """Flush and release the folder; if flushing fails, the recorder stays open and can try again."""
        self.flush()
        self._let_go()

    def _let_go(self) -> None:
        self._closed = True
        self._folder.release()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, StorageError):
            self._let_go()
        else:
            self.close()


def _read_back(timeline: Timeline, steps: np.ndarray, buffer: Buffer) -> None:
    """Put these recorded steps, (rows, lanes), into an empty buffer."""
    for first in range(0, len(steps), ROWS_AT_ONCE):
        part = steps[first : first + ROWS_AT_ONCE]
        frame = timeline.frame_of(part)
        shown, following = (timeline.frames(numbers) for numbers in (frame, frame + 1))
        columns = [timeline.action, timeline.reward, timeline.terminal, timeline.truncated]
        found = [shown, *(column[part] for column in columns), following]
        if (masks := timeline.allowed) is not None:
            found += [Masks(timeline.allowed_after(part), masks.actions)[:], masks[part]]
        for row in zip(*found, strict=True):
            buffer.put(*row)


def usual_shard_steps(spec: Spec, lanes: int) -> int:
    """The default length of a shard. It is longer for many lanes of small frames: the manifest has an entry
    for every lane of every shard, and is rewritten with each shard."""
    return max(SHARD_STEPS, min(SHARD_ROWS * lanes, SHARD_BYTES // stored_frame_bytes(spec)))
