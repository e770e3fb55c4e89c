"""Agents for tests of what is around an agent. In a file of their own, so that other processes find them."""

from dataclasses import dataclass

import jax.numpy as jnp

from optimist.agents._agent import Agent, Objective
from optimist.equations.optimizers import Adam


@dataclass(frozen=True, kw_only=True)
class Bare(Agent):
    """It learns nothing and does nothing; tests replace what they are about."""

    def check(self, spec):
        pass

    def init(self, key, spec):
        return {}

    def objectives(self, spec):
        return ()

    def action(self, spec, params, observation, key):
        return jnp.int32(0)

    def online_action(self, spec, params, observation, key, episode_key):
        return self.action(spec, params, observation, key)

    def estimate(self, spec, params, observation):
        return jnp.float32(0)


@dataclass(frozen=True, kw_only=True)
class Fuse(Bare):
    """Counts its own steps, and burns out after so many: then its loss is not a number."""

    optimizer: Adam = Adam(learning_rate=1.0, epsilon=0.0)  # every step is one step down
    burns_after: float = 45.0

    def init(self, key, spec):
        return {"count": jnp.zeros(())}

    def objectives(self, spec):
        def loss(params, targets, batch, key):
            spent = params["count"] <= -self.burns_after
            return params["count"] + jnp.where(spent, jnp.nan, 0.0)

        return (Objective("count", loss),)

    def estimate(self, spec, params, observation):
        return params["count"] * 0
