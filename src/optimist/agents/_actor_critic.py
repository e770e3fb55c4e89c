"""Agents for vector actions: an actor chooses the action, and critics estimate its value."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from optimist.agents._agent import Agent, LearnsValues, Objective, mean_loss
from optimist.data.transition import Spec, Transition
from optimist.equations.optimizers import Adam, RmsProp
from optimist.errors import DataError, UsageError
from optimist.networks import DenseNetwork, Perceptron, Torso, named_torso, sizes, torso_for

# TD3+BC on one log of a dosing problem, with actions in other units: rewards of 1,930 if they reach to 1,
# 1,917 for 3, 1,884 for 10, 1,713 for 30, 642 for 100 (two seeds each). Small ones did no harm, but the loss
# of BCQ's auto-encoder weighs the squared error of an action against a divergence that has no unit.
LARGE, SMALL = 3.0, 0.3


class Bounds(NamedTuple):
    """The box of actions."""

    low: Any
    high: Any
    is_usual: bool  # actions are neither so large nor so small that networks cannot learn from them

    @classmethod
    def of(cls, spec: Spec) -> "Bounds":
        sides = list(zip(spec.action_low, spec.action_high, strict=True))
        is_usual = all(max(-low, high) <= LARGE and (high - low) / 2 >= SMALL for low, high in sides)
        return cls(jnp.array(spec.action_low), jnp.array(spec.action_high), is_usual)

    def read(self, action) -> Any:
        """The action as networks read it and losses measure it: in the log's own unit, as in the authors'
        codes, or relative to an unusual box."""
        return action if self.is_usual else self.share(action)

    @property
    def reach(self) -> Any:
        """Half of each side: the unit in which noise is measured."""
        return (self.high - self.low) / 2

    def scaled(self, share) -> Any:
        """From [-1, 1] to the box."""
        return self.low + (share + 1) * self.reach

    def share(self, action) -> Any:
        """From the box to [-1, 1]; a side of length 0 gives 0."""
        return (action - self.low) / jnp.where(self.reach > 0, self.reach, 1) - (self.reach > 0)

    def clip(self, action) -> Any:
        return jnp.clip(action, self.low, self.high)


class Networks(NamedTuple):
    """Networks with their parameters filled in, and the box in which they act."""

    actor: Callable[..., Any]  # observation -> action
    critics: Callable[[Any, Any], Any]  # (observation, action) -> the value by each critic, (critics,)
    first_critic: Callable[[Any, Any], Any]  # the value by the first critic; only that one is computed
    bounds: Bounds
    vae: Any = None  # BCQ's, whose actor also reads an action, and makes it slightly better


@dataclass(frozen=True, kw_only=True)
class ActorAgent(Agent):
    """An agent for action vectors: its actor network chooses an action inside the box."""

    discrete_peer: ClassVar[str] = "rem"  # the agent to recommend if the actions are discrete
    optimizer: RmsProp | Adam = Adam(learning_rate=1e-3, epsilon=1e-8)
    target_period: int = 1
    target_rate: float = 0.005
    network: DenseNetwork = DenseNetwork()
    noise: Annotated[float, "standard deviation of the exploration noise; the largest action is 1"] = 0.5

    def __post_init__(self):
        if isinstance(self.network, str):  # only the widths of its layers
            object.__setattr__(self, "network", DenseNetwork(self.network))
        if self.target_period < 1 or not 0 < self.target_rate <= 1:
            raise UsageError(
                f"target_period {self.target_period}, target_rate {self.target_rate}: choose a period of at "
                "least 1, and a rate above 0 and up to 1"
            )

    def check(self, spec: Spec) -> None:
        if spec.discrete:
            raise DataError(
                f"{type(self).__name__} chooses action vectors; this data has {spec.actions} discrete "
                f"actions: use an agent such as {self.discrete_peer}"
            )
        if len(spec.observation_shape) != 1:
            raise DataError(
                f"{type(self).__name__} reads vectors; these observations are {spec.observation_shape}: "
                "flatten them before you log them"
            )
        if self.network.torso is not None:
            torso_for(spec, self.network.torso)  # raises for a torso that reads no vectors

    @property
    def torso(self) -> Torso | None:
        return None if self.network.torso is None else named_torso(self.network.torso)

    def perceptron(self, outputs: int, **options: Any) -> Perceptron:
        """Dense layers on the torso, if there is one."""
        return Perceptron(sizes(self.network.hidden), outputs, torso=self.torso, **options)

    def init(self, key, spec: Spec) -> dict:
        (observation,), (action,) = spec.observation_shape, spec.action_shape
        return {"actor": self.perceptron(action).init(key, observation)}

    def actor(self, spec: Spec, params: dict) -> Callable[[Any], Any]:
        """The actor with its parameters filled in: observation -> action."""
        network, bounds = self.perceptron(len(spec.action_low)), Bounds.of(spec)
        return lambda observation: bounds.scaled(jnp.tanh(network(params["actor"], observation)))

    def action(self, spec: Spec, params: dict, observation, key) -> Any:
        return self.actor(spec, params)(observation)

    def online_action(self, spec: Spec, params: dict, observation, key, episode_key) -> Any:
        action_key, noise_key = jax.random.split(key)
        bounds, best = Bounds.of(spec), self.action(spec, params, observation, action_key)
        return bounds.clip(best + self.noise * bounds.reach * jax.random.normal(noise_key, best.shape))


@dataclass(frozen=True, kw_only=True)
class CriticAgent(LearnsValues, ActorAgent):
    """An actor and critics, which estimate the value of its actions."""

    critics: Annotated[int, "number of critics"] = 1
    actor_period: Annotated[int, "gradient steps of the critics for each step of the actor"] = 1
    actor_rate: Annotated[float | None, "the actor's learning rate; none: that of the critics"] = None
    critic_decay: Annotated[float | None, "weight decay of the critics, as in PyTorch's Adam"] = None
    late_action: Annotated[bool, "the action enters the critics at their second layer"] = False
    layer_norm: Annotated[bool, "the critics normalise the numbers of each hidden layer"] = False

    def __post_init__(self):
        super().__post_init__()
        if min(self.actor_period, self.critics) < 1:
            raise UsageError(
                f"actor_period {self.actor_period}, critics {self.critics}: both must be at least 1"
            )
        if self.late_action and len(sizes(self.network.hidden)) < 2:
            raise UsageError(f'late_action needs two hidden layers; hidden is "{self.network.hidden}"')
        self.optimizer_of("actor"), self.optimizer_of("critic")  # raise for invalid rates

    def optimizer_of(self, group: str) -> RmsProp | Adam:
        if group == "actor" and self.actor_rate is not None:
            return replace(self.optimizer, learning_rate=self.actor_rate)
        if group == "critic" and self.critic_decay is not None:
            if not isinstance(self.optimizer, Adam):
                raise UsageError("critic_decay is a setting of Adam: leave it out with another optimizer")
            return replace(self.optimizer, weight_decay=self.critic_decay)
        return self.optimizer

    @property
    def critic_network(self) -> Perceptron:
        return self.perceptron(1, late=self.late_action, normed=self.layer_norm)

    def init(self, key, spec: Spec) -> dict:
        (observation,), (action,) = spec.observation_shape, spec.action_shape
        actor_key, critic_key = jax.random.split(key)
        critics = jax.vmap(lambda one: self.critic_network.init(one, observation, action))(
            jax.random.split(critic_key, self.critics)
        )
        return {**super().init(actor_key, spec), "critic": critics}

    def judges(self, spec: Spec, params: dict) -> tuple[Callable, Callable]:
        """All critics, and the first critic alone."""
        bounds = Bounds.of(spec)

        def judged(layers, observation, action):
            return self.critic_network(layers, observation, bounds.read(action))[0]

        every = jax.vmap(judged, in_axes=(0, None, None))
        first = jax.tree.map(lambda leaf: leaf[0], params["critic"])
        return partial(every, params["critic"]), partial(judged, first)


@dataclass(frozen=True, kw_only=True)
class ActorCritic(CriticAgent):
    """The common part of the agents of Fujimoto et al.: the critics' target is the value of the actor's next
    action, and the actor maximises the critics."""

    @abstractmethod
    def critic_loss(self, now: Any, target: Any, step: Transition, key, shared_key) -> Any:
        """The critics' loss of one transition. Each transition has its own `key`; all transitions of a
        minibatch have the same `shared_key`."""

    @abstractmethod
    def actor_loss(self, now: Any, step: Transition, key) -> Any:
        """The actor's loss of one transition."""

    def actor_batch_loss(self, now: Any, batch: Transition, keys) -> Any:
        """The actor's loss of a minibatch: the mean, unless its transitions are compared with each other."""
        losses = jax.vmap(partial(self.actor_loss, now))(batch, keys)
        return mean_loss(losses, f"{type(self).__name__}.actor_loss")

    def networks(self, spec: Spec, params: dict) -> Any:
        """The networks that the losses read."""
        return Networks(self.actor(spec, params), *self.judges(spec, params), Bounds.of(spec))

    def objectives(self, spec: Spec) -> tuple[Objective, ...]:
        def critic_loss(params, targets, batch, key):
            now, target = self.networks(spec, params), self.networks(spec, targets)
            keys, shared_key = keys_for(batch, key)
            losses = jax.vmap(lambda step, k: self.critic_loss(now, target, step, k, shared_key))(batch, keys)
            return mean_loss(losses, f"{type(self).__name__}.critic_loss")

        def actor_loss(params, targets, batch, key):
            return self.actor_batch_loss(self.networks(spec, params), batch, keys_for(batch, key)[0])

        return (Objective("critic", critic_loss), Objective("actor", actor_loss, self.actor_period))

    def estimate(self, spec: Spec, params: dict, observation) -> Any:
        now = self.networks(spec, params)
        return now.critics(observation, now.actor(observation)).mean()


def keys_for(batch: Transition, key) -> tuple[Any, Any]:
    """A key for each transition, and one key for all of them."""
    own, shared = jax.random.split(key)
    return jax.random.split(own, batch.reward.shape[0]), shared
