"""The tasks of both training loops besides learning: show progress, log, evaluate, save and stop."""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, Self

import jax
import numpy as np

from optimist.errors import DivergedError
from optimist.training.evaluation import evaluate, mean_scores
from optimist.training.learner import Learner, TrainState
from optimist.training.loggers import Logger, logger_classes
from optimist.training.storage import checkpoint
from optimist.training.storage.checkpoint import Policies
from optimist.training.storage.run_folder import RunFolder
from optimist.training.terminal import Bar, StopRequest


class Services:
    """The services of one loop, a context manager; `settings` is a Training or a Collection."""

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
        self.note = ""  # the score of the newest evaluation
        self._step, self._bar, self._loggers = step, Bar(title, settings.steps, unit, step), list[Logger]()
        params = learner.shapes(self.seeds).params
        self._policies = Policies(folder.path, settings, params, folder.fingerprint)
        self._policies.rewind(step)
        self._saver = Saver()
        self._saved_at, self._saved_step = time.monotonic(), step

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as begun:
            begun.enter_context(self._bar)
            for kind in logger_classes(self.settings.loggers):
                self._loggers.append(kind(self.folder.path, seeds=self.seeds, step=self._step))
                begun.callback(self._loggers[-1].close)
            self._open = begun.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_) -> None:
        """Wait for the checkpoint that is being written; its error is raised if no other came first."""
        with self._open, contextlib.suppress(*(() if kind is None else (Exception,))):
            self._saver.wait()

    def show(self, step: int, note: str) -> None:
        self._bar.update(step, note)
        self._saver.check()

    def log(self, step: int, state: TrainState, rows: Callable[[], list[dict]]) -> None:
        """Log the figures of each seed. If one is not finite, save the state in diverged/ and raise
        DivergedError."""
        try:
            figures = rows()
        except DivergedError:
            checkpoint.save_state(self.folder.path / "diverged", step, state, self.folder.fingerprint)
            raise
        self._add(step, dict(zip(self.seeds, figures, strict=True)))

    def _add(self, step: int, figures: dict[int, dict]) -> None:
        for seed, values in figures.items():
            for logger in self._loggers:
                logger.add(step, values, seed)

    def evaluate_if_owed(self, step: int, params: dict) -> None:
        """Evaluate this step if that is due and not on disk."""
        if owes_evaluation(self.folder, self.settings, step):
            self.evaluate(step, params)

    def evaluate(self, step: int, params: dict) -> None:
        """Keep the policies of every seed, evaluate them and save the episodes. After a signal and without an
        environment, there are no episodes."""
        self._policies.keep(step, params)
        if not self.folder.config["environment"]:
            return
        played = evaluate(
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
        means = mean_scores(played)
        self.note = f"return {np.mean(list(means.values())):.2f}" if played else ""
        if played:
            self.folder.add_episodes(played)
            self._add(step, {seed: {"return": mean} for seed, mean in means.items()})

    @property
    def late(self) -> bool:
        """Is it time for a checkpoint?"""
        return time.monotonic() - self._saved_at > self.settings.checkpoint_seconds

    def takes_at_most(self, share: float) -> bool:
        """Did the last checkpoint take at most this share of the time since then?"""
        # The first is always begun: before it nothing was saved, which took no time.
        return (time.monotonic() - self._saved_at) * share >= self._saver.seconds

    def save(self, step: int, state: Any, play: dict[str, np.ndarray] | None = None) -> None:
        """Begin a checkpoint, with the state of play if it can be restored. Another thread writes while
        training goes on.

        The thread gets the arrays of the host, because the learner gives the memory of its own to the next
        step. (On a CPU both are the same memory; XLA does not reuse it while the host's arrays exist.)"""
        state, folder = jax.device_get(state), self.folder

        def write() -> None:
            if play is not None:
                checkpoint.save_play(folder.checkpoints, step, play, folder.fingerprint)
            folder.save_state(step, state)
            checkpoint.prune_play(folder.checkpoints)

        self._saver.begin(write)
        self._saved_at, self._saved_step = time.monotonic(), step

    def leave_if_asked(self, step: int) -> None:
        """Raise Interrupted if a signal was received and everything is saved. A signal that came after the
        loop had looked for one waits: the next turn saves, and leaves."""
        if self.stop.received and step == self._saved_step:
            self._saver.wait()
            self.stop.leave(f"{self.settings.unit} {step:,} of {self.settings.steps:,}")


def owes_evaluation(folder: RunFolder, settings: Any, step: int) -> bool:
    """Is an evaluation of this step due and not on disk, as after a stop during the evaluation?"""
    return bool(folder.config["environment"]) and settings.evaluates(step) and not folder.has_episodes(step)


class Saver:
    """Does one piece of writing at a time, in its own thread.

    What the piece writes must not change meanwhile: give it arrays of the host. The thread does not keep the
    process alive: a process that is stopped at once leaves the file before, like a killed one."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._problem: BaseException | None = None
        self._begun = self._ended = 0.0

    @property
    def seconds(self) -> float:
        """How long the newest piece took, or has taken so far."""
        writing = self._thread and self._thread.is_alive()
        return (time.monotonic() if writing else self._ended) - self._begun

    def begin(self, write: Callable[[], object]) -> None:
        """Start writing, after the piece before it is finished; an error of that one is raised first."""
        self.wait()
        self._begun = time.monotonic()
        self._thread = threading.Thread(target=self._work, args=(write,), name="checkpoint", daemon=True)
        self._thread.start()

    def _work(self, write: Callable[[], object]) -> None:
        try:
            write()
        except BaseException as problem:  # raised where the training waits
            self._problem = problem
        self._ended = time.monotonic()

    def wait(self) -> None:
        """Wait until everything is written, and raise the error that prevented it."""
        if self._thread:
            self._thread.join()
        self.check()

    def check(self) -> None:
        """Raise the error of a piece that failed, without waiting for one that is not finished."""
        if self._thread and not self._thread.is_alive():
            self._thread, problem, self._problem = None, self._problem, None
            if problem:
                raise problem
