"""Training on a fixed dataset; the environment is used only for evaluation."""

import hashlib
import logging
import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import jax
import numpy as np

from optimist.agents import described, short_name
from optimist.agents._agent import Agent
from optimist.data.dataset import Dataset
from optimist.data.paper_sampling import SAMPLERS
from optimist.data.sampling import Sampler, transitions
from optimist.data.warnings import warnings
from optimist.errors import UsageError, did_you_mean, renamed
from optimist.training.automatic import (
    AUTO,
    CLIPPED,
    SCALED,
    check_clipping,
    clipping,
    is_own,
    is_scale,
    scaling,
    settled,
)
from optimist.training.evaluation import check_playable
from optimist.training.feeding import Feed, feed_of
from optimist.training.held_out import HeldOut
from optimist.training.inputs import Inputs, check_kind, measured
from optimist.training.interrupt import StopRequest
from optimist.training.learner import Learner, TrainState, advance, check_seeds
from optimist.training.loggers import USUAL, logger_classes
from optimist.training.monitor import ALARM, Monitor, check_finite
from optimist.training.rewards import remarks, suggested_scale
from optimist.training.services import Services, owes_evaluation
from optimist.training.sizes import batch_bytes, check_memory, lanes_bytes, state_bytes
from optimist.training.storage.run_folder import RunFolder, as_config, begun, demand, refuse_other_use

log = logging.getLogger("optimist")
CHUNK = 250  # gradient steps between checks of the clock, the losses and the signals
LARGE_CHUNK = 50  # the same for large images on a CPU, so that Ctrl-C takes effect within seconds
LOGS = ("whole", "own")
MOST_STEPS_AHEAD = 1000  # largest n of an n-step return: each step takes a pass over all transitions
HELD_OUT_BATCH = 256  # transitions
PROBE_STEP = 2**40  # a step that no training reaches; the estimates in the logs are for its batch


@dataclass(frozen=True)
class Training:
    """How an agent is trained on a dataset; the defaults are the paper's."""

    steps: Annotated[int, "gradient steps"] = 12_500_000  # the paper's 1X
    evaluate_every: Annotated[int, "gradient steps between evaluations"] = 62_500
    episodes: Annotated[int, "full episodes per evaluation and seed"] = 20
    evaluation_steps: Annotated[int | None, "instead of episodes: full episodes until so many steps"] = None
    epsilon: Annotated[float, "share of random actions in evaluation"] = 0.001
    batch: Annotated[int, "transitions in a minibatch"] = 32
    gamma: Annotated[float, "the discount of a step"] = 0.99
    n_step: Annotated[int, "rewards summed before the bootstrap"] = 1
    clip_rewards: Annotated[float | Literal["auto"] | None, CLIPPED] = "auto"
    reward_scale: Annotated[float | str, SCALED] = AUTO
    observations: Annotated[
        str,
        "scale vectors: standard (mean 0, deviation 1), range (-1 to 1), none, or auto: standard "
        "unless the log is by optimist collect",
    ] = "auto"
    hold_out: Annotated[float, "share of the episodes to measure losses on, and not to learn from"] = 0.0
    sampling: Annotated[str, "uniform, or five-buffers as in the released code"] = "uniform"
    data_per_seed: Annotated[str, "whole, or own: the log of the seed's own player"] = "whole"
    feed: Annotated[str, "where the data is kept: device, memory, compressed, or auto"] = "auto"
    memory_gib: Annotated[float | None, "memory for decoded frames; none: half of the machine's"] = None
    checkpoint_seconds: Annotated[float, "seconds between checkpoints"] = 60.0
    keep_policies: Annotated[float, "GiB for the policies of the evaluations; 0: none is kept"] = 2.0
    loggers: Annotated[str, "loggers of the figures: jsonl, tensorboard, module:Name"] = USUAL
    log: InitVar[str | None] = None  # the former name of data_per_seed
    home: InitVar[str | None] = None  # the former name of feed
    unit: ClassVar[str] = "gradient step"

    def __post_init__(self, log: str | None, home: str | None):
        for old, new, value in (("log", "data_per_seed", log), ("home", "feed", home)):
            if value is not None:
                renamed(old, new)
                object.__setattr__(self, new, value)
        counts = ("steps", "evaluate_every", "episodes", "evaluation_steps", "batch", "n_step")
        demand(self, counts, lambda n: isinstance(n, int) and n >= 1, "it must be a whole number above 0")
        demand(self, ("n_step",), lambda n: n <= MOST_STEPS_AHEAD, f"it must be at most {MOST_STEPS_AHEAD}")
        demand(self, ("epsilon", "gamma"), lambda x: 0 <= x <= 1, "it must be between 0 and 1")
        demand(self, ("memory_gib",), lambda x: 0 < x < math.inf, "it must be above 0")
        demand(self, ("reward_scale",), is_scale, "it must be above 0, or auto")
        check_clipping(self)
        check_kind(self.observations)
        demand(self, ("hold_out",), lambda x: 0 <= x < 1, "it must be at least 0 and below 1")
        demand(self, ("checkpoint_seconds", "keep_policies"), lambda x: x >= 0, "it must be at least 0")
        if self.sampling not in SAMPLERS:
            raise UsageError(f'no sampling "{self.sampling}": {did_you_mean(self.sampling, SAMPLERS)}')
        if self.data_per_seed not in LOGS:
            raise UsageError(
                f'no data_per_seed "{self.data_per_seed}": {did_you_mean(self.data_per_seed, LOGS)}'
            )

    @property
    def evaluation_epsilon(self) -> float:
        return self.epsilon

    def evaluates(self, step: int) -> bool:
        """Is an evaluation due at this gradient step?"""
        return step > 0 and (step % self.evaluate_every == 0 or step == self.steps)


