"""Table agents with many heads: each head is a Q-function, or a distribution of the return."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import jax.numpy as jnp

from optimist.agents._table_agent import HuberAgent, TableAgent
from optimist.data.transition import Transition
from optimist.equations.mixtures import Mixture
from optimist.errors import UsageError
from optimist.networks import AllowedTable, SplitTable, Table


@dataclass(frozen=True, kw_only=True)
class ManyHeads(HuberAgent):
    """An agent whose columns are Q-functions. It acts by their mean, and may explore with a mixture of them
    that stays the same for an episode."""

    columns: int = 200
    explore: Annotated[str, "mixture of heads that plays an episode while collecting"] = "mean"
    spread: Annotated[float | None, "heads start as one head plus this much noise; none: independent"] = None

    def __post_init__(self):
        super().__post_init__()
        Mixture(self.explore)  # raises for an unknown kind
        if self.spread is not None and not 0 <= self.spread < jnp.inf:
            raise UsageError(f"spread is {self.spread}: choose a finite number of at least 0, or none")

    def values(self, table: Table | SplitTable | AllowedTable) -> Any:
        return table.mean()

    def online_values(self, table: Table | SplitTable | AllowedTable, episode_key) -> Any:
        return (table @ Mixture(self.explore).draw(episode_key, self.columns))[:, 0]


@dataclass(frozen=True, kw_only=True)
class EnsembleAgent(ManyHeads):
    """An ensemble whose heads have separate losses; subclasses choose the target."""

    @abstractmethod
    def next_values(self, table: Table | SplitTable) -> Any:
        """The value of the next state: one for each head, (K,), or one for all heads, ()."""

    def loss(self, q: Callable, q_target: Callable, step: Transition, key) -> Any:
        targets = self.target(step, self.next_values(q_target(step.next_observation, step.next_allowed)))
        return self.error_loss(targets - q(step.observation).columns()[step.action]).mean()


@dataclass(frozen=True, kw_only=True)
class DistributionalEnsemble(TableAgent):
    """An agent whose columns form several heads. Each head is a distribution of the return; a mixture mixes
    the heads atom by atom or quantile by quantile."""

    columns: Annotated[int, "heads x columns of one distribution"] = 200
    heads: Annotated[int, "number of distributions that are mixed"] = 4
    mixture: Mixture = Mixture()

    def __post_init__(self):
        super().__post_init__()
        if self.heads < 1 or self.columns % self.heads:
            raise UsageError(f"{self.columns} columns do not divide into {self.heads} heads")
        if self.mixture.count != 1:
            raise UsageError(f"{self.mixture.count} mixtures a minibatch: distributional heads need one")

    @property
    def width(self) -> int:
        """The number of columns of one distribution."""
        return self.columns // self.heads

    def alpha(self, key) -> Any:
        return self.mixture.draw(key, self.heads)[:, 0]
