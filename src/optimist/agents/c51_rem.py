"""REM on C51: trains a random mixture of distributions towards the same mixture of the target network."""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp

from optimist.agents._table_agent import DistributionalEnsemble
from optimist.equations.losses import categorical_projection, cross_entropy
from optimist.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class C51Rem(DistributionalEnsemble):
    """Distributional REM on C51: Agarwal et al. 2020 name it as future work and do not evaluate it."""

    columns: Annotated[int, "4 heads of 51 atoms"] = 204
    limit: Annotated[float, "the atoms range from -limit to limit"] = 10.0

    def __post_init__(self):
        super().__post_init__()
        if self.width < 2 or not 0 < self.limit < jnp.inf:
            raise UsageError(
                f"{self.width} atoms up to {self.limit}: choose 2 or more, and a limit above zero"
            )

    def values(self, table):
        return jax.nn.softmax(self._logits(table, jnp.full(self.heads, 1 / self.heads))) @ self._atoms()

    def loss(self, q, q_target, step, key):
        alpha, atoms = self.alpha(key), self._atoms()
        following = jax.nn.softmax(self._logits(q_target(step.next_observation, step.next_allowed), alpha))
        moved, best = step.reward + step.discount * atoms, (following @ atoms).argmax()
        target = categorical_projection(moved, following[best], atoms)
        return cross_entropy(self._logits(q(step.observation), alpha)[step.action], target)

    def _atoms(self):
        return jnp.linspace(-self.limit, self.limit, self.width)

    def _logits(self, table, alpha):
        heads = jax.nn.log_softmax(table.columns().reshape(-1, self.heads, self.width))
        return jax.nn.logsumexp(heads, axis=1, b=alpha[None, :, None])  # of the mixture, (A, atoms)
