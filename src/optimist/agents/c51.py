"""Categorical DQN: trains a distribution of the return over atoms towards that of the best next action."""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp

from optimist.agents._table_agent import TableAgent
from optimist.equations.losses import categorical_projection, cross_entropy
from optimist.equations.optimizers import Adam, RmsProp
from optimist.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class C51(TableAgent):
    """C51 (Bellemare et al. 2017, algorithm 1), with the settings of Agarwal et al. 2020's code."""

    columns: int = 51
    low: Annotated[float, "smallest atom"] = -10.0
    high: Annotated[float, "largest atom"] = 10.0
    optimizer: RmsProp | Adam = Adam(learning_rate=2.5e-4)

    def __post_init__(self):
        super().__post_init__()
        if self.columns < 2 or not -jnp.inf < self.low < self.high < jnp.inf:
            raise UsageError(
                f"{self.columns} atoms from {self.low} to {self.high}: choose 2 or more, and low below high"
            )

    @property
    def largest_value(self) -> float:
        """What lies beyond the atoms counts as the last one, so rewards are scaled to stay inside."""
        return max(-self.low, self.high)

    @property
    def atoms(self):
        return jnp.linspace(self.low, self.high, self.columns)

    def values(self, table):
        return jax.nn.softmax(table.columns()) @ self.atoms

    def loss(self, q, q_target, step, key):
        next_table = q_target(step.next_observation, step.next_allowed)
        best = self.values(next_table).argmax()
        moved = step.reward + step.discount * self.atoms
        target = categorical_projection(moved, jax.nn.softmax(next_table.columns()[best]), self.atoms)
        return cross_entropy(q(step.observation).columns()[step.action], target)
