"""Random Ensemble Mixture: Q-learning on a random convex combination of many heads."""

from dataclasses import dataclass

from optimist.agent import TableAgent
from optimist.losses import huber, random_convex_weights


@dataclass(frozen=True, kw_only=True)
class Rem(TableAgent):
    """REM, multi-head (Agarwal et al. 2020, eq. 7): one mixture per minibatch, for both networks."""

    columns: int = 200

    def values(self, table):
        return table.mean()

    def loss(self, q, q_target, step, key):
        alpha = random_convex_weights(key, self.columns)
        next_value = (q_target(step.next_observation) @ alpha).max()
        target = step.reward + step.discount * next_value
        return huber(target - (q(step.observation) @ alpha)[step.action])
