"""Twin delayed DDPG: takes the smaller of two critics, adds noise to the next action, delays the actor."""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp

from optimist.agents._actor_critic import ActorCritic
from optimist.equations.optimizers import Adam, RmsProp


@dataclass(frozen=True, kw_only=True)
class Td3(ActorCritic):
    """TD3 (Fujimoto et al. 2018, algorithm 1), with the learning rate of Agarwal et al. 2020, A.2."""

    optimizer: RmsProp | Adam = Adam(learning_rate=5e-4, epsilon=1e-8)
    critics: int = 2
    actor_period: int = 2
    target_period: int = 2
    blur: Annotated[float, "standard deviation of the next action's noise; the largest action is 1"] = 0.2
    blur_limit: Annotated[float, "the next action's noise is clipped to +- this"] = 0.5

    def critic_loss(self, now, target, step, key, shared_key):
        next_value = target.critics(step.next_observation, self.next_action(target, step, key)).min()
        return ((self.target(step, next_value) - now.critics(step.observation, step.action)) ** 2).sum()

    def next_action(self, target, step, key):
        noise = self.blur * jax.random.normal(key, step.action.shape)
        noise = jnp.clip(noise, -self.blur_limit, self.blur_limit) * target.bounds.reach
        return target.bounds.clip(target.actor(step.next_observation) + noise)

    def actor_loss(self, now, step, key):
        return -now.first_critic(step.observation, now.actor(step.observation))
