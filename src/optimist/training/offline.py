"""Training on a fixed dataset; the environment is used only for evaluation. A turn of the loop:

sample    draw the minibatches of the next gradient steps
update    take these steps, all seeds in one compiled program
measure   log the losses, and every 1,000 steps what the guard against divergence sees at logged states
evaluate  where it is due, keep the policies and play full episodes with them
save      begin a checkpoint, every two minutes and at the end; another thread writes it
stop      leave once everything is saved, after a signal or an alarm
"""

import contextlib
import logging
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import jax

from optimist import envs
from optimist.agents import described, short_name
from optimist.agents._agent import Agent
from optimist.data.dataset import Dataset
from optimist.data.warnings import warnings
from optimist.errors import RunError
from optimist.training.evaluation import check_playable
from optimist.training.feeding import feed_of
from optimist.training.guard import health_like
from optimist.training.learner import Learner, TrainState, advance, check_seeds
from optimist.training.loggers import logger_classes
from optimist.training.measures import Measures, held_out_remarks, in_words
from optimist.training.memory import batch_bytes, check_memory, lanes_bytes, state_bytes
from optimist.training.resolve import following, resolve_for_log
from optimist.training.scaling import Inputs, measured, remarks
from optimist.training.seed_logs import hold_out_remark, whole
from optimist.training.services import Services, owes_evaluation
from optimist.training.settings import Training
from optimist.training.storage.checkpoint import load_health
from optimist.training.storage.configuration import IN_MEMORY, as_config, record_versions
from optimist.training.storage.rows import read_metrics
from optimist.training.storage.run_folder import RunFolder, begun, refuse_log_or_study, write_alarms
from optimist.training.terminal import StopRequest

log = logging.getLogger("optimist")
CHUNK = 250  # gradient steps between checks of the clock, the losses and the signals
LARGE_CHUNK = 50  # the same for large images on a CPU, so that Ctrl-C takes effect within seconds


def usual_environment(data: Dataset, asked: str | None) -> str:
    """Where a run is evaluated, "" for nowhere: where the data was played, unless another environment or
    "none" is asked for."""
    name = envs.from_data(data.provenance.get("environment", "")) if asked is None else asked
    return "" if name == "none" else name


def usual_folder(agent: Agent, data: Dataset) -> Path:
    """Where a run is written if nobody says: runs/AGENT-DATA, by the name of the dataset's folder. A part of
    the data adds letters of its own; data in memory has only these."""
    named = data.path.resolve().name if data.path else ""
    letters = "" if named and not data.recording else data.fingerprint[:8]
    return Path("runs") / "-".join(filter(None, [short_name(agent), named, letters]))


