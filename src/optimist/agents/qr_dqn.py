"""Quantile regression DQN: trains quantiles of the return towards those of the best next action."""

from dataclasses import dataclass
from typing import Annotated

from optimist.agents._table_agent import ValueAgent
from optimist.equations.losses import quantile_huber
from optimist.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class QrDqn(ValueAgent):
    """QR-DQN (Dabney et al. 2018, algorithm 1), with the offline settings of Agarwal et al. 2020."""

    columns: int = 200
    over_quantiles: Annotated[str, "sum or mean of the quantiles' losses; sum: as published"] = "sum"

    def __post_init__(self):
        super().__post_init__()
        if self.over_quantiles not in ("sum", "mean"):
            raise UsageError(f'over_quantiles is "{self.over_quantiles}": choose sum or mean')

    def values(self, table):
        return table.mean()

    def loss(self, q, q_target, step, key):
        next_table = q_target(step.next_observation, step.next_allowed)
        best = self.values(next_table).argmax()
        target = self.target(step, next_table.columns()[best])
        loss = quantile_huber(q(step.observation).columns()[step.action], target)
        return loss if self.over_quantiles == "sum" else loss / self.columns
