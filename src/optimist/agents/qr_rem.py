"""REM on QR-DQN: trains a random mixture of quantiles towards the same mixture of the target network."""

from dataclasses import dataclass

import jax.numpy as jnp

from optimist.agents._agent import LearnsValues
from optimist.agents._table_agent import DistributionalEnsemble
from optimist.equations.losses import quantile_huber


@dataclass(frozen=True, kw_only=True)
class QrRem(LearnsValues, DistributionalEnsemble):
    """Distributional REM on QR-DQN: Agarwal et al. 2020 name it as future work and do not evaluate it."""

    def values(self, table):
        return table.mean()

    def loss(self, q, q_target, step, key):
        mix = jnp.kron(self.alpha(key)[:, None], jnp.eye(self.width))
        next_quantiles = q_target(step.next_observation, step.next_allowed) @ mix
        best = next_quantiles.mean(axis=1).argmax()
        target = self.target(step, next_quantiles[best])
        return quantile_huber((q(step.observation) @ mix)[step.action], target)
