"""Agents for discrete actions, which read one (actions x columns) table per state."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import jax
import jax.numpy as jnp

from optimist.agents._agent import Agent, LearnsValues, Objective, mean_loss
from optimist.data.transition import Spec, Transition
from optimist.equations.losses import cross_entropy, huber
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

NEVER = -1e9  # the value of an action that was not allowed; finite, because a loss multiplies it by zero


class Reader:
    """A network with its parameters: the table of an observation, and of its allowed actions if given."""

    def __init__(self, network: MultiHead | MultiNetwork, params: dict):
        self._network, self._params, self.masked = network, params, False

    def __call__(self, observation, allowed=None) -> Table | SplitTable | AllowedTable:
        table = self._network(self._params, observation)
        self.masked |= allowed is not None
        return table if allowed is None else AllowedTable.of(table, allowed)


def best_action(table: Table | SplitTable | AllowedTable, values: Any) -> Any:
    """The action of the largest of a table's values."""
    best = jnp.argmax(values)
    return table.rows[best] if isinstance(table, AllowedTable) else best


@dataclass(frozen=True, kw_only=True)
class TableAgent(Agent):
    """An agent for discrete actions that reads one (actions x columns) table per state.

    A subclass defines the number of columns, the value of a row, and the loss of one transition.
    """

    vector_peer: ClassVar[str] = "td3"  # the agent to recommend if the actions are vectors
    next_is_a_maximum: ClassVar[bool] = True  # of action values, so that a mask has to limit it
    draws_for_each_step: ClassVar[bool] = False  # in the loss; else one draw serves the minibatch, as in REM
    columns: Annotated[int, "the width of the table: heads, atoms or quantiles of each action"] = 1
    networks: Annotated[int, "1: all columns are heads of one network; more: separate networks"] = 1
    double: Annotated[bool, "the target network values the action that the network would choose"] = False
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
        if self.double and not self.targets_a_maximum:
            raise UsageError(f"{type(self).__name__} has no maximum over the next actions: leave double out")

    @property
    def targets_a_maximum(self) -> bool:
        """Is the target a maximum over the next actions?"""
        return self.has_values and self.next_is_a_maximum

    @abstractmethod
    def values(self, table: Table | SplitTable | AllowedTable) -> Any:
        """The value of each action, (A,)."""

    @abstractmethod
    def loss(self, q: Callable, q_target: Callable, step: Transition, key) -> Any:
        """The loss of one transition; `key` is that of the minibatch, or its own (`draws_for_each_step`).
        `q(observation, allowed)` is the table of the allowed actions; without a mask, of all actions."""

    def check(self, spec: Spec) -> None:
        if not spec.discrete:
            raise DataError(
                f"{type(self).__name__} chooses among discrete actions; this data has vector actions "
                f"of size {len(spec.action_low)}: use an agent such as {self.vector_peer}"
            )
        self.torso(spec)

    def torso(self, spec: Spec) -> Torso:
        return torso_for(spec, self.network.torso, self.network.hidden)

    def settled(self) -> Self:
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
            q, q_target = Reader(network, params["q"]), Reader(network, targets["q"])
            own = self.draws_for_each_step
            keys = jax.random.split(key, len(batch.reward)) if own else key

            def loss_of(step, key):
                return self.loss(q, q_target, self._doubled(network, params, step), key)

            losses = jax.vmap(loss_of, in_axes=(0, 0 if own else None))(batch, keys)
            if (self.double or batch.allowed is not None) and not (q.masked or q_target.masked):
                self._check_needs_no_mask()
            return mean_loss(losses, f"{type(self).__name__}.loss")

        return (Objective("q", loss),)

    def _doubled(self, network: MultiHead | MultiNetwork, params: dict, step: Transition) -> Transition:
        """The step; for double targets (van Hasselt et al. 2016, eq. 4) only the network's own choice is
        allowed next, so that a maximum over the next actions is the target network's value of it."""
        if not self.double:
            return step
        table = Reader(network, params["q"])(step.next_observation, step.next_allowed)
        values = self.values(table)
        return step._replace(next_allowed=jnp.arange(values.size) == best_action(table, values))

    def _check_needs_no_mask(self) -> None:
        """Raise UsageError if the loss of a log with masks is a maximum over actions that nobody can take."""
        if self.targets_a_maximum:
            what = "double is true" if self.double else "the log has masks of allowed actions"
            raise UsageError(
                f"{what}, and {type(self).__name__}.loss reads no mask: call "
                "q_target(step.next_observation, step.next_allowed), or set next_is_a_maximum = False"
            )

    def action(self, spec: Spec, params: dict, observation, key, allowed=None) -> Any:
        table = Reader(self.table(spec), params["q"])(observation, allowed)
        return best_action(table, self.values(table))

    def online_action(self, spec: Spec, params: dict, observation, key, episode_key, allowed=None) -> Any:
        table = Reader(self.table(spec), params["q"])(observation, allowed)
        return best_action(table, self.online_values(table, episode_key))

    def online_values(self, table: Table | SplitTable | AllowedTable, episode_key) -> Any:
        """The value of each action while the agent collects data, (A,)."""
        return self.values(table)

    def state_value(self, table: Table | SplitTable | AllowedTable) -> Any:
        """The value of the state, ()."""
        return self.values(table).max()

    def estimate(self, spec: Spec, params: dict, observation, allowed=None) -> Any:
        mask = allowed if self.next_is_a_maximum else None
        return self.state_value(Reader(self.table(spec), params["q"])(observation, mask))


def of_choices(values: Any, step: Transition) -> Any:
    """The values or logits of the actions that could be chosen: one that was not allowed was not avoided."""
    return values if step.allowed is None else jnp.where(step.allowed, values, NEVER)


def choice_loss(logits: Any, step: Transition) -> Any:
    """The cross-entropy of the logged action among those that could be chosen."""
    return cross_entropy(of_choices(logits, step), jax.nn.one_hot(step.action, logits.size))


@dataclass(frozen=True, kw_only=True)
class ValueAgent(LearnsValues, TableAgent):
    """An agent whose columns are trained towards reward plus discounted value of the next state."""

    def __post_init__(self):
        super().__post_init__()
        self.check_limit()


@dataclass(frozen=True, kw_only=True)
class HuberAgent(ValueAgent):
    """A value agent with a Huber loss. Where its errors count linearly it learns something near the median,
    so that a rare large reward counts too little."""

    huber_limit: Annotated[
        float | Literal["auto"],
        "errors above this count linearly, others squared; auto: 1, or in another's log its largest reward",
    ] = "auto"

    def __post_init__(self):
        super().__post_init__()
        limit = self.huber_limit
        if limit != "auto" and not (isinstance(limit, (int, float)) and 0 < limit < jnp.inf):
            raise UsageError(f"huber_limit is {limit}: choose a number above zero, or auto")

    def settled(self) -> Self:
        return replace(super().settled(), huber_limit=self._huber_limit)

    @property
    def _huber_limit(self) -> float:
        return 1.0 if self.huber_limit == "auto" else self.huber_limit

    def error_loss(self, error) -> Any:
        return huber(error, self._huber_limit)
