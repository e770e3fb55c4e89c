"""Batch-constrained Q-learning: among actions that the data might hold, slightly bettered, the best."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from optimist.batch_constrained import BatchConstrained
from optimist.losses import td_error


@dataclass(frozen=True, kw_only=True)
class Bcq(BatchConstrained):
    """BCQ (Fujimoto et al. 2019, algorithm 1), with the settings of its authors' code."""

    critics: int = 2
    caution: float = 0.75  # lambda: the weight of the smaller critic, the rest goes to the larger
    candidates: int = 10  # imagined next actions
    candidates_at_play: int = 100

    def vae_loss(self, vae, step, key):
        mean, deviation = vae.encode(step.observation, step.action)
        code = mean + deviation * jax.random.normal(key, mean.shape)
        error = (vae.decode(step.observation, code) - step.action) ** 2
        divergence = -0.5 * (1 + 2 * jnp.log(deviation) - mean**2 - deviation**2)
        return error.mean() + 0.5 * divergence.mean()

    def critic_loss(self, now, target, step, key, shared_key):
        imagined = now.vae.imagine(step.next_observation, key, self.candidates)
        better = jax.vmap(lambda action: target.actor(step.next_observation, action))(imagined)
        values = jax.vmap(lambda action: target.critics(step.next_observation, action))(better)
        careful = self.caution * values.min(axis=1) + (1 - self.caution) * values.max(axis=1)
        return (td_error(step, now.critics(step.observation, step.action), careful.max()) ** 2).sum()

    def actor_loss(self, now, step, key):
        (imagined,) = now.vae.imagine(step.observation, key, 1)
        return -now.first_critic(step.observation, now.actor(step.observation, imagined))


# The authors' code before and after it was rewritten in March 2020: it acts by the best of 10, or of 100.
PRESETS = {"2020": Bcq(), "2019": Bcq(candidates_at_play=10)}
