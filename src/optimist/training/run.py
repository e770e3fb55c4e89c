"""A run in hand: its parameters, policy and scores, and which policy of a run folder it takes."""

import contextlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import jax
import numpy as np

from optimist import envs, plugins
from optimist.agents import from_description, short_name
from optimist.data.dataset import Dataset
from optimist.data.disk.records import record
from optimist.data.machine import with_home
from optimist.data.transition import Spec, whole_number
from optimist.envs._environment import named_failures
from optimist.errors import DataError, RunError, UsageError, in_one_line, some_of
from optimist.training.evaluation import EpisodeScore, check_playable, evaluate, mean_scores
from optimist.training.guard import NEVER, health_like, where
from optimist.training.learner import Learner
from optimist.training.memory import check_memory, lanes_bytes
from optimist.training.play.acting import POLICY, Player, Policy
from optimist.training.scaling import Inputs
from optimist.training.settings import FREEZE
from optimist.training.storage import checkpoint
from optimist.training.storage.checkpoint import kept_steps, load_policy
from optimist.training.storage.configuration import IN_MEMORY, fingerprint
from optimist.training.storage.rows import read_episodes
from optimist.training.storage.run_folder import read_alarms, read_config
from optimist.training.storage.selected import chosen_policy

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
        means = list[float]()  # of the evaluations, over the seeds
        with contextlib.suppress(RunError):
            means = list(mean_returns(self.episodes()).values())
        scores = f"last {means[-1]:.2f}, best {max(means):.2f}" if means else "not evaluated"
        lines = {
            "agent": short_name(self.learner.agent),
            "data": self.data,
            "environment": self.environment or "none",
            "steps": f"{self.step:,}",
            "seeds": ", ".join(map(str, self.seeds)),
            "return": scores,
        }
        return "\n".join([f"Run {self.path}", *(f"  {name:12} {text}" for name, text in lines.items())])

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
        if episodes < 1 or not 0 <= epsilon <= 1:
            raise UsageError(
                f"{episodes} episodes at epsilon {epsilon}: choose at least 1, and an epsilon between 0 and 1"
            )
        if steps is None:
            check_memory({"lanes": lanes_bytes(self.learner.spec, len(self.seeds) * episodes)})
        elif (steps := whole_number("steps", steps)) < 1:
            raise UsageError(f"an evaluation of {steps} steps: choose at least 1")
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


log = logging.getLogger("optimist")


def load_run(path: str | Path, allow: Iterable[str] = (), step: int | str = "last") -> Run:
    """The run in this folder with the policies of one step.

    "last" is the newest undamaged checkpoint, or the last kept policy if the folder came without checkpoints.
    A number is any step whose policy was kept. "best" is the evaluation with the highest mean return over the
    seeds. "healthy" is "last", but a seed that diverged has its last policy before that. "chosen" is the one
    policy that `optimist select` chose; the run then has only the seed of that policy.

    The modules in `allow` are imported first. Any other module that the folder names must be a plug-in or
    imported already."""
    path = Path(with_home(path))
    plugins.allow(allow)
    config = read_config(path)
    try:
        learner = learner_of(config)
        seeds, environment = tuple(config["seeds"]), config["environment"]
        source = config.get("dataset", {})
        data, masked = source.get("path", OWN_PLAY), bool(source.get("masks") or config.get("masks"))
        shapes, settings = learner.shapes(seeds), fingerprint(config)
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as problem:
        raise RunError(
            f"{path / 'config.toml'} is not the configuration of a run ({in_one_line(problem)})"
        ) from problem
    seed = None  # of the only policy, if the step has one
    if step in ("last", "healthy"):
        at, params = _newest(path, config, learner, healthy=step == "healthy")
    else:
        if step == "chosen":
            at, seed = chosen_policy(path, settings)
        else:
            at = _best_step(path) if step == "best" else _number(step)
        params = load_policy(path, at, shapes.params, settings)
    run = Run(path, learner, environment, seeds, at, params, data, masked)
    return run if seed is None else run.alone(seed)


def _newest(path: Path, config: dict, learner: Learner, *, healthy: bool) -> tuple[int, dict]:
    """The step and the parameters of the newest undamaged checkpoint, or of the last kept policy. If
    `healthy`, a diverged seed has those of its last healthy look; the step is then the earliest."""
    seeds, settings = tuple(config["seeds"]), fingerprint(config)
    shapes = learner.shapes(seeds)
    found = checkpoint.load_state(path / "checkpoints", shapes, settings)
    if found is None and not healthy and (kept := kept_steps(path)):
        log.warning(
            "%s has no checkpoint: the last policy that it keeps is of step %s", path, f"{kept[-1]:,}"
        )
        return kept[-1], load_policy(path, kept[-1], shapes.params, settings)
    if found is None:
        raise RunError(f"{path} has no checkpoint yet: train it first")
    step, state = found
    if not healthy:
        _warn_of_divergence(path, config, step)
        return step, state.params
    health = checkpoint.load_health(path / "checkpoints", step, health_like(learner, seeds))
    if health is None or (calm := np.asarray(health.alarm) == NEVER).all():
        return step, state.params
    steps = np.where(calm, step, health.step)
    told = ", ".join(f"seed {seed} of step {at:,}" for seed, at in zip(seeds, steps.tolist(), strict=True))
    log.warning("%s: healthy policies: %s", path, told)
    return int(steps.min()), where(calm, state.params, health.params)


def _warn_of_divergence(path: Path, config: dict, step: int) -> None:
    """The last policy of a seed that diverged is seldom the one that people want."""
    try:
        diverged = [f"seed {seed} at step {alarm.step:,}" for seed, alarm in read_alarms(path).items()]
    except RunError as problem:
        log.warning("%s", problem)
        return
    training = config.get("training")
    frozen = isinstance(training, dict) and training.get("on_divergence") == FREEZE  # then they are healthy
    if diverged and not frozen:
        log.warning(
            "%s: values diverged in %s, and this is the policy of step %s: --step healthy takes the last one "
            "before that",
            path,
            some_of(diverged, 3),
            f"{step:,}",
        )


def learner_of(config: dict) -> Learner:
    """The learner of a run with this configuration."""
    agent, spec = from_description(config["agent"]), record(Spec, config["spec"])
    return Learner(agent, spec, Inputs.from_config(config.get("inputs"), spec))


def _number(step: int | str) -> int:
    text = step.replace("_", "") if isinstance(step, str) else str(whole_number("step", step))
    if not text.isdecimal():
        raise UsageError(f'step is "{step}": give a number, "last", "best", "healthy" or "chosen"')
    return int(text)


def _best_step(path: Path) -> int:
    """The kept step with the best evaluation."""
    scores, kept = mean_returns(read_episodes(path)), set(kept_steps(path))
    known = {step: score for step, score in scores.items() if step in kept}
    if not known:
        reason = "keeps no policy of an evaluation" if scores else "was never evaluated"
        raise RunError(f'{path} {reason}, so it has no "best" step: name a step, or "last"')
    best = max(known, key=lambda step: known[step])
    log.warning(
        "%s: step %s is the best of %s evaluations by the mean return over the seeds; it was chosen by "
        "playing, so those scores are too high",
        path,
        f"{best:,}",
        len(known),
    )
    return best
