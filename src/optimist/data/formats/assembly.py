"""Shards that are put together frame by frame, also out of order, and written while more frames arrive."""

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np

from optimist.data.disk.files import write_whole
from optimist.data.disk.manifest import Block, Shard
from optimist.data.disk.shard import Steps, frames_content, steps_content
from optimist.data.transition import Spec

WRITERS = 2  # compressing leaves the interpreter free; each holds the frames of one shard


class Draft:
    """The steps `first` to `stop` of one lane, some of whose frames are still to come.

    Positions count frames along the lane: the black one that closes each episode included."""

    def __init__(self, number: int, lane: int, first: int, stop: int, spec: Spec):
        self.number, self.lane, self.first, self.stop, self.spec = number, lane, first, stop, spec
        self.steps = Steps.empty(stop - first, spec)
        self.steps.lane[:], self.steps.truncated[:] = lane, False
        self.steps.time[:] = np.arange(first, stop)
        self._base = 0  # the position of the first frame
        self._known = self._placed = 0
        self._frames: np.ndarray | None = None

    @property
    def ends_open(self) -> bool:
        """Whether the successor of the last step belongs to it too; asked once that step is described."""
        return not bool(self.steps.terminal[-1])

    @property
    def complete(self) -> bool:
        """Every step has its observation, and the last one its successor where it needs one."""
        return self._known == len(self.steps.time) and self._placed == self._known + self.ends_open

    def describe(self, time: int, position: int, action, reward, terminal) -> None:
        """Everything but frames of the steps from `time` on; `position` is where the first of them begins."""
        rows = slice(time - self.first, time - self.first + len(action))
        self.steps.action[rows], self.steps.reward[rows], self.steps.terminal[rows] = action, reward, terminal
        self._base = position if time == self.first else self._base
        self._known += len(action)

    def place(self, position: int, frames: np.ndarray) -> None:
        """Frames of consecutive steps, the first of them at this position."""
        if self._frames is None:
            # Room for the shortest episodes there can be; memory that is not touched is not used.
            shape = (2 * len(self.steps.time) + 1, *self.spec.frame_shape)
            self._frames = np.zeros(shape, self.spec.frame_dtype)
        row = position - self._base
        self._frames[row : row + len(frames)] = frames
        self._placed += len(frames)

    def written(self, folder: Path) -> Shard:
        steps = len(self.steps.time)
        count = steps + int(self.steps.terminal.sum()) + self.ends_open
        assert self._frames is not None
        frames, self._frames = self._frames[:count], None
        return Shard(
            steps=write_whole(
                folder / f"steps-{self.number:06d}.arrow", steps_content(self.steps, self.spec)
            ),
            frames=write_whole(folder / f"frames-{self.number:06d}.arrow", frames_content(frames, self.spec)),
            blocks=(Block(self.lane, steps, frames=count, ends_open=self.ends_open),),
        )


class Writers:
    """Writes complete drafts in the background; few at once, so that memory stays bounded."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._pool = ThreadPoolExecutor(WRITERS)
        self._shards: dict[int, Future[Shard]] = {}

    def write(self, draft: Draft) -> None:
        for shard in self._shards.values():
            if shard.done():
                shard.result()  # what the disk refused is said now, not at the end of a window
        unfinished = [shard for shard in self._shards.values() if not shard.done()]
        if len(unfinished) >= WRITERS:
            wait(unfinished, return_when=FIRST_COMPLETED)
        self._shards[draft.number] = self._pool.submit(draft.written, self._folder)

    def finished(self, number: int) -> Iterator[Shard]:
        """The shards from this number on without a gap, each of them on disk."""
        while number in self._shards:
            yield self._shards.pop(number).result()
            number += 1

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
