"""Recording of every step of every lane, in shards that survive a crash."""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optimist.data.disk.appending import GrowingFolder
from optimist.data.disk.codec import stored_frame_bytes
from optimist.data.disk.reader import read_timeline
from optimist.data.machine import with_home
from optimist.data.rules.checks import ACCEPTED
from optimist.data.rules.joining import at_ends
from optimist.data.timeline import Masks
from optimist.data.transition import NEXT, OF_STEPS, Columns, Spec
from optimist.errors import DataError, StorageError

SHARD_STEPS, SHARD_ROWS = 16384, 1024  # the least of each in a shard; fewer rows if they exceed SHARD_BYTES
SHARD_BYTES = 2**26
WORTH_A_THREAD = 2**20  # bytes of frames; fewer are written before a second buffer is full
ROWS_AT_ONCE = 256  # rows that are read back together


class DepartedError(DataError):
    """A step's observation is not the next observation of the step before it."""


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
        self.shard_rows = max(1, shard_steps // lanes)  # the steps of every lane in a full shard
        self._buffer = _Buffer(spec, lanes, self.shard_rows)
        self._spare: _Buffer | None = None
        self._handed_over: _Buffer | None = None  # full; perhaps not yet on disk
        self._writing: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, "recorder")
        self._skipped = 0  # coming rows that are recorded already
        self._first_lane = self._folder.manifest.next_lane

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
        last = timeline.lane_stops[np.searchsorted(timeline.lanes, lanes)] - 1
        counts = {block.steps for block in self._folder.manifest.shards[-1].blocks}
        rows = max(counts)
        if len(counts) > 1 or rows >= self.shard_rows:
            goes_on = ~(timeline.terminal[last] | timeline.truncated[last])
            self._buffer.lead_to(timeline.frames(timeline.frame_of(last) + 1), goes_on)
            return
        steps = last + np.arange(1 - rows, 1)[:, None]
        for first in range(0, rows, ROWS_AT_ONCE):
            part = steps[first : first + ROWS_AT_ONCE]
            frame = timeline.frame_of(part)
            columns = [timeline.frames(frame), *(timeline.columns[name][part] for name in _RECORDED)]
            columns.append(timeline.frames(frame + 1))
            if (masks := timeline.allowed) is not None:
                columns += [Masks(timeline.allowed_after(part), masks.actions)[:], masks[part]]
            for row in zip(*columns, strict=True):
                self._buffer.put(*row)
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
        columns = (action, reward, terminal, truncated, next_observation, next_allowed, allowed)
        self._buffer.put(observation, *columns)
        if self._buffer.full:
            self._hand_over()

    def flush(self) -> None:
        """Write the steps in memory; every recorded step is on disk afterwards."""
        self._settle()
        if self.steps > self._folder.manifest.steps:
            self._write(self._buffer)
        if self._buffer.full:
            self._folder.end_shard()
            self._buffer.continue_from(self._buffer)

    def _hand_over(self) -> None:
        """Start writing the full buffer; at most two buffers are in memory."""
        if self._buffer.bytes < WORTH_A_THREAD:
            return self.flush()
        self._settle()
        following = self._spare or _Buffer(self.spec, self.lanes, self.shard_rows)
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

    def _write(self, buffer: "_Buffer") -> None:
        """Write this buffer as the shard after the whole ones; the buffer stays as it is."""
        steps = buffer.steps(self._first_lane, first_time=self._folder.whole_steps)
        self._folder.write(steps, buffer.frames())

    def close(self) -> None:
        """Flush and release the folder; if flushing fails, the recorder stays open and can try again."""
        self.flush()
        self._let_go()

    def _let_go(self) -> None:
        self._closed = True
        self._folder.lock.release()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, StorageError):
            self._let_go()
        else:
            self.close()


