"""How an online agent plays and learns: the settings, and what "auto" becomes."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from optimist.errors import UsageError
from optimist.networks.precision import PRECISION, check_precision
from optimist.training.automatic import AUTO, CLIPPED, check_clipping, clipping
from optimist.training.evaluation import check_length, is_due
from optimist.training.kinds import demand
from optimist.training.loggers import USUAL


@dataclass(frozen=True)
class Collection:
    """How an online agent plays and learns; all defaults but the number of lanes are the paper's."""

    steps: Annotated[int, "agent steps of each seed, over all its lanes"] = 50_000_000
    lanes: Annotated[int, "parallel environments for each seed; the paper has one"] = 16
    window: Annotated[int, "newest transitions, from which the agent learns"] = 1_000_000
    warm_up: Annotated[int, "steps in the window before it learns"] = 20_000
    epsilon_start: Annotated[float, "share of random actions in the warm-up (0 with --from)"] = 1.0
    epsilon: Annotated[float, "share of random actions after the decay (0.01 with --from)"] = 0.01
    epsilon_decay: Annotated[int, "steps from epsilon_start to epsilon (0 with --from)"] = 250_000
    update_period: Annotated[int, "agent steps per gradient step"] = 4
    batch: Annotated[int, "transitions in a minibatch"] = 32
    gamma: Annotated[float, "the discount of a step"] = 0.99
    clip_rewards: Annotated[float | Literal["auto"] | None, CLIPPED] = "auto"
    reward_scale: Annotated[float, "rewards are multiplied by this before they are clipped"] = 1.0
    precision: Annotated[str, PRECISION] = "tf32"
    mix: Annotated[float, "share of each minibatch from the log of the run of --from (then 0.5)"] = 0.0
    evaluate_every: Annotated[int | None, "agent steps between evaluations; none: no evaluation"] = None
    episodes: Annotated[int, "full episodes per evaluation and seed"] = 20
    evaluation_steps: Annotated[int | None, "instead of episodes: full episodes until so many steps"] = None
    evaluation_epsilon: Annotated[float, "share of random actions in evaluation"] = 0.001
    checkpoint_seconds: Annotated[float, "seconds between checkpoints"] = 120.0
    keep_policies: Annotated[float, "GiB for the policies of the evaluations; 0: none is kept"] = 2.0
    loggers: Annotated[str, "of the figures: jsonl, tensorboard, wandb, mlflow, trackio, module:Name"] = USUAL
    unit: ClassVar[str] = "step"

    def __post_init__(self):
        counts = (
            *("steps", "lanes", "window", "update_period", "batch"),
            *("evaluate_every", "episodes", "evaluation_steps"),
        )
        shares = "epsilon_start", "epsilon", "gamma", "evaluation_epsilon"
        demand(self, counts, lambda n: isinstance(n, int) and n >= 1, "it must be a whole number above 0")
        check_length(self.evaluation_steps)
        demand(self, shares, lambda x: 0 <= x <= 1, "it must be between 0 and 1")
        demand(self, ("reward_scale",), lambda x: 0 < x < math.inf, "it must be above 0")
        demand(self, ("mix",), lambda x: 0 <= x < 1, "it must be at least 0 and below 1")
        if self.mix and not self.mixed:
            raise UsageError(
                f"mix is {self.mix}, which is none of {self.batch} transitions: choose a larger mix or batch"
            )
        check_clipping(self)
        check_precision(self.precision)
        demand(
            self,
            ("warm_up", "epsilon_decay", "checkpoint_seconds", "keep_policies"),
            lambda x: x >= 0,
            "it must be at least 0",
        )

    @property
    def mixed(self) -> int:
        """The transitions of a minibatch that are from the older log; at least one is not."""
        return min(round(self.mix * self.batch), self.batch - 1)

    def evaluates(self, step: int) -> bool:
        """Is an evaluation due at this agent step?"""
        every = self.evaluate_every
        return every is not None and is_due(step, every=every, steps=self.steps, lanes=self.lanes)

    def rows_to_look(self, step: int) -> int:
        """Vector steps from this agent step to the next evaluation, or to the end."""
        every = self.evaluate_every or self.steps
        return -(-(min(self.steps, (step // every + 1) * every) - step) // self.lanes)

    def exploration(self, step: int) -> float:
        """Epsilon at this agent step: `epsilon_start` during the warm-up, then a linear decay; without both,
        epsilon."""
        if not self.warm_up and not self.epsilon_decay:
            return self.epsilon
        left = 1 - (step - self.warm_up) / max(self.epsilon_decay, 1)
        return self.epsilon + max(0, self.epsilon_start - self.epsilon) * float(np.clip(left, 0, 1))


def settled_for(collection: Collection, environment: str) -> Collection:
    """The collection with every "auto" replaced by its value for this environment."""
    if collection.clip_rewards != AUTO:
        return collection
    return replace(collection, clip_rewards=clipping({}, environment))
