"""Batch-constrained Q-learning for discrete actions: considers only actions that are likely in the log."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import jax
import jax.numpy as jnp

from optimist.agents._table_agent import HuberAgent, choice_loss
from optimist.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class DiscreteBcq(HuberAgent):
    """Discrete BCQ (Fujimoto et al. 2019, "Benchmarking batch deep RL", algorithm 1), on one torso."""

    vector_peer: ClassVar[str] = "bcq"
    columns: Annotated[int, "2: the values, and the logits of the cloned policy"] = 2
    threshold: Annotated[float, "smallest probability of an action, relative to the likeliest action's"] = 0.3
    logit_decay: Annotated[float, "weight of the penalty on large logits"] = 0.01

    def __post_init__(self):
        super().__post_init__()
        if self.columns != 2:
            raise UsageError(f"columns is {self.columns}: discrete_bcq needs 2, values and logits")
        if not 0 <= self.threshold < 1:
            raise UsageError(f"threshold is {self.threshold}: choose at least 0 and less than 1")

    def values(self, table):
        values, logits = table.columns().T
        likely = jax.nn.softmax(logits) >= self.threshold * jax.nn.softmax(logits).max()
        return jnp.where(likely, values, -jnp.inf)

    def loss(self, q, q_target, step, key):
        values, logits = q(step.observation).columns().T
        following = (step.next_observation, step.next_allowed)
        best = self.values(q(*following)).argmax()
        target = self.target(step, q_target(*following).columns()[best, 0])
        error = target - values[step.action]
        return self.error_loss(error) + choice_loss(logits, step) + self.logit_decay * (logits**2).mean()
