"""Quantile regression DQN: columns are quantiles, trained towards those of the best next action."""

from dataclasses import dataclass

from optimist.agent import TableAgent
from optimist.losses import quantile_huber


@dataclass(frozen=True, kw_only=True)
class QrDqn(TableAgent):
    """QR-DQN (Dabney et al. 2018, algorithm 1), with the offline settings of Agarwal et al. 2020."""

    columns: int = 200

    def values(self, table):
        return table.mean()

    def loss(self, q, q_target, step, key):
        next_table = q_target(step.next_observation)
        best = self.values(next_table).argmax()
        target = step.reward + step.discount * next_table.columns()[best]
        return quantile_huber(q(step.observation).columns()[step.action], target)
