"""Implicit Q-learning for action vectors: evaluates only logged actions, and imitates the better ones."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import jax
import jax.numpy as jnp

from optimist.agents._actor_critic import Bounds, CriticAgent
from optimist.agents._agent import Objective
from optimist.data.transition import Spec
from optimist.equations.losses import expectile, gaussian_surprise
from optimist.equations.optimizers import Adam, RmsProp
from optimist.errors import UsageError
from optimist.networks import DenseNetwork


@dataclass(frozen=True, kw_only=True)
class Iql(CriticAgent):
    """IQL (Kostrikov et al. 2022, algorithm 1), with the settings of its authors' code for MuJoCo, without
    the decay of the actor's learning rate."""

    discrete_peer: ClassVar[str] = "discrete_iql"
    optimizer: RmsProp | Adam = Adam(learning_rate=3e-4, epsilon=1e-8)
    network: DenseNetwork = DenseNetwork("256,256")
    critics: int = 2
    noise: float = 0.1
    tau: Annotated[float, "expectile that approximates the value of the best logged action"] = 0.7
    temperature: Annotated[float, "the actor weights an action by exp(temperature * advantage)"] = 3.0
    largest_weight: Annotated[float, "upper limit of that weight"] = 100.0

    def __post_init__(self):
        super().__post_init__()
        if not 0 < self.tau < 1:
            raise UsageError(f"tau is {self.tau}: choose a number between 0 and 1")

    def init(self, key, spec: Spec) -> dict:
        rest, value_key = jax.random.split(key)
        found, (observation,) = super().init(rest, spec), spec.observation_shape
        # The actor is a normal distribution whose deviation is the same in every state.
        actor = {"mean": found["actor"], "log_deviation": jnp.zeros(spec.action_shape)}
        return {**found, "actor": actor, "value": self.perceptron(1).init(value_key, observation)}

    def actor(self, spec: Spec, params: dict) -> Callable[[Any], Any]:
        return super().actor(spec, {"actor": params["actor"]["mean"]})

    def value(self, params: dict, observation) -> Any:
        return self.perceptron(1)(params["value"], observation)[0]

    def advantage(self, spec: Spec, params: dict, targets: dict, step) -> Any:
        """The smaller of the target critics' values of the logged action, minus the value of the state."""
        critics, _ = self.judges(spec, targets)
        return critics(step.observation, step.action).min() - self.value(params, step.observation)

    def value_loss(self, spec, params, targets, step):
        return expectile(self.advantage(spec, params, targets, step), self.tau)

    def actor_loss(self, spec, params, targets, step):
        """The negative log likelihood of the logged action, weighted by its advantage."""
        advantage = jax.lax.stop_gradient(self.advantage(spec, params, targets, step))
        weight = jnp.minimum(jnp.exp(self.temperature * advantage), self.largest_weight)
        deviation = jnp.exp(jnp.clip(params["actor"]["log_deviation"], -10, 2))
        bounds, mean = Bounds.of(spec), self.actor(spec, params)(step.observation)
        return weight * gaussian_surprise(bounds.share(step.action) - bounds.share(mean), deviation)

    def critic_loss(self, spec, params, targets, step):
        critics, _ = self.judges(spec, params)
        next_value = jax.lax.stop_gradient(self.value(params, step.next_observation))
        return ((self.target(step, next_value) - critics(step.observation, step.action)) ** 2).sum()

    def objectives(self, spec: Spec) -> tuple[Objective, ...]:
        """In the order of the authors' code: the actor and the critics use the updated value network."""

        def mean(loss: Callable) -> Callable:
            return lambda params, targets, batch, key: jax.vmap(partial(loss, spec, params, targets))(
                batch
            ).mean()

        return (
            Objective("value", mean(self.value_loss)),
            Objective("actor", mean(self.actor_loss), self.actor_period),
            Objective("critic", mean(self.critic_loss)),
        )

    def estimate(self, spec: Spec, params: dict, observation) -> Any:
        return self.value(params, observation)
