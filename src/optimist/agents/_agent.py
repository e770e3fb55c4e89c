"""What an agent is: its hyperparameters, and the losses that train its networks."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from optimist.data.transition import Spec, Transition
from optimist.equations.losses import huber
from optimist.equations.mixtures import Mixture
from optimist.equations.optimizers import Adam, RmsProp
from optimist.errors import DataError, UsageError
from optimist.networks import MultiHead, MultiNetwork, Network, SplitTable, Table, Torso, torso_for


class Objective(NamedTuple):
    """A loss over a minibatch that trains one group of parameters, every `period` steps."""

    name: str
    loss: Callable[[dict, dict, Transition, Any], Any]  # (parameters, targets, batch, key) -> scalar
    period: int = 1


@dataclass(frozen=True, kw_only=True)
class Agent(ABC):
    """A frozen record of hyperparameters; the learner asks it for parameters, objectives and actions."""

    optimizer: RmsProp | Adam = Adam()
    target_period: Annotated[int, "gradient steps between updates of the target network"] = 2000
    target_rate: Annotated[float, "1 copies the network into the target, less moves it a part of the way"] = (
        1.0
    )

    def optimizer_of(self, group: str) -> RmsProp | Adam:
        """What trains this group of parameters."""
        return self.optimizer

    def settled(self) -> "Agent":
        """The same agent with every value that depends on others written out, for a configuration file."""
        return self

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
    def action(self, spec: Spec, params: dict, observation, key) -> Any:
        """The action the agent thinks best; `key` is for agents that choose at random."""

    @abstractmethod
    def online_action(self, spec: Spec, params: dict, observation, key, episode_key) -> Any:
        """The action while it collects; `episode_key` stays the same through an episode."""

    @abstractmethod
    def estimate(self, spec: Spec, params: dict, observation) -> Any:
        """The return the agent expects from here, for the logs and the alarm about divergence."""


@dataclass(frozen=True, kw_only=True)
class TableAgent(Agent):
    """An agent of discrete actions that reads one (actions x columns) table per state.

    A new algorithm says how wide the table is, how its rows become values, and how one transition is scored.
    """

    vector_peer: ClassVar[str] = "td3"  # whom it recommends where actions are vectors
    columns: Annotated[int, "the width of the table: heads, atoms or quantiles of each action"] = 1
    networks: Annotated[int, "1: all columns are heads of one network; more: separate networks"] = 1
    network: Network = Network()
    initializer: Annotated[str, "fan_in, glorot, or auto: glorot for separate networks"] = "auto"

    def __post_init__(self):
        if isinstance(self.network, str):  # the name of its torso alone
            object.__setattr__(self, "network", Network(self.network))
        if self.columns < 1 or self.networks < 1 or self.columns % self.networks:
            raise UsageError(
                f"{self.columns} columns on {self.networks} networks: at least one each, shared out evenly"
            )
        if self.target_period < 1:
            raise UsageError(
                f"a target period of {self.target_period}: it is counted in gradient steps, from 1"
            )

    @abstractmethod
    def values(self, table: Table | SplitTable) -> Any:
        """What each action is worth, (A,)."""

    @abstractmethod
    def loss(self, q: Callable, q_target: Callable, step: Transition, key) -> Any:
        """The loss of one transition; `key` is shared by the whole minibatch."""

    def check(self, spec: Spec) -> None:
        if not spec.discrete:
            raise DataError(
                f"{type(self).__name__} chooses among discrete actions; this data has vector actions "
                f"of size {len(spec.action_low)}: take an agent such as {self.vector_peer}"
            )
        self.torso(spec)

    def torso(self, spec: Spec) -> Torso:
        return torso_for(spec, self.network.torso, self.network.hidden)

    def settled(self) -> "TableAgent":
        return replace(self, initializer=self._initializer)

    @property
    def _initializer(self) -> str:
        if self.initializer != "auto":
            return self.initializer
        return "fan_in" if self.networks == 1 else "glorot"

    def table(self, spec: Spec) -> MultiHead | MultiNetwork:
        torso, heads = self.torso(spec), self.columns // self.networks
        network = MultiHead(torso, spec.actions, heads, self._initializer, getattr(self, "spread", None))
        return network if self.networks == 1 else MultiNetwork(network, self.networks)

    def init(self, key, spec: Spec) -> dict:
        return {"q": self.table(spec).init(key, spec.observation_shape)}

    def objectives(self, spec: Spec) -> tuple[Objective, ...]:
        network = self.table(spec)

        def loss(params, targets, batch, key):
            q, q_target = partial(network, params["q"]), partial(network, targets["q"])
            return jax.vmap(lambda step: self.loss(q, q_target, step, key))(batch).mean()

        return (Objective("q", loss),)

    def action(self, spec: Spec, params: dict, observation, key) -> Any:
        return jnp.argmax(self.values(self.table(spec)(params["q"], observation)))

    def online_action(self, spec: Spec, params: dict, observation, key, episode_key) -> Any:
        table = self.table(spec)(params["q"], observation)
        return jnp.argmax(self.online_values(table, episode_key))

    def online_values(self, table: Table | SplitTable, episode_key) -> Any:
        """What each action is worth while collecting, (A,)."""
        return self.values(table)

    def estimate(self, spec: Spec, params: dict, observation) -> Any:
        return self.values(self.table(spec)(params["q"], observation)).max()


@dataclass(frozen=True, kw_only=True)
class ValueAgent(TableAgent):
    """An agent whose columns are trained towards the reward and the discounted value of the next state."""

    target_limit: Annotated[float | None, "targets are clipped to +- this; none: not clipped"] = None

    def __post_init__(self):
        super().__post_init__()
        if self.target_limit is not None and not 0 < self.target_limit < jnp.inf:
            raise UsageError(f"target_limit is {self.target_limit}: a number above zero, or none")

    def target(self, step: Transition, next_value) -> Any:
        """r + discount * next value (Sutton and Barto 2018, eq. 6.5), within the limit."""
        target = step.reward + step.discount * next_value
        limit = self.target_limit
        return target if limit is None else jnp.clip(target, -limit, limit)


@dataclass(frozen=True, kw_only=True)
class ManyHeads(ValueAgent):
    """Columns that are Q-functions; they act by their mean, and may explore by a mixture an episode."""

    columns: int = 200
    explore: Annotated[str, "the mixture of heads that plays an episode while collecting"] = "mean"
    spread: Annotated[float | None, "heads start as one head plus this much noise; none: separately"] = None

    def __post_init__(self):
        super().__post_init__()
        Mixture(self.explore)  # raises for a kind it does not know
        if self.spread is not None and not 0 <= self.spread < jnp.inf:
            raise UsageError(f"spread is {self.spread}: a finite number from 0 upwards, or none")

    def values(self, table: Table | SplitTable) -> Any:
        return table.mean()

    def online_values(self, table: Table | SplitTable, episode_key) -> Any:
        return (table @ Mixture(self.explore).draw(episode_key, self.columns))[:, 0]


@dataclass(frozen=True, kw_only=True)
class EnsembleAgent(ManyHeads):
    """An ensemble whose heads have separate losses; subclasses choose the target."""

    @abstractmethod
    def next_values(self, table: Table | SplitTable) -> Any:
        """What the next state is worth: to each head, (K,), or to all of them, ()."""

    def loss(self, q: Callable, q_target: Callable, step: Transition, key) -> Any:
        targets = self.target(step, self.next_values(q_target(step.next_observation)))
        return huber(targets - q(step.observation).columns()[step.action]).mean()


@dataclass(frozen=True, kw_only=True)
class DistributionalEnsemble(TableAgent):
    """Columns that are several heads, each a whole distribution of the return, mixed part by part."""

    columns: Annotated[int, "heads x what one distribution takes"] = 200
    heads: Annotated[int, "distributions that are mixed"] = 4
    mixture: Mixture = Mixture()

    def __post_init__(self):
        super().__post_init__()
        if self.heads < 1 or self.columns % self.heads:
            raise UsageError(f"{self.columns} columns do not divide into {self.heads} heads")
        if self.mixture.count != 1:
            raise UsageError(f"{self.mixture.count} mixtures a minibatch: distributional heads take one")

    @property
    def width(self) -> int:
        """How many columns one distribution takes."""
        return self.columns // self.heads

    def alpha(self, key) -> Any:
        return self.mixture.draw(key, self.heads)[:, 0]
