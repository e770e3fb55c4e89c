"""Implicit Q-learning for discrete actions: evaluates only logged actions."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import jax
import jax.numpy as jnp

from optimist.agents._table_agent import ValueAgent, choice_loss
from optimist.equations.losses import expectile
from optimist.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class DiscreteIql(ValueAgent):
    """IQL (Kostrikov et al. 2022, algorithm 1) with a policy over discrete actions, all on one torso."""

    vector_peer: ClassVar[str] = "iql"
    # In an exponent the errors of large values decide which actions are imitated: on a narrow CartPole log
    # five seeds play 326 of 500 with values of about 100, and 500 with a tenth (results/narrow-log).
    best_value_size: ClassVar[float] = 10.0
    columns: Annotated[
        int, "4: two Q-functions, the value of the state (the mean of its column), the policy's logits"
    ] = 4
    tau: Annotated[float, "expectile that approximates the value of the best logged action"] = 0.7
    temperature: Annotated[float, "the policy weights an action by exp(temperature * advantage)"] = 3.0
    largest_weight: Annotated[float, "upper limit of that weight"] = 100.0

    def __post_init__(self):
        super().__post_init__()
        if self.columns != 4:
            raise UsageError(f"columns is {self.columns}: discrete_iql needs 4")
        if not 0 < self.tau < 1:
            raise UsageError(f"tau is {self.tau}: choose a number between 0 and 1")

    next_is_a_maximum = False  # it is the mean of the state value's column

    def values(self, table):
        return table.columns()[:, 3]

    def state_value(self, table):
        return table.columns()[:, 2].mean()

    def loss(self, q, q_target, step, key):
        table, fixed = q(step.observation), jax.lax.stop_gradient
        logged = q_target(step.observation).columns()[step.action, :2].min()
        value = self.state_value(table)
        target = fixed(self.target(step, self.state_value(q(step.next_observation))))
        critics = (target - table.columns()[step.action, :2]) ** 2
        weight = jnp.minimum(jnp.exp(self.temperature * fixed(logged - value)), self.largest_weight)
        policy = choice_loss(self.values(table), step)
        return critics.sum() + expectile(logged - value, self.tau) + weight * policy
