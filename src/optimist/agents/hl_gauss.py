"""DQN whose value is learned by classification: a target becomes a bell curve over atoms."""

from dataclasses import dataclass
from typing import Annotated

from optimist.agents.c51 import C51
from optimist.equations.losses import cross_entropy, normal_histogram
from optimist.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class HlGauss(C51):
    """HL-Gauss (Farebrother et al. 2024, "Stop Regressing", section 3.1). It has the loss of C51, but no
    distribution of returns: its target is one number, as in DQN."""

    spread: Annotated[float, "standard deviation of a target's bell curve, in distances between atoms"] = 0.75

    def __post_init__(self):
        super().__post_init__()
        if not 0 < self.spread < float("inf"):
            raise UsageError(f"spread is {self.spread}: choose a number above zero")

    def loss(self, q, q_target, step, key):
        next_value = self.values(q_target(step.next_observation, step.next_allowed)).max()
        target = normal_histogram(step.reward + step.discount * next_value, self.atoms, self.spread)
        return cross_entropy(q(step.observation).columns()[step.action], target)
