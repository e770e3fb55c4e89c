"""Recording of lanes that step independently of each other, in shards that survive a crash."""

import math
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optimist.data.disk.codec import frame_bytes
from optimist.data.disk.manifest import Block, Manifest
from optimist.data.disk.shard import Steps, write_shard
from optimist.data.disk.write_buffer import checked
from optimist.data.recorder import locked_manifest
from optimist.data.transition import Spec
from optimist.errors import DataError

SHARD_STEPS, SHARD_BYTES = 16384, 2**26  # a shard is written when either is reached
SECONDS = 60  # or after this long, so that a crash loses no more


class Part(NamedTuple):
    """Steps of a lane that can be written, and their frames."""

    block: Block
    columns: list[np.ndarray]  # those of Steps, in its order
    frames: list[np.ndarray]


class LaneRecorder:
    """Appends the steps of any number of lanes to a dataset folder; `lane` opens a new one. Recording again
    into a folder adds new lanes. The recorder closes with its last lane."""

    def __init__(self, path: str | Path, spec: Spec, *, provenance: dict[str, Any] | None = None):
        self.path, self.spec = Path(path), spec
        self._lock, self._manifest = locked_manifest(self.path, spec, provenance)
        recorded = (block.lane for shard in self._manifest.shards for block in shard.blocks)
        self._next_lane = 1 + max(recorded, default=-1)
        self._clock = self._manifest.steps
        self._most = min(SHARD_STEPS, max(1, SHARD_BYTES // frame_bytes(spec)))
        self._written_at = time.monotonic()
        self._process = os.getpid()
        self._lanes: list[Lane] = []

    @property
    def closed(self) -> bool:
        return not self._lock.held

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
        due = time.monotonic() - self._written_at > SECONDS
        if due or self._clock - self._manifest.steps >= self._most + len(self._lanes):
            self.flush()

    def flush(self) -> None:
        """Write the steps in memory as a shard, but for the newest step of each episode that goes on: a reset
        may yet truncate it. If writing fails, the steps stay in memory."""
        if os.getpid() != self._process:
            return  # after a fork the parent writes the steps, and holds the lock
        self._written_at = time.monotonic()
        parts = {lane: part for lane in self._lanes if (part := lane.part())}
        if not parts:
            return
        columns = zip(*(part.columns for part in parts.values()), strict=True)
        shard = write_shard(
            self.path,
            len(self._manifest.shards),
            Steps(*map(np.concatenate, columns)),
            np.stack([frame for part in parts.values() for frame in part.frames]),
            tuple(part.block for part in parts.values()),
            self.spec,
        )
        grown = Manifest(self.spec, self._manifest.provenance, [*self._manifest.shards, shard])
        grown.write(self.path)
        self._manifest = grown
        for lane, part in parts.items():
            lane.drop(part)

    def leave(self, lane: "Lane") -> None:
        """Write all steps of a closed lane; after the last lane, release the folder."""
        if os.getpid() != self._process:
            return
        self.flush()
        self._lanes.remove(lane)
        if not self._lanes:
            self._lock.release()


class Lane:
    """The steps of one environment, in order; `begin` starts an episode, `add` takes a step."""

    def __init__(self, recorder: LaneRecorder, number: int):
        self._recorder, self._spec, self._number = recorder, recorder.spec, number
        self.closed = False
        self._goes_on = False  # an episode has begun and not ended
        self._frames: list[np.ndarray] = []  # those of the steps, each episode with its final one
        self._steps: list[list[Any]] = []  # time, action, reward, terminal, truncated

    def begin(self, frame: np.ndarray) -> None:
        """Start an episode. One that goes on is truncated: what followed its last step was observed."""
        self._check_open()
        frame = self._copied("observation", frame)
        if self._goes_on and self._steps and not self._ended(-1):
            self._steps[-1][4] = True
        elif self._goes_on:  # no step was taken in it
            self._frames.pop()
        self._frames.append(frame)
        self._goes_on = True

    def add(self, action: Any, reward: float, terminal: bool, truncated: bool, frame: np.ndarray) -> None:
        """Record a step; `frame` is its true successor, also at the end."""
        self._check_open()
        if not self._goes_on:
            raise DataError(f"{self._recorder.path}: a step before the first reset; reset the environment")
        action = self._checked_action(action)
        if not math.isfinite(reward):
            raise DataError(f"the reward is {reward}; find its cause before you record it")
        frame = self._copied("next_observation", frame)
        time = self._recorder.tick()
        self._steps.append([time, action, reward, bool(terminal), bool(truncated) and not terminal])
        self._frames.append(frame)
        self._goes_on = not self._ended(-1)
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

    def part(self) -> Part | None:
        """The steps to write. The newest step waits while its episode goes on."""
        waits = self._goes_on and not self.closed and bool(self._steps) and not self._ended(-1)
        steps = self._steps[: len(self._steps) - waits]
        if not steps:
            return None
        ended = sum(self._ended(place) for place in range(len(steps)))
        is_open = not self._ended(len(steps) - 1)
        block = Block(self._number, len(steps), len(steps) + ended + is_open, is_open)
        time, action, reward, terminal, truncated = map(list, zip(*steps, strict=True))
        spec, count = self._spec, len(steps)
        columns: list[np.ndarray] = [
            np.full(count, self._number, np.int32),
            np.array(time, np.int64),
            np.array(action, spec.action_dtype).reshape(count, *spec.action_shape),
            np.array(reward, np.float32),
            np.array(terminal, bool),
            np.array(truncated, bool),
        ]
        return Part(block, columns, self._frames[: block.frames])

    def drop(self, part: Part) -> None:
        """Forget steps that are on disk; an open block's last frame is also the first of the next block."""
        self._steps = self._steps[part.block.steps :]
        self._frames = self._frames[part.block.frames - part.block.ends_open :]

    def _ended(self, place: int) -> bool:
        return self._steps[place][3] or self._steps[place][4]

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
        return action

    def _copied(self, name: str, frame: Any) -> np.ndarray:
        spec = self._spec
        return checked(name, [frame], (1, *spec.frame_shape), spec.frame_dtype)[0]  # the list makes a copy

    def _check_open(self) -> None:
        if self.closed:
            raise DataError(f"the recording in {self._recorder.path} is closed: open another one")