def settled_for(
    training: Training,
    dataset: Dataset,
    environment: str | None,
    before: dict,
    out: str | Path,
    scale: Callable[[], float] = lambda: 1.0,
) -> Training:
    """The training with every "auto" replaced by its value for this dataset; `before` is the configuration of
    the run that continues in `out`. `scale` finds the scale for rewards that are not clipped, of a log that
    is not our own."""
    clip = clipping(dataset.provenance, environment)
    clipped = clip if training.clip_rewards == AUTO else training.clip_rewards
    as_logged = training.reward_scale != AUTO or clipped is not None or is_own(dataset.provenance)
    found = {
        "clip_rewards": clip,
        "observations": scaling(dataset.spec, dataset.provenance),
        "reward_scale": 1.0 if as_logged else scale(),
    }
    return settled(training, found, before.get("training"), out)


def whole(dataset: Dataset) -> Dataset:
    """The whole dataset: the default part."""
    return dataset


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
        self.dataset, held = self._divided(part(dataset))
        self.logs, self.held = [self.dataset] * len(self.seeds), [held] * len(self.seeds)
        if training.data_per_seed == "own":
            own = [self._divided(part(dataset.played_by(seed))) for seed in self.seeds]
            self.logs, self.held = [kept for kept, _ in own], [held for _, held in own]
        scale = partial(suggested_scale, self.logs, training.gamma, agent)
        training = settled_for(training, dataset, environment, before, out, scale)
        self.training, self.environment = training, environment
        self.fingerprint = self.dataset.fingerprint
        if training.data_per_seed == "own" and self.fingerprint != self.recording:  # a part of each log
            joined = " ".join(log.fingerprint for log in self.logs)
            self.fingerprint = hashlib.sha256(joined.encode()).hexdigest()
        self.versions = {"dataset": self.fingerprint}
        if environment:
            trained_on = dataset.provenance.get("environment", "")
            self.versions |= check_playable(dataset.spec, environment, trained_on)
        self.learner = Learner(agent, dataset.spec)
        logger_classes(training.loggers)  # raises for an unknown logger
        self._check_memory()
        self.learner = replace(self.learner, inputs=self._inputs(before))
        self.folder = RunFolder(out, self._config(), restart=restart)

    def _divided(self, log: Dataset) -> tuple[Dataset, Dataset | None]:
        """What is learned from, and what is held back."""
        return log.hold_out(self._asked.hold_out) if self._asked.hold_out else (log, None)

    def _check_memory(self) -> None:
        training, spec, seeds = self.training, self.dataset.spec, len(self.seeds)
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
            return Inputs.from_config(before["inputs"], self.dataset.spec)
        return measured(self.logs, kind)

    def _config(self) -> dict:
        inputs = self.learner.inputs
        return {
            "kind": "offline",
            "seeds": list(self.seeds),
            "environment": self.environment or "",
            "dataset": {
                "path": str(self.dataset.path or "in memory"),
                "fingerprint": self.fingerprint,
                "recording": self.recording,  # the whole dataset, of which this may be a part
            },
            "spec": self.dataset.spec.as_json(),
            "agent": described(self.learner.agent),
            "training": as_config(self.training),
            **({"inputs": inputs.as_config()} if inputs else {}),
        }

    def run(self) -> TrainState:
        """Train to the end, from the newest checkpoint if there is one."""
        with self.folder:
            self.folder.record_versions(self.versions)
            found = self.folder.load_state(like=self.learner.shapes(self.seeds))
            for line in [] if found else warnings(self.dataset):
                log.warning("%s", line)
            step, state = found or (0, self.learner.init(self.seeds))
            self.folder.rewind(step)
            begins = step < self.training.steps
            for line in remarks(self.logs, self.training, self.learner.agent, self._asked) if begins else []:
                log.warning("%s", line)
            if step < self.training.steps or owes_evaluation(self.folder, self.training, step):
                state = self._train(step, state)
            self.folder.finish()
            return state

    def _train(self, step: int, state: TrainState) -> TrainState:
        feed, monitor = feed_of(self._samplers(), self.training.feed, self._memory()), self._monitor()
        held_out = self._held_out()
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

    def _samplers(self) -> list[Sampler]:
        training = self.training
        clip: Any = training.clip_rewards  # settled: a number or None
        scale: Any = training.reward_scale  # settled: a number
        settings = (training.batch, training.gamma, training.n_step, clip)
        return [
            SAMPLERS[training.sampling](log, *settings, seed, scale, self.learner.agent.reads_next_action)
            for log, seed in zip(self.logs, self.seeds, strict=True)
        ]

    def _held_out(self) -> HeldOut | None:
        training = self.training
        clip: Any = training.clip_rewards
        scale: Any = training.reward_scale
        settings = (HELD_OUT_BATCH, training.gamma, training.n_step, clip)
        samplers = [
            Sampler(held, *settings, seed, scale, self.learner.agent.reads_next_action)
            for held, seed in zip(self.held, self.seeds, strict=True)
            if held
        ]
        return HeldOut(self.learner, samplers) if samplers else None

    def _memory(self) -> int | None:
        return None if self.training.memory_gib is None else int(self.training.memory_gib * 2**30)

    def _monitor(self) -> Monitor:
        probes = [self._probe(sampler) for sampler in self._samplers()]
        largest = self.training.reward_scale * np.abs(self.dataset.timeline.reward).max()
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
        slow = math.prod(self.dataset.spec.observation_shape) > 10_000 and jax.default_backend() == "cpu"
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
