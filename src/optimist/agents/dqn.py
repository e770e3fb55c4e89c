"""Deep Q-learning (Mnih et al. 2015): one column, trained towards the best value the target network sees."""

from dataclasses import dataclass

from optimist.agent import TableAgent
from optimist.losses import huber
from optimist.optimizers import Adam, RmsProp


@dataclass(frozen=True, kw_only=True)
class Dqn(TableAgent):
    """DQN (Nature): Mnih et al. 2015, algorithm 1, with the paper's centred RMSProp."""

    initializer: str = "glorot"
    optimizer: RmsProp | Adam = RmsProp()

    def values(self, table):
        return table.mean()

    def loss(self, q, q_target, step, key):
        next_value = q_target(step.next_observation).mean().max()
        target = step.reward + step.discount * next_value
        return huber(target - q(step.observation).mean()[step.action])


# DQN (Adam) of the paper's section 5: the same loss with REM's optimiser.
PRESETS = {"nature": Dqn(), "adam": Dqn(optimizer=Adam())}
