"""What an agent is: its hyperparameters, and the losses that train its networks."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from optimist.data.transition import Spec, Transition
from optimist.errors import DataError, UsageError
from optimist.networks import MultiHead, Table, torso_for
from optimist.optimizers import Adam, RmsProp


class Objective(NamedTuple):
    """A loss over a minibatch that trains one group of parameters, every `period` steps."""

    name: str
    loss: Callable[[dict, dict, Transition, Any], Any]  # (parameters, targets, batch, key) -> scalar
    period: int = 1


@dataclass(frozen=True, kw_only=True)
class Agent(ABC):
    """A frozen record of hyperparameters; the learner asks it for parameters, objectives and actions."""

    optimizer: RmsProp | Adam = Adam()
    target_period: int = 2000  # gradient steps between copies of the network into its target

    @abstractmethod
    def check(self, spec: Spec) -> None:
        """Refuse, in one line, data that this agent cannot learn from."""

    @abstractmethod
    def init(self, key, spec: Spec) -> dict:
        """Fresh parameters by group."""

    @abstractmethod
    def objectives(self, spec: Spec) -> tuple[Objective, ...]:
        """The losses in the order in which a step applies them."""

    @abstractmethod
    def action(self, spec: Spec, params: dict, observation) -> Any:
        """The action the agent thinks best."""

    @abstractmethod
    def estimate(self, spec: Spec, params: dict, observation) -> Any:
        """The return the agent expects from here, for the logs and the alarm about divergence."""


@dataclass(frozen=True, kw_only=True)
class TableAgent(Agent):
    """An agent of discrete actions that reads one (actions x columns) table per state.

    A new algorithm says how wide the table is, how its rows become values, and how one transition is scored.
    """

    columns: int = 1
    network: str = "auto"  # "mlp", "minatar", "nature", or by the observation's shape
    initializer: str = "fan_in"

    def __post_init__(self):
        if self.columns < 1:
            raise UsageError(f"{self.columns} columns: a table has at least one")
        if self.target_period < 1:
            raise UsageError(
                f"a target period of {self.target_period}: it is counted in gradient steps, from 1"
            )

    @abstractmethod
    def values(self, table: Table) -> Any:
        """What each action is worth, (A,)."""

    @abstractmethod
    def loss(self, q: Callable, q_target: Callable, step: Transition, key) -> Any:
        """The loss of one transition; `key` is shared by the whole minibatch."""

    def check(self, spec: Spec) -> None:
        if not spec.discrete:
            raise DataError(
                f"{type(self).__name__} chooses among discrete actions; this data has vector actions "
                f"of size {len(spec.action_low)}: take an agent for continuous control"
            )
        torso_for(spec, self.network)

    def table(self, spec: Spec) -> MultiHead:
        return MultiHead(torso_for(spec, self.network), spec.actions, self.columns, self.initializer)

    def init(self, key, spec: Spec) -> dict:
        return {"q": self.table(spec).init(key, spec.observation_shape)}

    def objectives(self, spec: Spec) -> tuple[Objective, ...]:
        network = self.table(spec)

        def loss(params, targets, batch, key):
            q, q_target = partial(network, params["q"]), partial(network, targets["q"])
            return jax.vmap(lambda step: self.loss(q, q_target, step, key))(batch).mean()

        return (Objective("q", loss),)

    def action(self, spec: Spec, params: dict, observation) -> Any:
        return jnp.argmax(self.values(self.table(spec)(params["q"], observation)))

    def estimate(self, spec: Spec, params: dict, observation) -> Any:
        return self.values(self.table(spec)(params["q"], observation)).max()
