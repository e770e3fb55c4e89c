"""Behaviour cloning: trained towards the logged action, whatever it was worth."""

from dataclasses import dataclass
from typing import ClassVar

import jax

from optimist.agents._agent import TableAgent
from optimist.equations.losses import cross_entropy


@dataclass(frozen=True, kw_only=True)
class BehaviourCloning(TableAgent):
    """Behaviour cloning (Pomerleau 1989): the paper's section 5.1 says that it performs poorly."""

    vector_peer: ClassVar[str] = "cloned_actor"

    def values(self, table):
        return table.mean()

    def loss(self, q, q_target, step, key):
        logits = q(step.observation).mean()
        return cross_entropy(logits, jax.nn.one_hot(step.action, logits.shape[0]))
