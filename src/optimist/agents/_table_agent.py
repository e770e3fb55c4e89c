"""Agents for discrete actions, which read one (actions x columns) table per state: the base classes, from any
table to values, many heads, distributions, and the conservative term of CQL."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

import jax
import jax.numpy as jnp

from optimist.agents._agent import Agent, LearnsValues, Objective, check_weight, mean_loss
from optimist.data.transition import Spec, Transition
from optimist.equations.losses import cross_entropy, excess_value, huber
from optimist.equations.mixtures import Mixture
from optimist.errors import DataError, UsageError
from optimist.networks import AllowedTable, AnyTable, MultiHead, MultiNetwork, Network, Torso, torso_for

NEVER = -1e9  # the value of an action that was not allowed; finite, because a loss multiplies it by zero


class Reader:
    """A network with its parameters: the table of an observation, and of its allowed actions if given."""

    def __init__(self, network: MultiHead | MultiNetwork, params: dict):
        self._network, self._params, self.masked = network, params, False

    def __call__(self, observation, allowed=None) -> AnyTable:
        table = self._network(self._params, observation)
        self.masked |= allowed is not None
        return table if allowed is None else AllowedTable.of(table, allowed)


def best_action(table: AnyTable, values: Any) -> Any:
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
    def values(self, table: AnyTable) -> Any:
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

    def online_values(self, table: AnyTable, episode_key) -> Any:
        """The value of each action while the agent collects data, (A,)."""
        return self.values(table)

    def state_value(self, table: AnyTable) -> Any:
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

    def values(self, table: AnyTable) -> Any:
        return table.mean()

    def online_values(self, table: AnyTable, episode_key) -> Any:
        return (table @ Mixture(self.explore).draw(episode_key, self.columns))[:, 0]


@dataclass(frozen=True, kw_only=True)
class EnsembleAgent(ManyHeads):
    """An ensemble whose heads have separate losses; subclasses choose the target."""

    @abstractmethod
    def next_values(self, table: AnyTable) -> Any:
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


class ReadOnce:
    """A table whose values are computed once, although both terms of the loss read them. There is then one
    backward pass through the network: XLA merges equal forward passes, but not backward passes of different
    gradients."""

    def __init__(self, table: AnyTable):
        self.mean, self.columns, self._table = cache(table.mean), cache(table.columns), table

    def __matmul__(self, alpha):
        return self._table @ alpha


@dataclass(frozen=True, kw_only=True)
class Conservative:
    """CQL(H) (Kumar et al. 2020, eq. 4), added to the loss of the next base class, a table agent. On a log
    with masks the term is about the actions that could be chosen."""

    vector_peer: ClassVar[str] = "td3_bc"
    # The slope of the term is at most its weight, whatever the rewards: with values of 3 the agent clones the
    # log, with 300 it is DQN. With 30 it keeps to good logs and improves bad ones (docs/decisions/024).
    best_value_size: ClassVar[float] = 30.0
    conservatism: Annotated[float, "weight of the conservative term; 0: no such term"] = 1.0

    def __post_init__(self):
        super().__post_init__()  # type: ignore[misc]
        check_weight(self, "conservatism")

    @property
    def lift(self) -> float:
        """Where the slopes of the term and of a squared error cancel, the error is at most the weight."""
        return self.conservatism

    def loss(self, q, q_target, step, key):
        table = ReadOnce(q(step.observation))

        def shared(observation, allowed=None):
            read_again = allowed is None and observation is step.observation  # another costs only its time
            return table if read_again else q(observation, allowed)

        values = of_choices(self.values(table), step)  # type: ignore[attr-defined]
        excess = excess_value(values, step.action)
        return super().loss(shared, q_target, step, key) + self.conservatism * excess  # type: ignore[misc]
