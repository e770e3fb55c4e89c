"""The base class of agents: an agent is its hyperparameters and the losses that train its networks."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import jax.numpy as jnp

from optimist.data.transition import Spec, Transition
from optimist.equations.optimizers import Adam, RmsProp
from optimist.errors import UsageError


def check_weight(agent: Any, name: str) -> None:
    """Raise UsageError for a weight of a term that is negative or has no end."""
    if not 0 <= getattr(agent, name) < jnp.inf:
        raise UsageError(f"{name} is {getattr(agent, name)}: choose a finite number of at least 0")


class Objective(NamedTuple):
    """A loss over a minibatch that trains one group of parameters, every `period` steps."""

    name: str
    loss: Callable[[dict, dict, Transition, Any], Any]  # (parameters, targets, batch, key) -> scalar
    period: int = 1


@dataclass(frozen=True, kw_only=True)
class Agent(ABC):
    """A frozen record of hyperparameters, which gives the learner parameters, objectives and actions."""

    has_values: ClassVar[bool] = True  # False: `estimate` is not a return, as in cloning
    reads_next_action: ClassVar[bool] = False  # True: transitions have `next_action` and `next_logged`
    # The size of values at which the agent learns best: rewards of another's log are scaled to it. What a
    # network says at first, and a step of its optimiser, are not scaled with the rewards: small values are
    # lost in them, and large ones are reached late (docs/decisions/024).
    best_value_size: ClassVar[float] = 50.0

    optimizer: RmsProp | Adam = Adam()
    target_period: Annotated[int, "gradient steps between updates of the target network"] = 2000
    target_rate: Annotated[float, "how far the target moves towards the network; 1: a copy"] = 1.0

    def optimizer_of(self, group: str) -> RmsProp | Adam:
        """The optimiser of this group of parameters."""
        return self.optimizer

    def settled(self) -> Self:
        """The same agent with every "auto" replaced by its value, for a configuration file."""
        return self

    @property
    def lift(self) -> float:
        """By how much terms of the loss may raise a value above its target: of no use to the policy, and no
        sign of divergence."""
        return 0.0

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
        """The best action by the agent's estimate; `key` is for agents that choose at random. An agent for
        discrete actions takes the mask `allowed=None`, (A,), too, here and in the next two methods."""

    @abstractmethod
    def online_action(self, spec: Spec, params: dict, observation, key, episode_key) -> Any:
        """The action while the agent collects data; `episode_key` is the same during a whole episode."""

    @abstractmethod
    def estimate(self, spec: Spec, params: dict, observation) -> Any:
        """The expected return of the agent's action here, for the logs and the guard against divergence."""


@dataclass(frozen=True, kw_only=True)
class LearnsValues:
    """A base class of agents whose target is the reward plus the discounted value of the next state."""

    target_limit: Annotated[
        float | Literal["auto"] | None,
        "targets are clipped to +- this; none: not clipped; auto: the largest return-to-go of the log",
    ] = None

    def __post_init__(self):
        super().__post_init__()  # type: ignore[misc]
        limit = self.target_limit
        if limit not in (None, "auto") and not (isinstance(limit, (int, float)) and 0 < limit < jnp.inf):
            raise UsageError(f"target_limit is {limit}: choose a number above zero, none, or auto")

    def target(self, step: Transition, next_value) -> Any:
        """r + discount * next value (Sutton and Barto 2018, eq. 6.5), clipped to the limit."""
        target = step.reward + step.discount * next_value
        limit: Any = self.target_limit
        return target if limit is None else jnp.clip(target, -limit, limit)


def mean_loss(losses: Any, whose: str) -> Any:
    """The mean over a minibatch of the loss of each transition. UsageError if a transition has more than one:
    their mean would be learned without a word, as when an agent forgets to take the logged action's value."""
    if losses.ndim != 1:
        raise UsageError(
            f"{whose} returns an array of {losses.shape[1:]} for a transition: return one number"
        )
    return losses.mean()
