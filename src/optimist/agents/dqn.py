"""Deep Q-learning: trains one Q-function towards the best next value of the target network."""

from dataclasses import dataclass

from optimist.agents._table_agent import HuberAgent
from optimist.equations.optimizers import Adam, RmsProp


@dataclass(frozen=True, kw_only=True)
class Dqn(HuberAgent):
    """DQN (Mnih et al. 2015, algorithm 1), with the centred RMSProp of Agarwal et al. 2020."""

    initializer: str = "glorot"
    optimizer: RmsProp | Adam = RmsProp()

    def values(self, table):
        return table.mean()

    def loss(self, q, q_target, step, key):
        next_value = q_target(step.next_observation, step.next_allowed).mean().max()
        return self.error_loss(self.target(step, next_value) - q(step.observation).mean()[step.action])


# DQN (Nature), online and offline, and DQN (Adam), offline (Agarwal et al. 2020, sections 5.1 and 5.2).
PRESETS = {"nature": Dqn(), "adam": Dqn(optimizer=Adam())}
