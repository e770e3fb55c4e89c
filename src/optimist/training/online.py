"""Training online: parallel lanes, a replay window, and a recorder of every step.

A turn plays a few rows and takes the gradient steps that they make due (`play/playing.py`), then evaluates,
logs, saves and stops as offline training does (`services.py`).
"""

import logging
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from optimist import envs
from optimist.agents import described, short_name
from optimist.agents._agent import Agent
from optimist.data.disk import manifest
from optimist.data.disk.appending import APPENDED
from optimist.data.disk.lock import discard, refuse_run_or_study
from optimist.data.recorder import DepartedError, Recorder
from optimist.errors import RunError, UsageError, command_line
from optimist.training.beginning import Beginning
from optimist.training.learner import Learner, TrainState, check_seeds
from optimist.training.loggers import logger_classes
from optimist.training.measures import check_finite
from optimist.training.memory import check_memory_to_play
from optimist.training.play.playing import Playing
from optimist.training.play.replay import Replay
from optimist.training.resolve import resolve_for_environment
from optimist.training.services import Services, owes_evaluation
from optimist.training.settings import Collection
from optimist.training.storage import checkpoint
from optimist.training.storage.configuration import as_config, record_versions, versions
from optimist.training.storage.run_folder import RunFolder
from optimist.training.terminal import StopRequest, say

LOG_SECONDS = 2.0
SHARE_OF_TIME = 0.01  # largest share of the time for checkpoints that are saved with a shard
UPDATES_AT_ONCE = 250  # gradient steps between checks of the signals, while a resumed run catches up
log = logging.getLogger("optimist")


class Start(NamedTuple):
    """The point at which a collection starts or continues."""

    step: int
    state: TrainState
    same_episodes: bool
    play: dict[str, np.ndarray] | None  # the saved state of play; None: play starts from the beginning


class Watch:
    """What is seen of play between two rows of the metrics: its rate, and the returns of the last 100
    episodes of each seed."""

    def __init__(self, seeds: int, lanes: int, step: int):
        self._running, self._recent = np.zeros(seeds * lanes), [np.zeros(0)] * seeds
        self._logged, self._step = time.monotonic(), step

    def see(self, rewards: np.ndarray, ended: np.ndarray) -> None:
        """Rows of all lanes, (rows, lanes)."""
        seed_of_lane = np.arange(len(self._running)) * len(self._recent) // len(self._running)
        for reward, over in zip(rewards, ended, strict=True):
            self._running += reward
            if over.any():
                for seed, before in enumerate(self._recent):
                    returns = self._running[over & (seed_of_lane == seed)]
                    self._recent[seed] = np.append(before, returns)[-100:]
                self._running[over] = 0

    def returns(self) -> list[float | None]:
        """The mean return of each seed; None if it ended no episode yet."""
        return [float(returns.mean()) if len(returns) else None for returns in self._recent]

    def is_due(self) -> bool:
        return time.monotonic() - self._logged > LOG_SECONDS

    def rate(self, step: int) -> float:
        """Steps per second since the last row, which is this one from now on."""
        now = time.monotonic()
        rate = (step - self._step) / (now - self._logged)
        self._logged, self._step = now, step
        return rate


