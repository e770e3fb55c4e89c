"""The evaluations of a run, for which training waits, or which a child process does beside it.

Training beside an evaluation is ahead of what may be written: rows that come after the episodes are held
back, and a checkpoint has the state at which the evaluation began. So a run that is stopped or killed goes on
from there, with the same bits and the same files as one that waited.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax

from optimist.training.evaluation import EpisodeScore
from optimist.training.evaluator import CrashError, Evaluator, EvaluatorError
from optimist.training.interrupt import StopRequest

WAIT, BESIDE = WAYS = ("wait", "beside")
MOMENT = 0.05  # seconds between looks at the signals, while training waits
log = logging.getLogger("optimist")


class Pending(NamedTuple):
    """An evaluation whose episodes are not on disk yet."""

    step: int
    state: Any  # as for a checkpoint, in arrays of the host: the learner reuses the memory of its own
    held: list[Callable[[], object]]  # writes that come after the episodes, in their order


class Evaluations:
    """At most one evaluation is pending. Without an evaluator none ever is."""

    def __init__(
        self,
        play: Callable[[int, Any], list[EpisodeScore]],
        write: Callable[[list[EpisodeScore]], object],
        stop: StopRequest,
    ):
        """`play` is an evaluation in this process, which is empty after a signal; `write` writes one."""
        self._play, self._write, self._stop = play, write, stop
        self._evaluator: Evaluator | None = None
        self._pending: Pending | None = None

    def start_evaluator(self, config: dict, how: dict, output: Path) -> None:
        """Evaluate beside training from now on, if the child process can be started."""
        try:
            self._evaluator = Evaluator(config, how, output)
        except EvaluatorError as problem:
            self._give_up(problem)

    def begin(self, step: int, state: Any) -> None:
        """Evaluate the policies of this state, a tree as for a checkpoint. Nothing else may be pending."""
        assert self._pending is None
        if self._evaluator is None:
            self._write(self._play(step, state["params"]))
            return
        self._pending = Pending(step, jax.device_get(state), [])
        self._evaluator.begin(step, self._pending.state["params"])

    def in_order(self, write: Callable[[], object]) -> None:
        """Write now, or after the episodes of the pending evaluation."""
        if self._pending:
            self._pending.held.append(write)
        else:
            write()

    def durable(self, step: int, state: Any) -> tuple[int, Any]:
        """What a checkpoint may hold: this step and its state, or those of the pending evaluation."""
        return (self._pending.step, self._pending.state) if self._pending else (step, state)

    def unsettled(self) -> Pending | None:
        """Wait until nothing is pending; the pending evaluation if a signal came first."""
        self.collect()
        while self._pending and not self._stop.received:
            self.collect(MOMENT)
        return self._pending

    def collect(self, seconds: float = 0) -> None:
        """If the pending evaluation is over within so many seconds, write it and what was held back."""
        if self._pending is None or (self._evaluator and not self._evaluator.is_over(seconds)):
            return
        rows = self._episodes(self._pending)
        if not rows:  # a signal came: the evaluation stays pending
            return
        held, self._pending = self._pending.held, None
        self._write(rows)
        for write in held:
            write()

    def _episodes(self, pending: Pending) -> list[EpisodeScore]:
        """The child's episodes. If it failed, they are played here, and later evaluations too; but not if it
        crashed, because this process might crash as well."""
        if self._evaluator:
            try:
                return self._evaluator.episodes()
            except EvaluatorError as problem:
                if self._stop.received:  # a signal to all processes of a terminal ended the child first
                    return []
                if isinstance(problem, CrashError):
                    raise
                self._give_up(problem)
        return self._play(pending.step, pending.state["params"])

    def _give_up(self, problem: EvaluatorError) -> None:
        log.warning("no evaluation beside training (%s): training waits for each from now on", problem)
        self.end()

    def end(self) -> None:
        """End the child process, also during an evaluation."""
        if self._evaluator:
            self._evaluator.end()
        self._evaluator = None
