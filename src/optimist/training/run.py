"""A run in hand: its parameters, policy and scores."""

import contextlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import jax
import numpy as np

from optimist import envs
from optimist.agents import short_name
from optimist.data.dataset import Dataset
from optimist.data.transition import whole_number
from optimist.envs._environment import named_failures
from optimist.errors import DataError, RunError, UsageError
from optimist.training.evaluation import EpisodeScore, check_playable, evaluate, mean_scores
from optimist.training.learner import Learner
from optimist.training.play.acting import POLICY, Player, Policy
from optimist.training.sizes import check_memory, lanes_bytes
from optimist.training.storage.configuration import IN_MEMORY
from optimist.training.storage.policies import kept_steps
from optimist.training.storage.run_folder import read_episodes

OWN_PLAY = "its own play"  # the data of an online agent


@dataclass(frozen=True)
class Run:
    """The contents of a run folder; `run.policy(observation)` is an action."""

    path: Path
    learner: Learner
    environment: str
    seeds: tuple[int, ...]
    step: int
    params: dict  # every leaf with a leading axis of seeds
    data: str  # the path of the dataset that it learned from, or what it was instead
    masked: bool = False  # did that have masks of allowed actions?

    def __repr__(self) -> str:
        lines = {
            "agent": short_name(self.learner.agent),
            "data": self.data,
            "environment": self.environment or "none",
            "steps": f"{self.step:,}",
            "seeds": ", ".join(map(str, self.seeds)),
            "return": self._scores(),
        }
        return "\n".join([f"Run {self.path}", *(f"  {name:12} {text}" for name, text in lines.items())])

    def _scores(self) -> str:
        """The last and the best evaluation, each the mean over the seeds."""
        means = list[float]()
        with contextlib.suppress(RunError):
            means = list(mean_returns(self.episodes()).values())
        return f"last {means[-1]:.2f}, best {max(means):.2f}" if means else "not evaluated"

    @property
    def kept(self) -> list[int]:
        """The steps whose policies are kept: `optimist.load(path, step=...)` loads one of them."""
        return kept_steps(self.path)

    @cached_property
    def policy(self) -> Policy:
        """The first seed's greedy policy."""
        return self.policy_of(self.seeds[0])

    def policy_of(self, seed: int) -> Policy:
        return Policy(self.learner, self.params_of(seed), masked=self.masked)

    def params_of(self, seed: int) -> dict:
        if seed not in self.seeds:
            raise UsageError(f"{self.path} has no seed {seed}: it has {', '.join(map(str, self.seeds))}")
        place = self.seeds.index(seed)
        # By NumPy: an index into a JAX array is a program to compile, one for each shape.
        return jax.device_put(jax.tree.map(lambda leaf: np.asarray(leaf)[place], self.params))

    def alone(self, seed: int) -> "Run":
        """The same run with the policy of one seed only."""
        params = jax.tree.map(lambda leaf: leaf[None], self.params_of(seed))
        return replace(self, seeds=(seed,), params=params)

    def log(self) -> Dataset:
        """The dataset that it learned from; of an online agent the recording of its play."""
        if self.data == IN_MEMORY:
            raise DataError(f"{self.path} learned from data in memory")
        return Dataset.open(self.path.parent if self.data == OWN_PLAY else self.data)

    def episodes(self) -> list[EpisodeScore]:
        """The evaluation episodes during training."""
        return read_episodes(self.path)

    def evaluate(
        self, episodes: int = 100, epsilon: float = 0.001, environment: str = "", steps: int | None = None
    ) -> list[EpisodeScore]:
        """New episodes of every seed: `episodes` of them, or, with `steps`, until so many steps are done."""
        episodes = whole_number("episodes", episodes)
        steps = None if steps is None else whole_number("steps", steps)
        if episodes < 1 or not 0 <= epsilon <= 1:
            raise UsageError(
                f"{episodes} episodes at epsilon {epsilon}: choose at least 1, and an epsilon between 0 and 1"
            )
        if steps is not None and steps < 1:
            raise UsageError(f"an evaluation of {steps} steps: choose at least 1")
        if steps is None:
            check_memory({"lanes": lanes_bytes(self.learner.spec, len(self.seeds) * episodes)})
        return evaluate(
            self.learner,
            self.params,
            self.playable(environment),
            seeds=self.seeds,
            episodes=episodes,
            steps=steps,
            epsilon=epsilon,
            step=self.step,
        )

    def pictures(
        self, seed: int | None = None, frames: int = 400, epsilon: float = 0.001, environment: str = ""
    ) -> list[np.ndarray]:
        """Rendered frames of one seed's play, episode after episode."""
        frames = whole_number("frames", frames)
        if frames < 1:
            raise UsageError(f"a film of {frames} frames: choose at least 1")
        chosen = self.seeds[0] if seed is None else seed
        params = jax.tree.map(lambda leaf: leaf[None], self.params_of(chosen))
        play = envs.make(self.playable(environment), lanes=1, seed=chosen)
        player, key = Player(self.learner, 1), jax.random.PRNGKey(POLICY)
        with contextlib.closing(play):
            frame, began, seen = play.reset(), np.ones(1, bool), [play.render()]
            for turn in range(frames - 1):
                allowed = getattr(play, "allowed", None)
                action = player(params, frame, began, epsilon, key, turn, allowed=allowed)
                with named_failures(play.name):
                    taken = play.step(np.asarray(action)[0])
                frame, began = taken.observation, taken.terminal | taken.truncated
                seen.append(play.render())
        return seen

    def playable(self, environment: str = "") -> str:
        """The name of the environment to play, after a check that it fits the policies."""
        name = environment or envs.from_data(self.environment)
        if not name:
            raise UsageError(
                f"{self.path} has no environment: name one with --environment; without one, optimist select "
                "ranks its policies by the log"
            )
        check_playable(self.learner.spec, name, self.environment, masked=self.masked)
        return name


def mean_returns(episodes: list[EpisodeScore]) -> dict[int, float]:
    """The mean return over the seeds of each evaluation, in the order of the steps."""
    by_step: dict[int, list[EpisodeScore]] = {}
    for episode in episodes:
        by_step.setdefault(episode.step, []).append(episode)
    return {step: float(np.mean(list(mean_scores(by_step[step]).values()))) for step in sorted(by_step)}
