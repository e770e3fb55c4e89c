"""When a collection writes a checkpoint: with a shard where that is cheap, and at least every so often."""

import time

from optimist.data.recorder import Recorder
from optimist.training.play.playing import Playing
from optimist.training.play.replay import Replay
from optimist.training.storage.play_state import prune, save_play
from optimist.training.storage.run_folder import RunFolder

SHARE_OF_TIME = 0.01  # what checkpoints that come with a shard may take


class Saving:
    """Keeps the recording and the checkpoints close together. A resumed run keeps every recorded step and
    goes on with the newest checkpoint, so learning is set back by the steps that lie between the two."""

    def __init__(
        self, folder: RunFolder, recorder: Recorder, replay: Replay, seconds: float, lanes: int, recorded: int
    ):
        self._folder, self._recorder, self._replay = folder, recorder, replay
        self._seconds, self._lanes = seconds, lanes
        self._at, self._flushed_at = time.monotonic(), recorded
        self._cost = 0.0  # of the last one, in seconds; the first shard gets a checkpoint whatever it costs

    @property
    def late(self) -> bool:
        return time.monotonic() - self._at > self._seconds

    def due(self, step: int, rows: int) -> bool:
        """Is it time for a checkpoint, if the last turn played so many rows and the next one will?"""
        cheap = (time.monotonic() - self._at) * SHARE_OF_TIME >= self._cost
        return self.late or (cheap and self._ends_a_shard(step, rows))

    def _ends_a_shard(self, step: int, rows: int) -> bool:
        """Is the recorder's buffer full here, or will it be before the end of the next turn?"""
        filled = (step - self._flushed_at) // self._lanes
        left = -filled % self._recorder.shard_rows
        return filled > 0 and left < rows

    def save(self, step: int, playing: Playing | None = None) -> None:
        """The log first: a checkpoint never knows of steps that the log does not have. Where the environment
        can be restored, the way `playing` stands is saved too."""
        self._recorder.flush()
        before = time.monotonic()
        if playing and playing.resumable:
            save_play(self._folder.checkpoints, step, playing.saved())
        self._folder.save_state(step, self._replay.state)
        prune(self._folder.checkpoints)
        self._at = time.monotonic()
        self._flushed_at = max(step, self._flushed_at)  # steps may be played again that are recorded already
        self._cost = self._at - before
