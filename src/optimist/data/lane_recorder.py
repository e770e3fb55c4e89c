"""Recording of lanes that step independently of each other, in shards that survive a crash."""

import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from optimist.data.disk.appending import GrowingFolder
from optimist.data.disk.codec import stored_frame_bytes
from optimist.data.recorder import SHARD_BYTES, SHARD_STEPS, checked  # a shard is written at either
from optimist.data.rules.joining import Piece, at_ends, joined
from optimist.data.transition import COLUMNS, NEXT, Spec
from optimist.errors import DataError

SECONDS = 60  # after this long what there is of a shard is written, so that a crash loses no more


class LaneRecorder:
    """Appends the steps of any number of lanes to a dataset folder; `lane` opens a new one. Recording again
    into a folder adds new lanes. The recorder closes with its last lane."""

    def __init__(self, path: str | Path, spec: Spec, *, provenance: dict[str, Any] | None = None):
        self.path, self.spec = Path(path), spec
        self.folder = GrowingFolder(self.path, spec, provenance)
        self._clock, self._next_lane = self.folder.whole_steps, self.folder.manifest.next_lane
        self._most = min(SHARD_STEPS, max(1, SHARD_BYTES // stored_frame_bytes(spec)))
        self._written_at = time.monotonic()
        self._process = os.getpid()
        self._lanes: list[Lane] = []

    @property
    def closed(self) -> bool:
        return not self.folder.lock.held

    def lane(self) -> "Lane":
        """A new lane."""
        self._lanes.append(Lane(self, self._next_lane))
        self._next_lane += 1
        return self._lanes[-1]

    def tick(self) -> int:
        """The time of one more step."""
        self._clock += 1
        return self._clock - 1

    def flush_if_due(self) -> None:
        if self._clock - self.folder.whole_steps >= self._most + len(self._lanes):
            self.flush()
        elif time.monotonic() - self._written_at > SECONDS:
            self._write()

    def flush(self) -> None:
        """Write the steps in memory and end the shard. If writing fails, the steps stay in memory."""
        for lane, piece in self._write().items():
            lane.drop(piece)
        self.folder.end_shard()

    def _write(self) -> "dict[Lane, Piece]":
        """Write the steps in memory, but for the newest step of each episode that goes on: a reset may yet
        truncate it. They are the shard after the whole ones; until it ends, a longer one takes its place."""
        if os.getpid() != self._process:
            return {}  # after a fork the parent writes the steps, and holds the lock
        self._written_at = time.monotonic()
        pieces = {lane: piece for lane in self._lanes if (piece := lane.piece())}
        if self.folder.whole_steps + sum(map(len, pieces.values())) > self.folder.manifest.steps:
            whole = joined(list(pieces.values()))
            self.folder.write(whole.steps, whole.frames)
        return pieces

    def leave(self, lane: "Lane") -> None:
        """Write all steps of a closed lane; after the last lane, release the folder."""
        if os.getpid() != self._process:
            return
        self.flush()
        self._lanes.remove(lane)
        if not self._lanes:
            self.folder.lock.release()


class Lane:
    """The steps of one environment, in order; `begin` starts an episode, `add` takes a step."""

    def __init__(self, recorder: LaneRecorder, number: int):
        self._recorder, self._spec, self._number = recorder, recorder.spec, number
        self.closed = False
        self._goes_on = False  # an episode has begun and not ended
        self._frames: list[np.ndarray] = []  # those of the steps, each episode with its final one
        self._masks: list[np.ndarray] = []  # the bits of the actions allowed in each frame, if any
        self._steps: list[list[Any]] = []  # time, action, reward, terminal, truncated

    def begin(self, frame: np.ndarray, allowed: np.ndarray | None = None) -> None:
        """Start an episode. One that goes on is truncated: what followed its last step was observed."""
        self._check_open()
        frame = self._copied("observation", frame)
        self._recorder.folder.check_masks(allowed is not None)
        if self._goes_on and self._steps and not _ended(self._steps[-1]):
            self._steps[-1][4] = True
        elif self._goes_on:  # no step was taken in it
            del self._frames[-1:], self._masks[-1:]
        self._show(frame, allowed)
        self._goes_on = True

    def add(
        self,
        action: Any,
        reward: float,
        terminal: bool,
        truncated: bool,
        frame: np.ndarray,
        allowed: np.ndarray | None = None,
    ) -> None:
        """Record a step; `frame` is its true successor, also at the end, and `allowed` the mask there."""
        self._check_open()
        if not self._goes_on:
            raise DataError(f"{self._recorder.path}: a step before the first reset; reset the environment")
        action, frame = self._checked_action(action), self._copied("next_observation", frame)
        if not math.isfinite(reward):
            raise DataError(f"the reward is {reward}; find its cause before you record it")
        step = [self._recorder.tick(), action, reward, bool(terminal), bool(truncated) and not terminal]
        self._steps.append(step)
        self._show(frame, allowed)
        self._goes_on = not _ended(step)
        self._recorder.flush_if_due()

    def close(self) -> None:
        """End the lane; all its steps are on disk afterwards. An episode that goes on is cut off. If writing
        fails, the lane stays open and can try again."""
        if self.closed:
            return
        self.closed = True
        try:
            self._recorder.leave(self)
        except BaseException:
            self.closed = False
            raise

    def piece(self) -> Piece | None:
        """The steps to write. The newest step waits while its episode goes on."""
        waits = self._goes_on and not self.closed and bool(self._steps) and not _ended(self._steps[-1])
        rows = self._steps[: len(self._steps) - waits]
        if not rows:
            return None
        spec, count = self._spec, len(rows)
        names = ("time", "action", "reward", "terminal", "truncated")
        values = dict(zip(names, zip(*rows, strict=True), strict=True)) | {"lane": (self._number,) * count}
        steps = {
            column.name: np.array(values[column.name], column.dtype(spec)).reshape(count, *column.shape(spec))
            for column in COLUMNS
            if column.name in values
        }
        ended = steps["terminal"] | steps["truncated"]
        begins = np.arange(count) + np.cumsum(ended) - ended  # the frame of each step
        if self._masks:
            bits = np.stack(self._masks)
            steps = at_ends({**steps, "allowed": bits[begins], NEXT: bits[begins + 1]}, [-1])
        return Piece(np.stack(self._frames[: begins[-1] + 2]), steps)

    def drop(self, piece: Piece) -> None:
        """Forget steps that are on disk; the last frame of one that goes on is also the first of the next."""
        self._steps = self._steps[len(piece) :]
        is_open = not (piece.steps["terminal"][-1] or piece.steps["truncated"][-1])
        kept = len(piece.frames) - is_open
        self._frames, self._masks = self._frames[kept:], self._masks[kept:]

    def _checked_action(self, action: Any) -> Any:
        """One of the spec's actions. A number is compared as such, which is faster than as an array."""
        spec = self._spec
        if spec.discrete:
            inside = 0 <= action < spec.actions
        else:
            action = checked("action", [action], (1, *spec.action_shape), spec.action_dtype)[0]
            inside = not spec.outside(action[None])[0]
        if not inside:
            raise DataError(f"the action {action} is not one of {spec.in_words()}: correct one of them")
        if self._masks and not np.unpackbits(self._masks[-1])[action]:
            raise DataError(
                f"the environment's mask does not allow the action {action}: choose among the allowed ones, "
                "or record without masks: optimist.record(env, folder, masks=False)"
            )
        return action

    def _copied(self, name: str, frame: Any) -> np.ndarray:
        spec = self._spec
        return checked(name, [frame], (1, *spec.frame_shape), spec.frame_dtype)[0]  # the list makes a copy

    def _check_open(self) -> None:
        if self.closed:
            raise DataError(f"the recording in {self._recorder.path} is closed: open another one")

    def _show(self, frame: np.ndarray, allowed: np.ndarray | None) -> None:
        self._frames.append(frame)
        if allowed is not None:
            self._masks.append(np.packbits(allowed))


def _ended(step: list[Any]) -> bool:
    return step[3] or step[4]
