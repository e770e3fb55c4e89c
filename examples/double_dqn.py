"""An agent of your own in one file: Double DQN (van Hasselt et al. 2016).

optimist train "$PWD/examples/double_dqn.py:DoubleDqn" DATA --out runs/double
"""

from dataclasses import dataclass

from optimist.agents import HuberAgent


@dataclass(frozen=True, kw_only=True)
class DoubleDqn(HuberAgent):
    """The online network names the best next action, the target network its worth (equation 4)."""

    def values(self, table):
        return table.mean()

    def loss(self, q, q_target, step, key):
        best = q(step.next_observation).mean().argmax()
        target = self.target(step, q_target(step.next_observation).mean()[best])
        return self.error_loss(target - q(step.observation).mean()[step.action])
