"""REM whose features of consecutive states are kept from growing alike."""

from dataclasses import dataclass
from typing import Annotated

from optimist.agents.rem import Rem
from optimist.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class RemDr3(Rem):
    """REM with DR3's penalty (Kumar et al. 2022, eq. 5): the dot product of the features of both states."""

    feature_penalty: Annotated[float, "the weight of the penalty; the authors' for Atari"] = 0.03

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.feature_penalty < float("inf"):
            raise UsageError(f"feature_penalty is {self.feature_penalty}: a finite number from 0 upwards")

    def loss(self, q, q_target, step, key):
        here, there = q(step.observation).features, q(step.next_observation).features
        alike = (here * there).sum(axis=-1).mean()  # over separate networks, where there are some
        return super().loss(q, q_target, step, key) + self.feature_penalty * alike
