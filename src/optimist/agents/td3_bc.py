"""TD3 with behaviour cloning: the actor stays near the logged actions while it maximises the critic."""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp

from optimist.agents._agent import check_weight
from optimist.agents.td3 import Td3
from optimist.equations.optimizers import Adam, RmsProp
from optimist.networks import DenseNetwork


@dataclass(frozen=True, kw_only=True)
class Td3Bc(Td3):
    """TD3+BC (Fujimoto and Gu 2021, eqs. 3 and 5), with the settings of its authors' code."""

    optimizer: RmsProp | Adam = Adam(learning_rate=3e-4, epsilon=1e-8)
    network: DenseNetwork = DenseNetwork("256,256")
    noise: float = 0.1
    value_weight: Annotated[float, "alpha: weight of the value against the distance from the log"] = 2.5

    def __post_init__(self):
        super().__post_init__()
        check_weight(self, "value_weight")

    def actor_batch_loss(self, now, batch, keys):
        actions = jax.vmap(now.actor)(batch.observation)
        values = jax.vmap(now.first_critic)(batch.observation, actions)
        # Divided by the size of the values, so that one weight suits every reward.
        weight = self.value_weight / jnp.maximum(jax.lax.stop_gradient(jnp.abs(values).mean()), 1e-8)
        distance = jax.vmap(now.bounds.share)(actions) - jax.vmap(now.bounds.share)(batch.action)
        return (distance**2).mean() - weight * values.mean()
