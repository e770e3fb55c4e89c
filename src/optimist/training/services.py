"""What both loops do beside learning, offline and online: show progress, log, evaluate, save and stop."""

import contextlib
import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from optimist.data.recorder import Recorder
from optimist.errors import DivergedError
from optimist.training.evaluation import evaluate, mean_scores
from optimist.training.interrupt import StopRequest
from optimist.training.learner import Learner, TrainState
from optimist.training.loggers import Logger, logger_classes
from optimist.training.play.playing import Playing
from optimist.training.progress import Bar
from optimist.training.storage import checkpoint
from optimist.training.storage.run_folder import RunFolder

SHARE_OF_TIME = 0.01  # what checkpoints that come with a shard may take


class Services:
    """The services of one loop, entered while it runs; `settings` are a Training or a Collection."""

    def __init__(
        self,
        folder: RunFolder,
        learner: Learner,
        settings: Any,
        step: int,
        stop: StopRequest,
        *,
        title: str,
        unit: str,
    ):
        self.folder, self.learner, self.settings, self.stop = folder, learner, settings, stop
        self.seeds = tuple(folder.config["seeds"])
        self._step, self._bar = step, Bar(title, settings.steps, unit, step)
        self._loggers = list[Logger]()
        self._saved_at = time.monotonic()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as begun:
            begun.enter_context(self._bar)
            for kind in logger_classes(self.settings.loggers):
                self._loggers.append(kind(self.folder.path, seeds=self.seeds, step=self._step))
                begun.callback(self._loggers[-1].close)
            self._open = begun.pop_all()
        return self

    def __exit__(self, *_) -> None:
        self._open.close()

    def show(self, step: int, note: str) -> None:
        self._bar.update(step, note)

    def log(self, step: int, state: TrainState, rows: Callable[[], list[dict]]) -> None:
        """Each seed's figures. Where one is not finite, the state is kept and the run ends."""
        try:
            found = rows()
        except DivergedError:
            checkpoint.save_state(self.folder.path / "diverged", step, state)
            raise
        for seed, values in zip(self.seeds, found, strict=True):
            self._add(step, values, seed)

    def _add(self, step: int, values: dict, seed: int) -> None:
        for logger in self._loggers:
            logger.add(step, values, seed)

    def evaluate_if_owed(self, step: int, params: dict) -> str:
        """The evaluation of this step, where it is due and not on disk: its score as a note."""
        return self.evaluate(step, params) if owes_evaluation(self.folder, self.settings, step) else ""

    def evaluate(self, step: int, params: dict) -> str:
        """Full episodes with every seed; nothing is kept where the run is asked to stop meanwhile."""
        rows = evaluate(
            self.learner,
            params,
            self.folder.config["environment"],
            seeds=self.seeds,
            episodes=self.settings.episodes,
            steps=self.settings.evaluation_steps,
            epsilon=self.settings.evaluation_epsilon,
            step=step,
            stop=lambda: bool(self.stop.received),
        )
        if not rows:
            return ""
        self.folder.add_episodes(rows)
        means = mean_scores(rows)
        for seed, mean in means.items():
            self._add(step, {"return": mean}, seed)
        return f"return {np.mean(list(means.values())):.2f}"

    @property
    def late(self) -> bool:
        """Is it time for a checkpoint?"""
        return time.monotonic() - self._saved_at > self.settings.checkpoint_seconds

    def save(self, step: int, state: TrainState) -> None:
        self.folder.save_state(step, state)
        self._saved_at = time.monotonic()

    def leave_if_asked(self, step: int) -> None:
        """Stop here if a signal asked for it; call it when everything is saved."""
        self.stop.leave(f"{self.settings.unit} {step:,} of {self.settings.steps:,}")


class PlayServices(Services):
    """The same beside a recording. A resumed run keeps every recorded step and goes on with the newest
    checkpoint, so learning is set back by the steps between the two: a checkpoint comes with a shard where
    that is cheap, and at least every so often."""

    def __init__(self, recorder: Recorder, *arguments: Any, **more: Any):
        super().__init__(*arguments, **more)
        self._recorder, self._flushed_at = recorder, recorder.steps // len(self.seeds)
        self._cost = 0.0  # of the last one, in seconds; the first shard gets a checkpoint whatever it costs

    def due(self, step: int, rows: int) -> bool:
        """Is it time for a checkpoint, if the last turn played so many rows and the next one will?"""
        cheap = (time.monotonic() - self._saved_at) * SHARE_OF_TIME >= self._cost
        return self.late or (cheap and self._ends_a_shard(step, rows))

    def _ends_a_shard(self, step: int, rows: int) -> bool:
        """Is the recorder's buffer full here, or will it be before the end of the next turn?"""
        filled = (step - self._flushed_at) // self.settings.lanes
        left = -filled % self._recorder.shard_rows
        return filled > 0 and left < rows

    def save(self, step: int, state: TrainState, playing: Playing | None = None) -> None:
        """The log first: a checkpoint never knows of steps that the log does not have. Where the environment
        can be restored, the way `playing` stands is saved too."""
        self._recorder.flush()
        before = time.monotonic()
        if playing and playing.resumable:
            checkpoint.save_play(self.folder.checkpoints, step, playing.saved())
        super().save(step, state)
        checkpoint.prune_play(self.folder.checkpoints)
        self._saved_at = time.monotonic()
        self._flushed_at = max(step, self._flushed_at)  # steps may be played again that are recorded already
        self._cost = self._saved_at - before


def owes_evaluation(folder: RunFolder, settings: Any, step: int) -> bool:
    """Is an evaluation of this step due and not on disk, as after a stop while it was made?"""
    return bool(folder.config["environment"]) and settings.evaluates(step) and not folder.has_episodes(step)