def usual_shard_steps(spec: Spec, lanes: int) -> int:
    """The default length of a shard. It is longer for many lanes of small frames: the manifest has an entry
    for every lane of every shard, and is rewritten with each shard."""
    return max(SHARD_STEPS, min(SHARD_ROWS * lanes, SHARD_BYTES // stored_frame_bytes(spec)))


_RECORDED = tuple(column.name for column in OF_STEPS if not column.is_optional)


class _Buffer:
    """The newest steps, up to `rows` of every lane, in time order, until there are enough for a shard."""

    def __init__(self, spec: Spec, lanes: int, rows: int):
        self.spec, self.lanes, self.rows = spec, lanes, rows
        self.filled = 0
        # One more row: the next observation of the newest step, with which the next step must begin.
        self._observation = np.empty((rows + 1, lanes, *spec.frame_shape), spec.frame_dtype)
        self._closing: list[np.ndarray] = []  # the final frames of episodes, row by row
        columns = (column for column in OF_STEPS if not column.is_optional)
        self._columns = {each.name: self._empty(each.shape(spec), each.dtype(spec)) for each in columns}
        self._masks: Columns = {}  # of each state, and of the next one, if they are given
        self._goes_on = np.zeros(lanes, bool)

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.empty((self.rows, self.lanes, *shape), dtype)

    @property
    def full(self) -> bool:
        return self.filled == self.rows

    @property
    def bytes(self) -> int:
        """The memory of its frames."""
        return self._observation.nbytes

    def put(
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
        spec, row = self.spec, self.filled
        frame = (self.lanes, *spec.frame_shape)
        observation = checked("observation", observation, frame, spec.frame_dtype)
        columns = zip(self._columns.items(), (action, reward, terminal, truncated), strict=True)
        values = {name: checked(name, each, kept.shape[1:], kept.dtype) for (name, kept), each in columns}
        next_observation = checked("next_observation", next_observation, frame, spec.frame_dtype)
        if spec.outside(values["action"]).any():
            bounds = (0, spec.actions - 1) if spec.discrete else (spec.action_low, spec.action_high)
            raise DataError(
                f"action {values['action'].tolist()}: the spec has actions {bounds[0]} to {bounds[1]}; "
                "correct one of them"
            )
        self._check_continuity(observation)
        if allowed is not None:
            self._put_masks(values["action"], allowed, next_allowed)
        begins, ended = ~self._goes_on, values["terminal"] | values["truncated"]
        if begins.any():
            self._observation[row, begins] = observation[begins]
        for name, kept in self._columns.items():
            kept[row] = values[name]
        if ended.any():
            self._closing.append(next_observation[ended])
        self._observation[row + 1] = next_observation
        self._goes_on = ~ended
        self.filled += 1

    def _put_masks(self, action: np.ndarray, allowed: ArrayLike, next_allowed: ArrayLike | None) -> None:
        shape = (self.lanes, self.spec.actions)
        allowed = checked("allowed", allowed, shape, "bool")
        after = np.zeros(shape, bool) if next_allowed is None else next_allowed
        after = checked("next_allowed", after, shape, "bool")
        refused = ~allowed[np.arange(self.lanes), action]
        if refused.any():
            lane = int(refused.argmax())
            raise DataError(
                f"lane {lane}: its mask does not allow the action {action[lane]}; correct one of them"
            )
        for name, masks in (("allowed", allowed), (NEXT, after)):
            if name not in self._masks:
                self._masks[name] = self._empty((self.spec.mask_bytes,), np.uint8)
            self._masks[name][self.filled] = np.packbits(masks, axis=-1)

    def _check_continuity(self, observation: np.ndarray) -> None:
        """Raise DepartedError if a step does not begin with the last one's next observation: an episode's
        frames are stored once."""
        led_to = self._observation[self.filled]
        differs = (_words(observation) != _words(led_to)).any(axis=1) & self._goes_on
        for lane in np.flatnonzero(differs):
            if not np.array_equal(observation[lane], led_to[lane]):  # 0.0 and -0.0 differ in bytes
                raise DepartedError(
                    f"lane {lane}: the observation is not the next_observation given a step before; "
                    "pass terminal or truncated where an episode ends"
                )

    def steps(self, first_lane: int, first_time: int) -> Columns:
        """The columns of a steps file, sorted by lane and then by time."""
        rows, lanes = self.filled, self.lanes
        columns: Columns = {
            "lane": np.broadcast_to(np.arange(first_lane, first_lane + lanes, dtype=np.int32), (rows, lanes)),
            "time": first_time + np.arange(rows * lanes).reshape(rows, lanes),
            **self._columns,
            **self._masks,
        }
        steps = {
            name: column[:rows].swapaxes(0, 1).reshape(rows * lanes, *column.shape[2:])
            for name, column in columns.items()
        }
        return at_ends(steps, np.arange(1, lanes + 1) * rows - 1)

    def frames(self) -> np.ndarray:
        """The frames of a frames file, lane by lane, with the final frame of each episode and each lane."""
        ended = (self._columns["terminal"] | self._columns["truncated"])[: self.filled]
        closes = ended.copy()
        closes[-1] = True
        after = np.cumsum(closes.T).reshape(closes.T.shape).T  # the number of final frames up to this step
        place = np.arange(closes.size).reshape(self.lanes, self.filled).T + after - closes
        frames = np.empty((closes.size + closes.sum(), *self.spec.frame_shape), self.spec.frame_dtype)
        for lane in range(self.lanes):  # one by one: no second copy of all frames is made
            frames[place[:, lane]] = self._observation[: self.filled, lane]
        frames[place[-1] + 1] = self._observation[self.filled]
        if self._closing:
            frames[place[ended] + 1] = np.concatenate(self._closing)
        return frames

    def continue_from(self, other: "_Buffer") -> None:
        """Empty this buffer; it continues after the last steps of the other."""
        self.lead_to(other._observation[other.filled], other._goes_on)
        self._closing, self.filled = [], 0

    def lead_to(self, frames: np.ndarray, goes_on: np.ndarray) -> None:
        """Begin after steps with these next observations; `goes_on` marks lanes whose episode continues."""
        self._observation[0], self._goes_on = frames, goes_on


def _words(frames: np.ndarray) -> np.ndarray:
    """The bytes of each frame, as 64-bit words where possible: these compare much faster."""
    flat = np.ascontiguousarray(frames).reshape(len(frames), -1).view(np.uint8)
    return flat.view(np.uint64) if flat.shape[1] % 8 == 0 else flat


def checked(name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """The value as an array of this shape and type; DataError if it does not fit."""
    array, dtype = np.asarray(value), np.dtype(dtype)
    if array.shape != shape:
        raise DataError(f"{name} has shape {array.shape} instead of {shape}; the first axis counts the lanes")
    if array.dtype.kind not in ACCEPTED[dtype.kind]:
        raise DataError(f"{name} has type {array.dtype} instead of {dtype}; convert it first")
    array = array.astype(dtype, copy=False)
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise DataError(f"{name} holds NaN or infinity; find its cause before you record it")
    return array
