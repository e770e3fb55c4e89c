"""The beginning of a collection that goes on from a run: its agent, its parameters, its log."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from optimist import envs
from optimist.agents._agent import Agent
from optimist.data.views import View
from optimist.errors import DataError, RunError, UsageError
from optimist.training.evaluation import check_playable
from optimist.training.learner import Learner, TrainState
from optimist.training.run import Run, load_run
from optimist.training.settings import Collection
from optimist.training.storage import checkpoint
from optimist.training.storage.configuration import fingerprint
from optimist.training.storage.run_folder import read_config

ONLINE = 0x0417  # folded into the keys, so that play does not repeat the draws of the training
CARRIED = ("gamma", "clip_rewards", "reward_scale")  # values mean the same only with the same rewards
log = logging.getLogger("optimist")


@dataclass(frozen=True)
class Beginning:
    """A run at one of its steps, from which a collection goes on."""

    run: Run
    seeds: tuple[int, ...]
    state: TrainState  # of these seeds; its step is 0, because gradient steps are counted from here
    config: dict  # of the run

    def copied_state(self) -> TrainState:
        """The state in buffers of its own: training overwrites those that it is given."""
        return jax.tree.map(jnp.array, self.state)

    @property
    def settings(self) -> dict[str, Any]:
        """The defaults of the collection. The policy is there already: it plays the warm-up, with its small
        share of random actions. It learns when the window holds more than a few steps, and half of what it
        learns from is the log of the run: from its own play only it soon forgets."""
        training = self.config.get("training", {})
        return {
            "mix": 0.5,
            "epsilon_start": 0.0,
            "epsilon_decay": 0,
            **({"epsilon": 0.01} if self.run.learner.spec.discrete else {}),  # an actor has noise of its own
            **{name: training[name] for name in CARRIED if name in training},
            # A configuration has no entry for rewards that are not clipped.
            **({} if "clip_rewards" in training else {"clip_rewards": None}),
        }

    def in_words(self, collection: Collection) -> str:
        """How the collection goes on."""
        return (
            f"goes on from {self.run.path} at step {self.run.step:,}: learns after {collection.warm_up:,} "
            f"steps, {collection.mix:.0%} of each minibatch from the run's log; {collection.epsilon:.1%} of "
            "the actions are random (--warm-up, --mix, --epsilon)"
        )

    def described(self, mixes: bool) -> dict[str, Any]:
        """For the configuration of the collection: another beginning is another run."""
        found = {"path": str(self.run.path), "run": fingerprint(self.config), "step": self.run.step}
        return {**found, "log": self.logs()[0].fingerprint} if mixes else found

    def learner(self, agent: Agent, environment: str) -> Learner:
        """The run's learner with this agent; UsageError if the environment or the agent does not fit."""
        theirs = self.run.learner
        check_playable(theirs.spec, environment, masked=self.run.masked)
        spec = envs.spec_of(environment)
        if (spec.stack, spec.frame_dtype) != (theirs.spec.stack, theirs.spec.frame_dtype):
            raise UsageError(
                f"{environment} has {spec.in_words()}; {self.run.path} learned from "
                f"{theirs.spec.in_words()}: name an environment with the same observations"
            )
        found = replace(theirs, agent=agent)
        if _shapes(found.shapes(self.seeds)) != _shapes(self.state):
            raise UsageError(
                f"these options change the networks or the optimiser of {self.run.path}: leave them out"
            )
        return found

    def logs(self) -> list[View]:
        """The log that each seed of the run learned from."""
        own = self.config.get("kind") == "online"
        try:
            whole = self.run.log()
        except (DataError, OSError) as problem:
            raise RunError(
                f"the log of {self.run.path} cannot be mixed in ({problem}): give --mix 0 to learn from play "
                "only, which soon forgets what the log taught"
            ) from problem
        if self.config.get("training", {}).get("data_per_seed") == "own" or (own and len(self.run.seeds) > 1):
            return [whole.played_by(seed) for seed in self.seeds]
        return [whole] * len(self.seeds)


def beginning(path: str | Path, *, step: int | str = "last", seeds: Iterable[int] | None = None) -> Beginning:
    """The run in this folder at a step, for all of its seeds or some of them.

    The newest checkpoint has targets and optimiser state; an earlier policy that was kept has parameters
    only."""
    run = load_run(path, step=step)
    config, chosen = read_config(run.path), run.seeds if seeds is None else tuple(seeds)
    if not set(chosen) <= set(run.seeds) or not chosen:
        known = ", ".join(map(str, run.seeds))
        raise UsageError(f"{run.path} has the seeds {known}: choose some of these, or leave --seeds out")
    settings, shapes = fingerprint(config), run.learner.shapes(run.seeds)
    found = checkpoint.load_state(run.path / "checkpoints", shapes, settings)
    if found is not None and found[0] == run.step:
        every = found[1]
    else:
        log.warning(
            "%s: step %s has parameters only; targets and optimiser start anew", run.path, f"{run.step:,}"
        )
        params = jax.tree.map(jnp.asarray, run.params)
        every = run.learner.init(run.seeds)._replace(params=params, targets=jax.tree.map(jnp.copy, params))
    places = jnp.array([run.seeds.index(seed) for seed in chosen])
    picked = jax.tree.map(lambda leaf: leaf[places], every._replace(step=()))
    keys = jax.vmap(lambda key: jax.random.fold_in(key, ONLINE))(picked.key)
    return Beginning(run, chosen, picked._replace(step=jnp.zeros((), jnp.int32), key=keys), config)


def _shapes(tree: Any) -> list[tuple]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(path), leaf.shape, leaf.dtype) for path, leaf in leaves]
