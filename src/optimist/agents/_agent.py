"""The base classes of agents: an agent is its hyperparameters and the losses that train its networks."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp

from optimist.data.transition import MaskedTransition, Spec, Transition
from optimist.equations.losses import huber
from optimist.equations.mixtures import Mixture
from optimist.equations.optimizers import Adam, RmsProp
from optimist.errors import DataError, UsageError
from optimist.networks import (
    AllowedTable,
    MultiHead,
    MultiNetwork,
    Network,
    SplitTable,
    Table,
    Torso,
    torso_for,
)


class Objective(NamedTuple):
    """A loss over a minibatch that trains one group of parameters, every `period` steps."""

    name: str
    loss: Callable[[dict, dict, Transition, Any], Any]  # (parameters, targets, batch, key) -> scalar
    period: int = 1


@dataclass(frozen=True, kw_only=True)
class Agent(ABC):
    """A frozen record of hyperparameters, which gives the learner parameters, objectives and actions."""

    has_values: ClassVar[bool] = True  # False: `estimate` is no return, as for cloning
    reads_next_action: ClassVar[bool] = False  # transitions then have `next_action` and `next_logged`

    optimizer: RmsProp | Adam = Adam()
    target_period: Annotated[int, "gradient steps between updates of the target network"] = 2000
    target_rate: Annotated[float, "how far the target moves towards the network; 1: a copy"] = 1.0

    def optimizer_of(self, group: str) -> RmsProp | Adam:
        """The optimiser of this group of parameters."""
        return self.optimizer

    def settled(self) -> "Agent":
        """The same agent with every "auto" replaced by its value, for a configuration file."""
        return self

    @abstractmethod
    def check(self, spec: Spec) -> None:
        """Raise DataError for data that this agent cannot learn from."""

    @abstractmethod
    def init(self, key, spec: Spec) -> dict:
        """Initial parameters by group."""

    @abstractmethod
    def objectives(self, spec: Spec) -> tuple[Objective, ...]:
        """The losses, in the order in which a gradient step applies them."""

    @abstractmethod
    def action(self, spec: Spec, params: dict, observation, key) -> Any:
        """The best action by the agent's estimate; `key` is for agents that choose at random."""

    def allowed_action(self, spec: Spec, params: dict, observation, key, allowed) -> Any:
        """The best of the allowed actions, (A,); only agents of discrete actions have one."""
        raise UsageError(f"{type(self).__name__} cannot choose among some actions only; leave allowed out")

    @abstractmethod
    def online_action(self, spec: Spec, params: dict, observation, key, episode_key) -> Any:
        """The action while the agent collects data; `episode_key` is the same during a whole episode."""

    @abstractmethod
    def estimate(self, spec: Spec, params: dict, observation) -> Any:
        """The expected return of the agent's action here, for the logs and the guard against divergence."""

    def allowed_estimate(self, spec: Spec, params: dict, observation, allowed) -> Any:
        """The same if only these actions can be chosen, (A,)."""
        return self.estimate(spec, params, observation)

    def action_value(self, spec: Spec, params: dict, observation, action) -> Any:
        """The expected return after this action; NaN for an agent that estimates none."""
        return jnp.full((), jnp.nan)


@dataclass(frozen=True, kw_only=True)
class LearnsValues:
    """A part of every agent that learns towards reward plus discounted value of the next state."""

    target_limit: Annotated[
        float | Literal["auto"] | None,
        "targets are clipped to +- this; none: not clipped; auto: the largest return-to-go of the log",
    ] = None

    def check_limit(self) -> None:
        limit = self.target_limit
        if limit not in (None, "auto") and not (isinstance(limit, (int, float)) and 0 < limit < jnp.inf):
            raise UsageError(f"target_limit is {limit}: choose a number above zero, none, or auto")

    def target(self, step: Transition, next_value) -> Any:
        """r + discount * next value (Sutton and Barto 2018, eq. 6.5), clipped to the limit."""
        target = step.reward + step.discount * next_value
        limit: Any = self.target_limit
        return target if limit is None else jnp.clip(target, -limit, limit)


