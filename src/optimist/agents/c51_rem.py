"""REM over C51: heads that each hold a distribution over fixed atoms, mixed as distributions are."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from optimist.agent import DistributionalEnsemble
from optimist.losses import categorical_projection


@dataclass(frozen=True, kw_only=True)
class C51Rem(DistributionalEnsemble):
    """Distributional REM on C51, named as future work by Agarwal et al. 2020; not evaluated there."""

    columns: int = 204  # 4 heads of 51 atoms
    limit: float = 10.0  # the atoms span [-limit, limit]

    def values(self, table):
        return self._mixed(table, jnp.full(self.heads, 1 / self.heads)) @ self._atoms()

    def loss(self, q, q_target, step, key):
        alpha, atoms = self.alpha(key), self._atoms()
        following = self._mixed(q_target(step.next_observation), alpha)
        best = (following @ atoms).argmax()
        target = categorical_projection(step.reward + step.discount * atoms, following[best], atoms)
        return -target @ jnp.log(self._mixed(q(step.observation), alpha)[step.action] + 1e-8)

    def _atoms(self):
        return jnp.linspace(-abs(self.limit), abs(self.limit), self.width)

    def _mixed(self, table, alpha):
        """One distribution per action, (A, atoms)."""
        heads = table.columns().reshape(-1, self.heads, self.width)
        return jnp.tensordot(jax.nn.softmax(heads), alpha, axes=(1, 0))
