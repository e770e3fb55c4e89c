"""Learning while playing: parallel lanes, a replay window, and a recorder that keeps every step."""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from optimist import envs
from optimist.agent import Agent
from optimist.agents import described
from optimist.data.recorder import Recorder, discard
from optimist.envs import Step
from optimist.errors import DivergedError, RunError
from optimist.training import checkpoint
from optimist.training.acting import Player, act_online
from optimist.training.curves import Curves
from optimist.training.evaluation import evaluate, mean_scores
from optimist.training.interrupt import StopRequest
from optimist.training.learner import Learner, TrainState, check_seeds
from optimist.training.progress import Bar
from optimist.training.replay import Replay
from optimist.training.run import RunFolder, as_config, demand, read_episodes, versions

LOG_SECONDS = 2.0


@dataclass(frozen=True)
class Collection:
    """How an online agent plays and learns; the defaults are the paper's, but for the number of lanes."""

    steps: int = 50_000_000  # agent steps of a seed over all its lanes, rounded up to whole vector steps
    lanes: int = 16  # environments side by side for each seed; the paper's own loop has one
    window: int = 1_000_000  # transitions the agent learns from
    warm_up: int = 20_000  # steps before it learns
    epsilon: float = 0.01  # random actions at the end of the decay
    epsilon_decay: int = 250_000  # steps from all random to `epsilon`, after the warm-up
    update_period: int = 4  # agent steps per gradient step
    batch: int = 32
    gamma: float = 0.99
    clip_rewards: float | None = 1.0
    evaluate_every: int | None = (
        None  # agent steps of a seed between evaluations; none: only its play is kept
    )
    episodes: int = 20  # full episodes per evaluation and seed
    evaluation_steps: int | None = None  # instead: full episodes until so many steps, as the paper counts
    evaluation_epsilon: float = 0.001  # random actions in evaluation
    checkpoint_seconds: float = 120.0

    def __post_init__(self):
        counts = (
            *("steps", "lanes", "window", "update_period", "batch"),
            *("evaluate_every", "episodes", "evaluation_steps"),
        )
        demand(self, counts, lambda n: isinstance(n, int) and n >= 1, "it is a whole number from 1 upwards")
        demand(
            self, ("epsilon", "gamma", "evaluation_epsilon"), lambda x: 0 <= x <= 1, "it lies between 0 and 1"
        )
        demand(self, ("clip_rewards",), lambda x: 0 < x < math.inf, "it is more than 0")
        demand(self, ("warm_up", "epsilon_decay", "checkpoint_seconds"), lambda x: x >= 0, "it is at least 0")

    def evaluates(self, step: int) -> bool:
        """Is an evaluation due at this agent step? Vector steps may pass over the exact one."""
        if self.evaluate_every is None or not step:
            return False
        passed = step // self.evaluate_every - (step - self.lanes) // self.evaluate_every
        return passed > 0 or step >= self.steps

    def exploration(self, step: int) -> float:
        """Epsilon at this agent step: 1 through the warm-up, then falling linearly."""
        left = 1 - (step - self.warm_up) / max(self.epsilon_decay, 1)
        return self.epsilon + (1 - self.epsilon) * float(np.clip(left, 0, 1))


class Moment(NamedTuple):
    """One step of every lane."""

    frame: np.ndarray
    shown: Any  # the same on the device: it travels there once, to act on and to learn from
    action: np.ndarray
    taken: Step


class LaneReturns:
    """The returns of the episodes that ended lately, seed by seed."""

    def __init__(self, seeds: int, lanes: int):
        self._running, self._recent = np.zeros(seeds * lanes), [np.zeros(0)] * seeds

    def add(self, reward: np.ndarray, ended: np.ndarray) -> None:
        self._running += reward
        if not ended.any():
            return
        seed_of_lane = np.arange(len(ended)) * len(self._recent) // len(ended)
        for seed, before in enumerate(self._recent):
            self._recent[seed] = np.append(before, self._running[ended & (seed_of_lane == seed)])[-100:]
        self._running[ended] = 0

    def means(self) -> list[float]:
        return [float(returns.mean()) if len(returns) else 0.0 for returns in self._recent]