@dataclass(frozen=True, kw_only=True)
class TableAgent(Agent):
    """An agent for discrete actions that reads one (actions x columns) table per state.

    A subclass defines the number of columns, the value of a row, and the loss of one transition.
    """

    vector_peer: ClassVar[str] = "td3"  # the agent to recommend if the actions are vectors
    next_is_a_maximum: ClassVar[bool] = True  # over the next state's actions: a mask can limit it
    columns: Annotated[int, "the width of the table: heads, atoms or quantiles of each action"] = 1
    networks: Annotated[int, "1: all columns are heads of one network; more: separate networks"] = 1
    network: Network = Network()
    initializer: Annotated[str, "fan_in, glorot, or auto: glorot for separate networks"] = "auto"

    def __post_init__(self):
        if isinstance(self.network, str):  # only the name of its torso
            object.__setattr__(self, "network", Network(self.network))
        if self.columns < 1 or self.networks < 1 or self.columns % self.networks:
            raise UsageError(
                f"{self.columns} columns on {self.networks} networks: choose at least 1 of each, and columns "
                "that divide evenly"
            )
        if self.target_period < 1:
            raise UsageError(f"target_period is {self.target_period}: choose at least 1 gradient step")

    @abstractmethod
    def values(self, table: Table | SplitTable | AllowedTable) -> Any:
        """The value of each action, (A,)."""

    @abstractmethod
    def loss(self, q: Callable, q_target: Callable, step: Transition, key) -> Any:
        """The loss of one transition; `key` is the same for the whole minibatch."""

    def check(self, spec: Spec) -> None:
        if not spec.discrete:
            raise DataError(
                f"{type(self).__name__} chooses among discrete actions; this data has vector actions "
                f"of size {len(spec.action_low)}: use an agent such as {self.vector_peer}"
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

            def loss_of(step):
                if isinstance(step, MaskedTransition) and self.next_is_a_maximum:
                    now, then = _among_allowed(q, step), _among_allowed(q_target, step)
                    return self.loss(now, then, Transition(*step[:-1]), key)
                return self.loss(q, q_target, step, key)

            return jax.vmap(loss_of)(batch).mean()

        return (Objective("q", loss),)

    def action(self, spec: Spec, params: dict, observation, key) -> Any:
        return jnp.argmax(self.values(self.table(spec)(params["q"], observation)))

    def allowed_action(self, spec: Spec, params: dict, observation, key, allowed) -> Any:
        table = AllowedTable.of(self.table(spec)(params["q"], observation), allowed)
        return table.rows[jnp.argmax(self.values(table))]

    def online_action(self, spec: Spec, params: dict, observation, key, episode_key) -> Any:
        table = self.table(spec)(params["q"], observation)
        return jnp.argmax(self.online_values(table, episode_key))

    def online_values(self, table: Table | SplitTable, episode_key) -> Any:
        """The value of each action while the agent collects data, (A,)."""
        return self.values(table)

    def state_value(self, table: Table | SplitTable | AllowedTable) -> Any:
        """The value of the state, ()."""
        return self.values(table).max()

    def estimate(self, spec: Spec, params: dict, observation) -> Any:
        return self.state_value(self.table(spec)(params["q"], observation))

    def allowed_estimate(self, spec: Spec, params: dict, observation, allowed) -> Any:
        table = self.table(spec)(params["q"], observation)
        return self.state_value(AllowedTable.of(table, allowed) if self.next_is_a_maximum else table)

    def action_value(self, spec: Spec, params: dict, observation, action) -> Any:
        return self.action_values(self.table(spec)(params["q"], observation))[action]

    def action_values(self, table: Table | SplitTable) -> Any:
        """The expected return after each action, (A,): the values, unless they are something else."""
        return self.values(table)


def _among_allowed(q: Callable, step: MaskedTransition) -> Callable:
    """q, whose table of the step's next observation has only the actions that are allowed there."""

    def limited(observation):
        table = q(observation)
        is_next = observation is step.next_observation
        return AllowedTable.of(table, step.next_allowed) if is_next else table

    return limited


@dataclass(frozen=True, kw_only=True)
class ValueAgent(LearnsValues, TableAgent):
    """An agent whose columns are trained towards reward plus discounted value of the next state."""

    huber_loss: ClassVar[bool] = True  # errors above 1 count linearly: a rare large reward counts too little

    def __post_init__(self):
        super().__post_init__()
        self.check_limit()


@dataclass(frozen=True, kw_only=True)
class ManyHeads(ValueAgent):
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

    def online_values(self, table: Table | SplitTable, episode_key) -> Any:
        return (table @ Mixture(self.explore).draw(episode_key, self.columns))[:, 0]


@dataclass(frozen=True, kw_only=True)
class EnsembleAgent(ManyHeads):
    """An ensemble whose heads have separate losses; subclasses choose the target."""

    @abstractmethod
    def next_values(self, table: Table | SplitTable) -> Any:
        """The value of the next state: one for each head, (K,), or one for all heads, ()."""

    def loss(self, q: Callable, q_target: Callable, step: Transition, key) -> Any:
        targets = self.target(step, self.next_values(q_target(step.next_observation)))
        return huber(targets - q(step.observation).columns()[step.action]).mean()


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
