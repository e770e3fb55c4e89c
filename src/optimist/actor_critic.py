"""Agents of vector actions: an actor proposes an action, critics say what it is worth."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from optimist.agent import Agent, Objective
from optimist.data.transition import Spec, Transition
from optimist.errors import DataError, UsageError
from optimist.networks import Perceptron
from optimist.optimizers import Adam, RmsProp


class Bounds(NamedTuple):
    """The box of actions."""

    low: Any
    high: Any

    @classmethod
    def of(cls, spec: Spec) -> "Bounds":
        return cls(jnp.array(spec.action_low), jnp.array(spec.action_high))

    @property
    def reach(self) -> Any:
        """Half of each side: the unit in which noise is measured."""
        return (self.high - self.low) / 2

    def scaled(self, share) -> Any:
        """From [-1, 1] to the box."""
        return self.low + (share + 1) * self.reach

    def clip(self, action) -> Any:
        return jnp.clip(action, self.low, self.high)


class Players(NamedTuple):
    """Networks with their parameters filled in, and the box in which they act."""

    actor: Callable[..., Any]  # observation -> action
    critics: Callable[[Any, Any], Any]  # (observation, action) -> what each critic says, (critics,)
    bounds: Bounds


@dataclass(frozen=True, kw_only=True)
class ActorCritic(Agent):
    """What the agents of Fujimoto et al. share: networks of 400 and 300, slowly following targets, noise."""

    optimizer: RmsProp | Adam = Adam(learning_rate=1e-3, epsilon=1e-8)
    target_period: int = 1
    target_rate: float = 0.005
    hidden: str = "400-300"  # the widths of the layers of actor and critics
    critics: int = 1
    noise: float = 0.5  # of exploration: its standard deviation, where the largest action is 1
    actor_period: int = 1  # gradient steps of the critics per one of the actor

    def __post_init__(self):
        widths(self.hidden)  # complains of what it cannot read
        if min(self.target_period, self.actor_period, self.critics) < 1 or not 0 < self.target_rate <= 1:
            raise UsageError(
                f"target_period {self.target_period}, actor_period {self.actor_period}, critics "
                f"{self.critics}, target_rate {self.target_rate}: whole numbers from 1, and a rate up to 1"
            )

    @abstractmethod
    def critic_loss(self, now: Any, target: Any, step: Transition, key, shared_key) -> Any:
        """The critics' loss of one transition; every transition has a `key`, the minibatch a `shared_key`."""

    @abstractmethod
    def actor_loss(self, now: Any, step: Transition, key) -> Any:
        """The actor's loss at one transition."""

    def check(self, spec: Spec) -> None:
        if spec.discrete:
            raise DataError(
                f"{type(self).__name__} chooses action vectors; this data has {spec.actions} discrete "
                "actions: take an agent such as rem"
            )
        if len(spec.observation_shape) != 1:
            raise DataError(
                f"{type(self).__name__} reads vectors; these observations are {spec.observation_shape}: "
                "take an agent with convolutions, such as rem"
            )

    def network(self, outputs: int) -> Perceptron:
        return Perceptron(widths(self.hidden), outputs)

    def init(self, key, spec: Spec) -> dict:
        (observation,), (action,) = spec.observation_shape, spec.action_shape
        actor_key, critic_key = jax.random.split(key)
        critic = partial(self.network(1).init, inputs=observation + action)
        return {
            "actor": self.network(action).init(actor_key, observation),
            "critic": jax.vmap(critic)(jax.random.split(critic_key, self.critics)),
        }

    def players(self, spec: Spec, params: dict) -> Any:
        actor, bounds = self.network(len(spec.action_low)), Bounds.of(spec)

        def act(observation):
            return bounds.scaled(jnp.tanh(actor(params["actor"], observation)))

        return Players(act, partial(self.judged, params), bounds)

    def judged(self, params: dict, observation, action) -> Any:
        return jax.vmap(lambda layers: self.network(1)(layers, observation, action)[0])(params["critic"])

    def objectives(self, spec: Spec) -> tuple[Objective, ...]:
        def critic_loss(params, targets, batch, key):
            now, target = self.players(spec, params), self.players(spec, targets)
            keys, shared_key = keys_for(batch, key)
            return jax.vmap(lambda step, k: self.critic_loss(now, target, step, k, shared_key))(
                batch, keys
            ).mean()

        def actor_loss(params, targets, batch, key):
            now = self.players(spec, params)
            return jax.vmap(partial(self.actor_loss, now))(batch, keys_for(batch, key)[0]).mean()

        return (Objective("critic", critic_loss), Objective("actor", actor_loss, self.actor_period))

    def action(self, spec: Spec, params: dict, observation, key) -> Any:
        return self.players(spec, params).actor(observation)

    def online_action(self, spec: Spec, params: dict, observation, key, episode_key) -> Any:
        bounds, best = Bounds.of(spec), self.action(spec, params, observation, key)
        return bounds.clip(best + self.noise * bounds.reach * jax.random.normal(key, best.shape))

    def estimate(self, spec: Spec, params: dict, observation) -> Any:
        players = self.players(spec, params)
        return players.critics(observation, players.actor(observation)).mean()


def widths(text: str) -> tuple[int, ...]:
    """The layers of a network, written as 400-300."""
    if not all(width.isdigit() and int(width) for width in text.split("-")):
        raise UsageError(f'hidden layers "{text}": write their widths as 400-300')
    return tuple(map(int, text.split("-")))


def keys_for(batch: Transition, key) -> tuple[Any, Any]:
    """A key for every transition, and one that they share."""
    own, shared = jax.random.split(key)
    return jax.random.split(own, batch.reward.shape[0]), shared
