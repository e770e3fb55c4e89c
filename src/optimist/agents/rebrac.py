"""ReBRAC: TD3 whose actor and critics are both penalised for actions far from the logged ones."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import jax
import jax.numpy as jnp

from optimist.agents._agent import check_weight
from optimist.agents.td3 import Td3
from optimist.equations.optimizers import Adam, RmsProp
from optimist.networks import DenseNetwork


@dataclass(frozen=True, kw_only=True)
class Rebrac(Td3):
    """ReBRAC (Tarasov et al. 2023, section 3), with the settings of its authors for halfcheetah-medium. Their
    minibatches have 1,024 transitions (`--batch`), and they tune both weights for each log.

    Departures: the networks start with PyTorch's weights, like those of the other actor-critics here. At the
    end of an episode the log has no next action; the critics' target has no penalty there."""

    reads_next_action: ClassVar[bool] = True
    optimizer: RmsProp | Adam = Adam(learning_rate=1e-3, epsilon=1e-8)
    network: DenseNetwork = DenseNetwork("256,256,256")
    layer_norm: bool = True
    noise: float = 0.1
    actor_penalty: Annotated[float, "beta 1: weight of the actor's distance from the logged action"] = 0.001
    critic_penalty: Annotated[float, "beta 2: the same for the next action, in the critics' target"] = 0.01

    def __post_init__(self):
        super().__post_init__()
        check_weight(self, "actor_penalty")
        check_weight(self, "critic_penalty")

    def critic_loss(self, now, target, step, key, shared_key):
        next_action = self.next_action(target, step, key)
        distance = self.distance(target.bounds, next_action, step.next_action) * step.next_logged
        next_value = target.critics(step.next_observation, next_action).min() - self.critic_penalty * distance
        return ((self.target(step, next_value) - now.critics(step.observation, step.action)) ** 2).sum()

    def actor_batch_loss(self, now, batch, keys):
        def judged(step):
            action = now.actor(step.observation)
            value = now.critics(step.observation, action).min()
            return value, self.distance(now.bounds, action, step.action)

        values, distances = jax.vmap(judged)(batch)
        # Divided by the size of the values, so that one weight suits every reward.
        size = jnp.maximum(jax.lax.stop_gradient(jnp.abs(values).mean()), 1e-8)
        return (self.actor_penalty * distances - values / size).mean()

    @staticmethod
    def distance(bounds, action, logged):
        """The squared distance; each side of the box has length 2."""
        return ((bounds.share(action) - bounds.share(logged)) ** 2).sum()