class OfflineTraining:
    """One agent, one dataset, one or more seeds, one folder.

    `run` prepares the training, which reads the log, checks that all fits, and locks the folder; then it goes
    from the newest checkpoint to the end."""

    def __init__(
        self,
        agent: Agent,
        dataset: Dataset,
        training: Training,
        *,
        out: str | Path,
        seeds: tuple[int, ...] = (0,),
        environment: str | None = None,
        restart: bool = False,
        part: Callable[[Dataset], Dataset] = whole,
        part_name: str = "",
    ):
        """`part` selects the data to learn from. With `data_per_seed` = "own" it selects from each player's
        log, so that each seed gets, say, the best tenth of its own log. `part_name` is kept with the
        configuration, so that a study can compare the part without opening the log."""
        self._agent, self._dataset, self._asked = agent, dataset, training
        self._out, self.seeds, self._restart = Path(out), tuple(seeds), restart
        self._part, self._part_name, self.environment = part, part_name, environment
        self.folder: Any = None  # until the training is prepared

    def prepare(self) -> Self:
        """Decide what follows from the log, check that it can be done, and lock the folder."""
        log, environment = self._dataset, self.environment
        self._agent.check(log.spec)
        check_seeds(self.seeds)
        refuse_log_or_study(self._out)  # before the data is read
        before = begun(self._out, restart=self._restart)
        agent, self.training, self.data = resolve_for_log(
            self._agent, self._asked, log, self.seeds, self._part, environment
        )
        self.versions = {"dataset": self.data.fingerprint}
        if environment:
            masked, trained_on = log.timeline.allowed is not None, log.provenance.get("environment", "")
            self.versions |= check_playable(log.spec, environment, trained_on, masked=masked)
        learner = Learner(agent, log.spec, precision=self.training.precision)
        logger_classes(self.training.loggers)  # raises for an unknown logger
        self._check_memory(learner)
        # Observations are scaled as in the run in the folder, or as the data demands.
        kind = self.training.observations
        if "inputs" in before and before.get("training", {}).get("observations") == kind:
            inputs = Inputs.from_config(before["inputs"], log.spec)
        else:
            inputs = measured(self.data.logs, kind)
        self.learner = replace(learner, inputs=inputs)
        self.folder = RunFolder(self._out, self._config(), restart=self._restart)
        return self

    def _check_memory(self, learner: Learner) -> None:
        training, spec, seeds = self.training, learner.spec, len(self.seeds)
        streamed = training.feed in ("memory", "compressed")  # such a feed shortens its chunks
        chunk = 1 if streamed else min(LARGE_CHUNK, training.evaluate_every, training.steps)
        played = training.evaluation_steps is None and self.environment
        check_memory(
            {
                "parameters": state_bytes(learner, seeds),
                "batches": batch_bytes(spec, training.batch, seeds, chunk),
                "evaluation": lanes_bytes(spec, seeds * training.episodes) if played else 0,
            }
        )

    def _config(self) -> dict:
        data, inputs = self.data.dataset, self.learner.inputs
        return {
            "kind": "offline",
            "seeds": list(self.seeds),
            "environment": self.environment or "",
            "dataset": {
                "path": str(data.path or IN_MEMORY),
                "fingerprint": self.data.fingerprint,
                # The whole dataset, of which this may be a part.
                "recording": self._dataset.recording or self._dataset.fingerprint,
                **({"part": self._part_name} if self._part_name else {}),
                # The settings whose values follow from it.
                "following": following(self._agent, self._asked),
                **({"masks": True} if data.timeline.allowed is not None else {}),
            },
            "spec": data.spec.as_json(),
            "agent": described(self.learner.agent),
            "training": as_config(self.training),
            **({"inputs": inputs.as_config()} if inputs else {}),
        }

    def run(self) -> TrainState:
        """Train to the end, from the newest checkpoint if there is one."""
        if self.folder is None:
            self.prepare()
        with self.folder:
            record_versions(self.folder.path, self.folder.config, self.versions)
            found = self.folder.load_state(like=self.learner.shapes(self.seeds))
            step, state = found or (0, self.learner.init(self.seeds))
            self.folder.rewind(step)
            goes_on = step < self.training.steps
            lines = [] if found else warnings(self.data.dataset)
            if goes_on:
                lines += remarks(self.data.logs, self.training, self.learner.agent)
                lines += hold_out_remark(self._asked, self.data, self.environment)
            for line in lines:
                log.warning("%s", line)
            like = health_like(self.learner, self.seeds)
            health = load_health(self.folder.checkpoints, step, like) if found else None
            if goes_on or owes_evaluation(self.folder, self.training, step):
                state = self._train(step, state, health)
            with contextlib.suppress(RunError):  # of damaged rows
                for remark in held_out_remarks(read_metrics(self.folder.path)) if goes_on else ():
                    log.warning("%s", remark.line)
            self.folder.finish()
            return state

    def _train(self, step: int, state: TrainState, health: Any) -> TrainState:
        training, agent, gib = self.training, self.learner.agent, self.training.memory_gib
        samplers = self.data.samplers(training, agent.reads_next_action)
        self._feed = feed_of(samplers, training.feed, None if gib is None else int(gib * 2**30))
        self._measures = Measures(self.learner, self.data, training, state, health)
        title = short_name(agent) + (f" x {len(self.seeds)} seeds" if len(self.seeds) > 1 else "")
        place, chunk = (self.folder, self.learner, training, step), self._chunk()
        with StopRequest() as stop, Services(*place, stop, title=title, unit="update") as self._services:
            write_alarms(self.folder.path, self._measures.alarms)
            self._measures.leave_if_diverged()
            self._services.evaluate_if_owed(step, state.params)
            self._services.leave_if_asked(step)
            while step < training.steps:
                count = self._steps_to_take(step, chunk)
                items = self._sample(step, count)
                state, losses = self._update(state, items, count)
                step += count
                state = self._measure(step, count, state, losses)
                self._evaluate(step, state)
                self._save(step, state)
                self._stop(step)
        return state

    def _sample(self, step: int, count: int) -> Any:
        """The items of the next `count` steps; None if no seed learns any more."""
        return self._feed.items(step, count) if self._measures.learns.any() else None

    def _update(self, state: TrainState, items: Any, count: int) -> tuple[TrainState, dict]:
        """The state after `count` gradient steps of every seed that is not frozen, and the losses."""
        if items is None:
            return state._replace(step=state.step + count), {}
        state, losses = advance(self.learner, state, self._feed.minibatch, self._feed.resident, items)
        return self._measures.hold(state), losses

    def _measure(self, step: int, count: int, state: TrainState, losses: dict) -> TrainState:
        """Log the figures; a new alarm may freeze its seed."""
        measures, known = self._measures, self._measures.alarms
        self._services.log(step, state, partial(measures.rows, step, count, state, losses))
        if measures.alarms != known:
            write_alarms(self.folder.path, measures.alarms)
            state = measures.hold(state)
        return state

    def _evaluate(self, step: int, state: TrainState) -> None:
        if self.training.evaluates(step):
            self._services.evaluate(step, state.params)
        self._services.show(
            step, self._services.note if self.environment else in_words(self._measures.latest)
        )

    def _save(self, step: int, state: TrainState) -> None:
        ends = self._measures.stops or step == self.training.steps
        if self._services.late or self._services.stop.received or ends:
            self._services.save(step, self._measures.saved(state))

    def _stop(self, step: int) -> None:
        self._measures.leave_if_diverged()
        self._services.leave_if_asked(step)

    def _chunk(self) -> int:
        """The steps of a chunk; if possible they divide `evaluate_every`, so that one program is enough."""
        slow = math.prod(self.learner.spec.observation_shape) > 10_000 and jax.default_backend() == "cpu"
        every = self.training.evaluate_every
        longest = min(LARGE_CHUNK if slow else CHUNK, self._feed.steps_at_once, every)
        dividing = [size for size in range(longest // 4 + 1, longest + 1) if every % size == 0]
        return max(dividing, default=longest)

    def _steps_to_take(self, step: int, chunk: int) -> int:
        """The steps to the next multiple of `chunk` after an evaluation, to the next evaluation, or to the
        end, whichever is nearest; so a continued run has the same chunks."""
        since = step % self.training.evaluate_every
        ahead = (self.training.evaluate_every - since, self.training.steps - step)
        return min(chunk - since % chunk, *ahead)