class OnlineTraining:
    """One agent that plays one environment; `out` becomes a dataset, `out/agent` the run folder of the agent.

    Several seeds play and learn in one program, each in its own lanes, and are recorded in one dataset;
    `Dataset.played_by` selects a seed. With a `start` the agents go on from a run."""

    def __init__(
        self,
        agent: Agent,
        environment: str,
        collection: Collection,
        *,
        out: str | Path,
        seeds: tuple[int, ...] = (0,),
        restart: bool = False,
        start: Beginning | None = None,
    ):
        check_seeds(seeds)
        if collection.mix and start is None:
            raise UsageError("mix is a share of the log of another run: name that run with --from RUN")
        refuse_run_or_study(Path(out))
        collection = resolve_for_environment(collection, environment)
        self.path, self.seeds, self.collection = Path(out), tuple(seeds), collection
        self.lanes = collection.lanes * len(seeds)
        logger_classes(collection.loggers)  # raises for an unknown logger
        continued = start.learner(agent, environment) if start else None
        check_memory_to_play(agent, environment, collection, len(seeds))
        self.play = envs.make(environment, lanes=self.lanes, seed=seeds[0])
        self.masked = envs.has_masks(environment)
        agent.check(self.play.spec)
        self.start, learner = start, continued or Learner(agent, self.play.spec)
        self.learner = replace(learner, precision=collection.precision)
        if not restart:
            self._refuse_other_recordings()
        self.folder = RunFolder(self.path / "agent", self._config(environment), restart=restart)
        if restart:
            discard(self.path)

    def _refuse_other_recordings(self) -> None:
        """Raise RunError for a recording without the run that made it, because only that run may continue it;
        and if steps are asked for beyond those of the agent, but others were appended: which steps of the
        folder are its own is no longer known."""
        agent = self.path / "agent"
        if (self.path / "manifest.json").exists() and not (agent / "config.toml").exists():
            raise RunError(
                f"{self.path} holds a recording without the run that made it: choose another --out, "
                "or overwrite it with --restart"
            )
        saved = [checkpoint.step_of(path) for path in checkpoint.newest_first(agent / "checkpoints")]
        played = max(saved, default=0)
        if played and played < self.collection.steps and APPENDED in manifest.read(self.path).provenance:
            raise RunError(
                f"steps were appended to {self.path} after its agent had played {played:,}, so it cannot go "
                f"on to {self.collection.steps:,}: collect into another folder, and append that log with "
                f"{command_line('data', 'append', 'NEW', '--to', self.path)}"
            )

    def _config(self, environment: str) -> dict:
        return {
            "kind": "online",
            "seeds": list(self.seeds),
            "environment": environment,
            "spec": self.learner.spec.as_json(),
            "agent": described(self.learner.agent),
            "training": as_config(self.collection),
            **({"masks": True} if self.masked else {}),
            **({"inputs": self.learner.inputs.as_config()} if self.learner.inputs else {}),
            **({"start": self.start.described(bool(self.collection.mix))} if self.start else {}),
        }

    def run(self) -> TrainState:
        """Play to the end. A resumed run keeps every recorded step. If the environment can be restored, its
        result has the same bits as without the interruption; otherwise new episodes begin."""
        with self.folder, closing(self.play), StopRequest() as stop:
            record_versions(self.folder.path, self.folder.config, self.play.versions())
            if self.start:
                say(self.start.in_words(self.collection))
            try:
                state = self._continue(stop, same_episodes=getattr(self.play, "resumable", False))
            except DepartedError:
                log.warning("%s: play differs from the recorded steps: new episodes begin", self.path)
                state = self._continue(stop, same_episodes=False)
            self.folder.finish()
        learns, warm_up = self.learner.agent.objectives(self.learner.spec), self.collection.warm_up
        if self.collection.steps <= warm_up and not int(state.step) and learns:
            log.warning(
                "nothing was learned: the warm-up of %s random steps was not passed; choose more --steps, or "
                "a smaller --warm-up",
                f"{warm_up:,}",
            )
        return state

    def _continue(self, stop: StopRequest, *, same_episodes: bool) -> TrainState:
        with self._recorder() as recorder:
            start = self._start(recorder, same_episodes)
            self.folder.rewind(start.step)
            logs = self.start.logs() if self.start and self.collection.mix else None
            replay = Replay(self.learner, start.state, self.collection, self.seeds, logs, masked=self.masked)
            if start.step < self.collection.steps or owes_evaluation(
                self.folder, self.collection, start.step
            ):
                replay.refill(self.path, start.step, goes_on=start.same_episodes)
                self._play(start, replay, recorder, stop)
            return replay.state

    def _start(self, recorder: Recorder, same_episodes: bool) -> Start:
        """The newest checkpoint if its episodes can continue; otherwise its parameters at the recording's
        end."""
        found = self.folder.load_state(like=self.learner.shapes(self.seeds))
        if found is None and recorder.steps:
            raise RunError(
                f"{self.path} holds {recorder.steps:,} recorded steps and no checkpoint of the agent that "
                "played them: choose another --out, or discard them with --restart"
            )
        if found is None:  # saved before anything is recorded: a recording always has a checkpoint
            found = 0, self.start.copied_state() if self.start else self.learner.init(self.seeds)
            self.folder.save_state(*found)
        (learned, state), recorded = found, recorder.steps // len(self.seeds)
        if APPENDED in recorder.provenance:
            return Start(learned, state, same_episodes=False, play=None)
        play, folder = None, self.folder
        if same_episodes:
            play = checkpoint.load_play(folder.checkpoints, learned, folder.fingerprint)
        known = same_episodes and (play is not None or learned == 0)  # play begins the same each time
        same = known and recorder.go_on(learned * len(self.seeds))
        if learned != recorded:
            side = "before" if learned < recorded else "after"
            then = "the steps between are played again" if same else "new episodes begin there"
            apart = abs(recorded - learned) * len(self.seeds)
            line = "%s: the newest checkpoint is %s steps %s the end of the recording, which is kept; %s"
            log.warning(line, self.path, f"{apart:,}", side, then)
        return Start(learned if same else recorded, state, same, play)

    def _recorder(self) -> Recorder:
        config = self.folder.config
        provenance = {
            "environment": config["environment"],
            "agent": config["agent"],
            "collection": config["training"],
            "seeds": list(self.seeds),
            "versions": {**versions(), **self.play.versions()},
            **({"start": config["start"]} if "start" in config else {}),
        }
        if encoding := getattr(self.play, "encoding", ""):
            provenance["observations"] = encoding
        return Recorder(self.path, self.learner.spec, lanes=self.lanes, provenance=provenance)

    def _play(self, start: Start, replay: Replay, recorder: Recorder, stop: StopRequest) -> None:
        step, watch = start.step, Watch(len(self.seeds), self.collection.lanes, start.step)
        title = f"{short_name(self.learner.agent)} plays {self.play.name}"
        shards_begin = recorder.whole_steps // len(self.seeds)
        common = (self.folder, self.learner, self.collection, step, stop)
        with Services(*common, title=title, unit="step") as services:
            if not start.same_episodes:
                self._catch_up(step, replay, recorder, services)
            with Playing(
                self.learner, self.play, replay, recorder, self.collection, self.seeds, step
            ) as playing:
                if start.same_episodes and start.play is not None:
                    playing.restore(start.play)
                services.evaluate_if_owed(step, replay.state.params)
                services.leave_if_asked(step)
                while step < self.collection.steps:
                    rewards, ended = playing.go(step)
                    watch.see(rewards, ended)
                    step += len(rewards) * self.collection.lanes
                    if self.collection.evaluates(step):
                        services.evaluate(step, replay.state.params)
                    due = self._checkpoint_is_due(services, recorder, step - shards_begin, len(rewards))
                    last = step >= self.collection.steps
                    saves = services.stop.received or (due and not last)
                    if saves or last or watch.is_due():
                        self._log(step, replay, watch, services)
                    if saves:
                        playing.settle()
                        recorder.flush()  # a checkpoint must not contain steps that the recording lacks
                        services.save(step, replay.state, playing.saved() if playing.resumable else None)
                    services.leave_if_asked(step)
                playing.settle(learn_at=step)
            recorder.flush()
            services.save(step, replay.state)

    def _checkpoint_is_due(self, services: Services, recorder: Recorder, steps: int, rows: int) -> bool:
        """Is it time for a checkpoint, after so many steps in these shards, if each turn plays so many rows?

        A resumed run keeps every recorded step and starts from the newest checkpoint, so it loses the
        learning between the two. Therefore a checkpoint is saved with each shard if that is cheap, and at
        least every `checkpoint_seconds`."""
        cheap = services.takes_at_most(SHARE_OF_TIME)
        filled = steps // self.collection.lanes
        # A shard was filled within the last turn: the next one has few rows, which are soon written.
        full = filled >= recorder.shard_rows and filled % recorder.shard_rows < rows
        return services.late or (cheap and full)

    def _log(self, step: int, replay: Replay, watch: Watch, services: Services) -> None:
        returns, epsilon = watch.returns(), self.collection.exploration(step - self.collection.lanes)
        common = {"epsilon": epsilon, "steps_per_second": watch.rate(step)}

        def rows() -> list[dict]:
            rows = [
                ({} if mean is None else {"play/return": mean}) | common | losses
                for mean, losses in zip(returns, replay.losses(), strict=True)
            ]
            check_finite(step, self.seeds, rows)
            return rows

        services.log(step, replay.state, rows)
        known = [mean for mean in returns if mean is not None]
        services.show(step, f"return {np.mean(known):.2f}" if known else "no episode has ended yet")

    def _catch_up(self, step: int, replay: Replay, recorder: Recorder, services: Services) -> None:
        """Take the gradient steps that belong to steps recorded after the newest checkpoint."""
        while replay.due(step) > UPDATES_AT_ONCE:
            replay.learn(step, UPDATES_AT_ONCE)
            if services.stop.received or services.late:
                recorder.flush()
                services.save(step, replay.state)
            services.leave_if_asked(step)