class OnlineTraining:
    """One agent playing one environment; `out` becomes a dataset, `out/agent` the run of who played.

    Several seeds play and learn side by side in one program, each in lanes of its own, and are recorded in
    one dataset: `Dataset.played_by` tells them apart."""

    def __init__(
        self,
        agent: Agent,
        environment: str,
        collection: Collection,
        *,
        out: str | Path,
        seeds: tuple[int, ...] = (0,),
        restart: bool = False,
    ):
        check_seeds(seeds)
        self.path, self.seeds, self.collection = Path(out), tuple(seeds), collection
        self.lanes = collection.lanes * len(seeds)
        self.play = envs.make(environment, lanes=self.lanes, seed=seeds[0])
        agent.check(self.play.spec)
        self.learner = Learner(agent, self.play.spec)
        if not restart:
            self._refuse_recording_of_others()
        self.folder = RunFolder(self.path / "agent", self._config(environment), restart=restart)
        if restart:
            discard(self.path)

    def _refuse_recording_of_others(self) -> None:
        """Going on means cutting the recording back to the last checkpoint; without one, to nothing."""
        if (self.path / "manifest.json").exists() and not (self.path / "agent" / "config.toml").exists():
            raise RunError(
                f"{self.path} holds a recording that no run here made: choose another --out, "
                "or write over it with --restart"
            )

    def _config(self, environment: str) -> dict:
        return {
            "kind": "online",
            "seeds": list(self.seeds),
            "environment": environment,
            "spec": self.learner.spec.as_json(),
            "agent": described(self.learner.agent),
            "training": as_config(self.collection),
        }

    def run(self) -> TrainState:
        """Play to the end, from the last checkpoint on if there is one.

        A resumed run begins new episodes, because environments cannot be saved in the middle of one.
        """
        with self.folder, StopRequest() as stop:
            self.folder.record_versions(self.play.versions())
            found = checkpoint.load_state(self.folder.checkpoints, like=self.learner.shapes(self.seeds))
            step, state = found or (0, self.learner.init(self.seeds))
            with self._recorder() as recorder:
                step = recorder.truncate(step * len(self.seeds)) // len(self.seeds)
                self.folder.rewind(step)
                replay = Replay(self.learner, state, self.collection, self.seeds)
                if step < self.collection.steps or self._owes_evaluation(step):
                    replay.refill(self.path, step)
                    self._play(step, replay, recorder, stop)
            self.folder.finish()
            return replay.state

    def _recorder(self) -> Recorder:
        config = self.folder.config
        provenance = {
            "environment": config["environment"],
            "agent": config["agent"],
            "collection": config["training"],
            "seeds": list(self.seeds),
            "versions": {**versions(), **self.play.versions()},
        }
        return Recorder(self.path, self.learner.spec, lanes=self.lanes, provenance=provenance)

    def _play(self, step: int, replay: Replay, recorder: Recorder, stop: StopRequest) -> None:
        player = Player(self.learner, self.lanes, len(self.seeds), act_online)
        returns = LaneReturns(len(self.seeds), self.collection.lanes)
        key = jax.random.PRNGKey(self.seeds[0])
        # Which episode every lane is in; a resumed run draws mixtures of its own.
        episodes = np.full((len(self.seeds), self.collection.lanes), step, np.int32)
        frame, began = self.play.reset(), np.ones(self.lanes, bool)
        saved = logged = time.monotonic()
        step_logged = step
        moment: Moment | None = None  # the last step, while it is nowhere but here
        title = f"{self.folder.config['agent']['name']} plays {self.play.name}"
        with (
            Bar(title, self.collection.steps, "step", step) as bar,
            Curves(self.folder.path, self.seeds, step) as curves,
            ThreadPoolExecutor(1, "learner") as other_thread,
        ):
            if self._owes_evaluation(step):
                self._evaluate(step, replay, curves, stop)
                stop.leave(f"step {step:,} of {self.collection.steps:,}")
            while step < self.collection.steps:
                epsilon = self.collection.exploration(step)
                shown = jax.device_put(frame)
                chosen = player(replay.state.params, shown, began, epsilon, key, step, episodes)
                # While the environments play this step, the one before is kept and learned from.
                behind = other_thread.submit(self._digest, moment, replay, recorder, step)
                action = np.asarray(chosen).reshape(self.lanes, *chosen.shape[2:])
                taken = self.play.step(action)
                behind.result()
                moment = Moment(frame, shown, action, taken)
                step += self.collection.lanes
                frame, began = taken.observation, taken.terminal | taken.truncated
                returns.add(taken.reward, began)
                episodes = episodes + began.reshape(episodes.shape)
                if self.collection.evaluates(step):
                    self._evaluate(step, replay, curves, stop)
                now = time.monotonic()
                saves = stop.received or now - saved > self.collection.checkpoint_seconds
                if saves or now - logged > LOG_SECONDS or step >= self.collection.steps:
                    rate = (step - step_logged) / (now - logged)
                    logged, step_logged = now, step
                    figures = {"epsilon": epsilon, "steps_per_second": rate}
                    self._log(step, replay, figures, returns.means(), curves)
                    bar.update(step, f"return {np.mean(returns.means()):.2f}")
                if saves:
                    saved = now
                    self._digest(moment, replay, recorder)
                    moment = None
                    self._save(step, replay, recorder)
                stop.leave(f"step {step:,} of {self.collection.steps:,}")
        self._digest(moment, replay, recorder, step)
        self._save(step, replay, recorder)

    def _digest(self, moment: Moment | None, replay: Replay, recorder: Recorder, due: int | None = None):
        """Keep a step, and learn what is due at step `due`: that comes before the log, because an accelerator
        can go on with it alone."""
        if moment:
            replay.add(moment.shown, moment.action, *moment.taken[1:4])
        if due is not None:
            replay.learn(due)
        if moment:
            recorder.add(moment.frame, moment.action, *moment.taken[1:])

    def _owes_evaluation(self, step: int) -> bool:
        """Was the run stopped while it was being evaluated?"""
        rows = read_episodes(self.folder.path) if self.collection.evaluates(step) else []
        return self.collection.evaluates(step) and all(row.step != step for row in rows)

    def _evaluate(self, step: int, replay: Replay, curves: Curves, stop: StopRequest) -> None:
        rows = evaluate(
            self.learner,
            replay.state.params,
            self.folder.config["environment"],
            seeds=self.seeds,
            episodes=self.collection.episodes,
            steps=self.collection.evaluation_steps,
            epsilon=self.collection.evaluation_epsilon,
            step=step,
            stop=lambda: bool(stop.received),
        )
        self.folder.add_episodes(rows)
        means = mean_scores(rows)
        curves.add([{"step": step, "seed": seed, "evaluation": mean} for seed, mean in means.items()])

    def _log(
        self, step: int, replay: Replay, figures: dict[str, float], returns: list[float], curves: Curves
    ) -> None:
        rows = [
            {"step": step, "seed": seed, "return": mean, **figures, **losses}
            for seed, mean, losses in zip(self.seeds, returns, replay.losses(), strict=True)
        ]
        if not all(math.isfinite(value) for row in rows for value in row.values()):
            checkpoint.save_state(self.folder.path / "diverged", step, replay.state)
            raise DivergedError(
                f"the loss is not finite before step {step:,}: the state is kept in agent/diverged/; "
                "try a smaller learning rate or clipped rewards"
            )
        self.folder.add_metrics(rows)
        curves.add(rows)

    def _save(self, step: int, replay: Replay, recorder: Recorder) -> None:
        """The log first: a checkpoint never knows of steps that the log does not have."""
        recorder.flush()
        checkpoint.save_state(self.folder.checkpoints, step, replay.state)
