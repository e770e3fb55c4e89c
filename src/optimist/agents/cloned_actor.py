"""Behaviour cloning of action vectors: an actor learns to predict the logged action; rewards are ignored."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from optimist.agents._actor_critic import ActorAgent, Bounds
from optimist.agents._agent import Objective


@dataclass(frozen=True, kw_only=True)
class ClonedActor(ActorAgent):
    """Behaviour cloning (Pomerleau 1989) by mean squared error, like the baseline of Fujimoto et al. 2019."""

    discrete_peer: ClassVar[str] = "behaviour_cloning"
    has_values: ClassVar[bool] = False

    def objectives(self, spec):
        def loss(params, targets, batch, key):
            predicted = jax.vmap(self.actor(spec, params))(batch.observation)
            read = jax.vmap(Bounds.of(spec).read)
            return ((read(predicted) - read(batch.action)) ** 2).mean()

        return (Objective("actor", loss),)

    def estimate(self, spec, params, observation):
        return jnp.zeros(())
