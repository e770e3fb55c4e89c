"""Behaviour cloning: learns to predict the logged action; rewards are ignored."""

from dataclasses import dataclass
from typing import ClassVar

from optimist.agents._table_agent import TableAgent, choice_loss


@dataclass(frozen=True, kw_only=True)
class BehaviourCloning(TableAgent):
    """Behaviour cloning (Pomerleau 1989); Agarwal et al. 2020, section 5.1, say that it performs poorly."""

    vector_peer: ClassVar[str] = "cloned_actor"
    has_values: ClassVar[bool] = False

    def values(self, table):
        return table.mean()

    def loss(self, q, q_target, step, key):
        return choice_loss(q(step.observation).mean(), step)
