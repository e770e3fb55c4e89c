"""Random actions: an agent that learns nothing, as a baseline for all others."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from optimist.agents._actor_critic import Bounds
from optimist.agents._agent import Agent


@dataclass(frozen=True, kw_only=True)
class Random(Agent):
    """Uniform actions, the "random" of the normalised scores in Agarwal et al. 2020, appendix A.3."""

    has_values: ClassVar[bool] = False

    def check(self, spec):
        """Accept any data: the agent learns nothing from it."""

    def init(self, key, spec):
        return {}

    def objectives(self, spec):
        return ()

    def action(self, spec, params, observation, key, allowed=None):
        if allowed is not None:
            return jax.random.categorical(key, jnp.where(allowed, 0.0, -jnp.inf))
        if spec.discrete:
            return jax.random.randint(key, (), 0, spec.actions)
        return Bounds.of(spec).scaled(jax.random.uniform(key, spec.action_shape, minval=-1, maxval=1))

    def online_action(self, spec, params, observation, key, episode_key, allowed=None):
        return self.action(spec, params, observation, key, allowed)

    def estimate(self, spec, params, observation, allowed=None):
        return jnp.zeros(())
