"""Deep Q-learning: one column, trained towards the best value that the target network sees."""

from dataclasses import dataclass

from optimist.agent import TableAgent
from optimist.losses import huber, td_error
from optimist.optimizers import Adam, RmsProp


@dataclass(frozen=True, kw_only=True)
class Dqn(TableAgent):
    """DQN (Mnih et al. 2015, algorithm 1), with the centred RMSProp of Agarwal et al. 2020."""

    initializer: str = "glorot"
    optimizer: RmsProp | Adam = RmsProp()

    def values(self, table):
        return table.mean()

    def loss(self, q, q_target, step, key):
        next_value = q_target(step.next_observation).mean().max()
        return huber(td_error(step, q(step.observation).mean()[step.action], next_value))


# DQN (Nature), online and offline, and DQN (Adam), offline (Agarwal et al. 2020, sections 5.1 and 5.2).
PRESETS = {"nature": Dqn(), "adam": Dqn(optimizer=Adam())}
