"""REM with DR3: a penalty keeps the features of consecutive states from becoming similar."""

from dataclasses import dataclass
from typing import Annotated

from optimist.agents._agent import check_weight
from optimist.agents.rem import Rem


@dataclass(frozen=True, kw_only=True)
class RemDr3(Rem):
    """REM with DR3's penalty (Kumar et al. 2022, eq. 5): the dot product of the two states' features."""

    feature_penalty: Annotated[float, "weight of the penalty; 0.03 is the authors' for Atari"] = 0.03

    def __post_init__(self):
        super().__post_init__()
        check_weight(self, "feature_penalty")

    def loss(self, q, q_target, step, key):
        here, there = q(step.observation).features, q(step.next_observation, step.next_allowed).features
        similarity = (here * there).sum(axis=-1).mean()  # the mean over separate networks, if there are any
        return super().loss(q, q_target, step, key) + self.feature_penalty * similarity
