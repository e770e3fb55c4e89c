"""Conservative Q-learning for action vectors, on SAC: lowers the values of actions that were not logged."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from optimist.agents._actor_critic import Bounds, CriticAgent, keys_for
from optimist.agents._agent import Objective
from optimist.data.transition import Spec
from optimist.equations.losses import gaussian_surprise, squashing
from optimist.equations.optimizers import Adam, RmsProp
from optimist.errors import UsageError
from optimist.networks import DenseNetwork, Perceptron

LOG_DEVIATIONS = (-20.0, 2.0)  # as in the authors' code: the density stays finite


class Stochastic(NamedTuple):
    """An actor that draws its action: the hyperbolic tangent of a normal number, scaled to the box."""

    network: Perceptron  # observation -> the mean and the log deviation before the tangent, (2 A,)
    layers: Any
    bounds: Bounds

    def normal(self, observation) -> tuple[Any, Any]:
        both = self.network(self.layers, observation)
        mean, log_deviation = both[: len(both) // 2], both[len(both) // 2 :]
        return mean, jnp.exp(jnp.clip(log_deviation, *LOG_DEVIATIONS))

    def draw(self, observation, key) -> tuple[Any, Any]:
        """An action, and the logarithm of its density over the box [-1, 1]."""
        mean, deviation = self.normal(observation)
        distance = deviation * jax.random.normal(key, mean.shape)
        log_density = -gaussian_surprise(distance, deviation) - squashing(mean + distance).sum()
        return self.bounds.scaled(jnp.tanh(mean + distance)), log_density


@dataclass(frozen=True, kw_only=True)
class SacCql(CriticAgent):
    """CQL(H) (Kumar et al. 2020, eq. 4, appendix F) on SAC (Haarnoja et al. 2018), with the settings of its
    authors' code for MuJoCo: a fixed weight, no entropy in the target, and a temperature that keeps the
    entropy at -(size of the action).

    Departure: the actor maximises the values from the first step on; in the authors' code it first imitates
    the log."""

    discrete_peer: ClassVar[str] = "cql"
    optimizer: RmsProp | Adam = Adam(learning_rate=3e-4, epsilon=1e-8)
    network: DenseNetwork = DenseNetwork("256,256")
    critics: int = 2
    actor_rate: float | None = 1e-4
    noise: float = 0.1
    conservatism: Annotated[float, "weight of the conservative term; 0: no such term"] = 5.0
    samples: Annotated[int, "actions of each of three kinds that estimate the soft maximum"] = 10

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.conservatism < float("inf") or self.samples < 1:
            raise UsageError(
                f"conservatism {self.conservatism}, samples {self.samples}: choose a finite number of at "
                "least 0, and at least 1 sample"
            )

    @property
    def lift(self) -> float:
        return self.conservatism / 2  # beside the square of an error, not half of it

    def optimizer_of(self, group: str) -> RmsProp | Adam:
        return super().optimizer_of("actor" if group == "temperature" else group)

    def policy_network(self, spec: Spec) -> Perceptron:
        return self.perceptron(2 * len(spec.action_low))

    def init(self, key, spec: Spec) -> dict:
        actor_key, rest = jax.random.split(key)
        actor = self.policy_network(spec).init(actor_key, *spec.observation_shape)
        return {**super().init(rest, spec), "actor": actor, "temperature": jnp.zeros(())}  # its logarithm

    def stochastic(self, spec: Spec, params: dict) -> Stochastic:
        return Stochastic(self.policy_network(spec), params["actor"], Bounds.of(spec))

    def actor(self, spec: Spec, params: dict) -> Callable[[Any], Any]:
        """The tangent of the mean, for play."""
        actor = self.stochastic(spec, params)
        return lambda observation: actor.bounds.scaled(jnp.tanh(actor.normal(observation)[0]))

    def critic_loss(self, spec, params, targets, step, key):
        actor, (critics, _) = self.stochastic(spec, params), self.judges(spec, params)
        next_key, excess_key = jax.random.split(key)
        next_action, _ = actor.draw(step.next_observation, next_key)
        next_value = self.judges(spec, targets)[0](step.next_observation, next_action).min()
        values = critics(step.observation, step.action)
        excess = self.soft_maximum(actor, critics, step, excess_key) - values
        return ((self.target(step, next_value) - values) ** 2 + self.conservatism * excess).sum()

    def soft_maximum(self, actor, critics, step, key):
        """log of the integral of exp(value) over all actions in [-1, 1], by importance sampling, (critics,).

        The actions are uniform ones, the actor's, and the actor's in the next state (appendix F)."""
        uniform_key, here_key, next_key = jax.random.split(key, 3)
        size = step.action.shape[0]
        shares = jax.random.uniform(uniform_key, (self.samples, size), minval=-1, maxval=1)
        uniform = jax.vmap(actor.bounds.scaled)(shares)
        uniform_density = jnp.full(self.samples, -size * jnp.log(2.0))
        here, here_density = self.drawn(actor, step.observation, here_key)
        following, next_density = self.drawn(actor, step.next_observation, next_key)
        actions = jnp.concatenate([uniform, here, following])
        log_density = jnp.concatenate([uniform_density, here_density, next_density])
        values = jax.vmap(lambda action: critics(step.observation, action))(actions)
        return jax.nn.logsumexp(values - log_density[:, None], axis=0) - jnp.log(float(len(actions)))

    def drawn(self, actor, observation, key):
        return jax.vmap(partial(actor.draw, observation))(jax.random.split(key, self.samples))

    def temperature_loss(self, spec, params, targets, step, key):
        """The loss of the temperature, which rises while the entropy is below -(size of the action)."""
        action, log_density = self.stochastic(spec, params).draw(step.observation, key)
        return -jnp.exp(params["temperature"]) * (log_density - action.shape[0])

    def actor_loss(self, spec, params, targets, step, key):
        action, log_density = self.stochastic(spec, params).draw(step.observation, key)
        value = self.judges(spec, params)[0](step.observation, action).min()
        return jnp.exp(params["temperature"]) * log_density - value

    def objectives(self, spec: Spec) -> tuple[Objective, ...]:
        def mean(loss: Callable) -> Callable:
            def of_batch(params, targets, batch, key):
                keys, _ = keys_for(batch, key)
                return jax.vmap(partial(loss, spec, params, targets))(batch, keys).mean()

            return of_batch

        return (
            Objective("critic", mean(self.critic_loss)),
            Objective("temperature", mean(self.temperature_loss), self.actor_period),
            Objective("actor", mean(self.actor_loss), self.actor_period),
        )

    def estimate(self, spec: Spec, params: dict, observation) -> Any:
        return self.judges(spec, params)[0](observation, self.actor(spec, params)(observation)).mean()
