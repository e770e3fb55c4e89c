"""Training on a fixed dataset; the environment is used only for evaluation."""

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import numpy as np

from optimist.agents import described, short_name
from optimist.agents._agent import Agent
from optimist.data.dataset import Dataset
from optimist.data.look import warnings
from optimist.data.sampling import Sampler, transitions
from optimist.training.evaluation import check_playable
from optimist.training.feeding import Feed, feed_of
from optimist.training.held_out import HeldOut
from optimist.training.inputs import Inputs, measured
from optimist.training.interrupt import StopRequest
from optimist.training.learner import Learner, TrainState, advance, check_seeds
from optimist.training.loggers import logger_classes
from optimist.training.monitor import ALARM, Monitor, check_finite
from optimist.training.offline_settings import Training, settled_for
from optimist.training.rewards import remarks, suggested_scale
from optimist.training.seed_logs import SeedLogs, whole
from optimist.training.services import Services, owes_evaluation
from optimist.training.sizes import batch_bytes, check_memory, lanes_bytes, state_bytes
from optimist.training.storage.run_folder import RunFolder, as_config, begun, refuse_other_use

log = logging.getLogger("optimist")
CHUNK = 250  # gradient steps between checks of the clock, the losses and the signals
LARGE_CHUNK = 50  # the same for large images on a CPU, so that Ctrl-C takes effect within seconds
PROBE_STEP = 2**40  # a step that no training reaches; the estimates in the logs are for its batch


