"""A random agent: trained towards nothing, the yardstick below which nobody should fall."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from optimist.agent import Agent
from optimist.errors import DataError


@dataclass(frozen=True, kw_only=True)
class Random(Agent):
    """Uniform actions, the normaliser "random" of Agarwal et al. 2020, appendix A.3; it learns nothing."""

    def check(self, spec):
        if not spec.discrete:
            raise DataError("the random agent chooses among discrete actions; this data has vector actions")

    def init(self, key, spec):
        return {}

    def objectives(self, spec):
        return ()

    def action(self, spec, params, observation, key):
        return jax.random.randint(key, (), 0, spec.actions)

    def online_action(self, spec, params, observation, key, episode_key):
        return self.action(spec, params, observation, key)

    def estimate(self, spec, params, observation):
        return jnp.zeros(())
