"""A random agent: trained towards nothing, the yardstick below which nobody should fall."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from optimist.agents._actor_critic import Bounds
from optimist.agents._agent import Agent


@dataclass(frozen=True, kw_only=True)
class Random(Agent):
    """Uniform actions, the normaliser "random" of Agarwal et al. 2020, appendix A.3; it learns nothing."""

    def check(self, spec):
        """Any data will do: nothing is learned from it."""

    def init(self, key, spec):
        return {}

    def objectives(self, spec):
        return ()

    def action(self, spec, params, observation, key):
        if spec.discrete:
            return jax.random.randint(key, (), 0, spec.actions)
        return Bounds.of(spec).scaled(jax.random.uniform(key, spec.action_shape, minval=-1, maxval=1))

    def online_action(self, spec, params, observation, key, episode_key):
        return self.action(spec, params, observation, key)

    def estimate(self, spec, params, observation):
        return jnp.zeros(())