class OfflineTraining:
    """One agent, one dataset, one or more seeds, one folder."""

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
    ):
        """`part` selects the data to learn from. With `data_per_seed` = "own" it selects from each player's
        log, so that each seed gets, say, the best tenth of its own log."""
        agent.check(dataset.spec)
        check_seeds(seeds)
        refuse_other_use(Path(out))  # before the data is read
        before = begun(out, restart=restart)
        self.recording, self._asked, self.seeds = dataset.fingerprint, training, tuple(seeds)
        self.data = SeedLogs(dataset, training, self.seeds, part)
        scale = partial(suggested_scale, self.data.logs, training.gamma, agent)
        training = settled_for(training, dataset, environment, before, out, scale)
        self.training, self.environment = training, environment
        self.versions = {"dataset": self.data.fingerprint}
        if environment:
            trained_on = dataset.provenance.get("environment", "")
            self.versions |= check_playable(dataset.spec, environment, trained_on)
        self.learner = Learner(agent, dataset.spec)
        logger_classes(training.loggers)  # raises for an unknown logger
        self._check_memory()
        self.learner = replace(self.learner, inputs=self._inputs(before))
        self.folder = RunFolder(out, self._config(), restart=restart)

    def _check_memory(self) -> None:
        training, spec, seeds = self.training, self.data.dataset.spec, len(self.seeds)
        streamed = training.feed in ("memory", "compressed")  # such a feed shortens its chunks
        chunk = 1 if streamed else min(LARGE_CHUNK, training.evaluate_every, training.steps)
        played = training.evaluation_steps is None and self.environment
        check_memory(
            {
                "parameters": state_bytes(self.learner, seeds),
                "batches": batch_bytes(spec, training.batch, seeds, chunk),
                "evaluation": lanes_bytes(spec, seeds * training.episodes) if played else 0,
            }
        )

    def _inputs(self, before: dict) -> Inputs | None:
        """How observations are scaled: as in the run in the folder, or as the data demands."""
        kind = self.training.observations
        if "inputs" in before and before.get("training", {}).get("observations") == kind:
            return Inputs.from_config(before["inputs"], self.data.dataset.spec)
        return measured(self.data.logs, kind)

    def _config(self) -> dict:
        inputs = self.learner.inputs
        return {
            "kind": "offline",
            "seeds": list(self.seeds),
            "environment": self.environment or "",
            "dataset": {
                "path": str(self.data.dataset.path or "in memory"),
                "fingerprint": self.data.fingerprint,
                "recording": self.recording,  # the whole dataset, of which this may be a part
            },
            "spec": self.data.dataset.spec.as_json(),
            "agent": described(self.learner.agent),
            "training": as_config(self.training),
            **({"inputs": inputs.as_config()} if inputs else {}),
        }

    def run(self) -> TrainState:
        """Train to the end, from the newest checkpoint if there is one."""
        with self.folder:
            self.folder.record_versions(self.versions)
            found = self.folder.load_state(like=self.learner.shapes(self.seeds))
            for line in [] if found else warnings(self.data.dataset):
                log.warning("%s", line)
            step, state = found or (0, self.learner.init(self.seeds))
            self.folder.rewind(step)
            begins = step < self.training.steps
            for line in (
                remarks(self.data.logs, self.training, self.learner.agent, self._asked) if begins else []
            ):
                log.warning("%s", line)
            if step < self.training.steps or owes_evaluation(self.folder, self.training, step):
                state = self._train(step, state)
            self.folder.finish()
            return state

    def _train(self, step: int, state: TrainState) -> TrainState:
        feed, monitor = (
            feed_of(self.data.samplers(self.training), self.training.feed, self._memory()),
            self._monitor(),
        )
        held = self.data.held_out_samplers(self.training)
        held_out = HeldOut(self.learner, held) if held else None
        chunk, title = self._chunk(feed), short_name(self.learner.agent)
        title += f" x {len(self.seeds)} seeds" if len(self.seeds) > 1 else ""
        with (
            StopRequest() as stop,
            Services(
                self.folder, self.learner, self.training, step, stop, title=title, unit="update"
            ) as services,
        ):
            note = services.evaluate_if_owed(step, state.params)
            services.leave_if_asked(step)
            while step < self.training.steps:
                count = self._steps_to_take(step, chunk)
                items = feed.items(step, count)
                state, losses = advance(self.learner, state, feed.minibatch, feed.resident, items)
                step += count
                services.log(step, state, partial(self._figures, monitor, held_out, step, state, losses))
                if self.training.evaluates(step):
                    note = services.evaluate(step, state.params)
                services.show(step, note)
                if services.late or stop.received or step == self.training.steps:
                    services.save(step, state)
                services.leave_if_asked(step)
        return state

    def _figures(
        self, monitor: Monitor, held_out: HeldOut | None, step: int, state: TrainState, losses: dict
    ) -> list[dict]:
        known = len(monitor.alarms)
        rows = monitor.rows(step, state, losses)
        if held_out:
            rows = [{**row, **held} for row, held in zip(rows, held_out.rows(state), strict=True)]
            check_finite(step, self.seeds, rows)
        if len(monitor.alarms) > known:
            self.folder.write_alarms(monitor.alarms)
        return rows

    def _memory(self) -> int | None:
        return None if self.training.memory_gib is None else int(self.training.memory_gib * 2**30)

    def _monitor(self) -> Monitor:
        probes = [self._probe(sampler) for sampler in self.data.samplers(self.training)]
        largest = self.training.reward_scale * np.abs(self.data.dataset.timeline.reward).max()
        if self.training.clip_rewards is not None:
            largest = min(largest, self.training.clip_rewards)
        largest_return = largest / max(1 - self.training.gamma, 1e-6)
        known = self.folder.alarms(ALARM * largest_return)
        return Monitor(self.learner, self.seeds, np.stack(probes), largest_return, known)

    def _probe(self, sampler: Sampler) -> np.ndarray:
        """A fixed batch of observations of this seed's log."""
        positions = sampler.positions(PROBE_STEP, 1)[0]
        return transitions(sampler, positions, sampler.dataset.timeline.frames).observation

    def _chunk(self, feed: Feed) -> int:
        """The steps of a chunk; if possible they divide `evaluate_every`, so that one program is enough."""
        slow = math.prod(self.data.dataset.spec.observation_shape) > 10_000 and jax.default_backend() == "cpu"
        every = self.training.evaluate_every
        longest = min(LARGE_CHUNK if slow else CHUNK, feed.steps_at_once, every)
        whole = [size for size in range(longest // 4 + 1, longest + 1) if every % size == 0]
        return max(whole, default=longest)

    def _steps_to_take(self, step: int, chunk: int) -> int:
        """The steps to the next multiple of `chunk` after an evaluation, to the next evaluation, or to the
        end, whichever is nearest; so a continued run has the same chunks."""
        since = step % self.training.evaluate_every
        ahead = (self.training.evaluate_every - since, self.training.steps - step)
        return min(chunk - since % chunk, *ahead)
