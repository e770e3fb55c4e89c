"""Tables turn features into one value per action and column."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from optimist.networks.layers import initial_weight
from optimist.networks.torsos import Torso


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Table:
    """One value per action and column, kept as features and weights until the values are needed.

    The last layer is linear, so a mixture of columns is a column with mixed weights, and a mixture of 200
    heads costs about as much as one head: (f . W) @ alpha == f . (W @ alpha).
    """

    features: Any  # (F,)
    weight: Any  # (F, A, K)
    bias: Any  # (A, K)

    def __matmul__(self, alpha):
        """Mix the columns: (K,) -> (A,), or several mixtures at once, (K, M) -> (A, M)."""
        if alpha.shape[1:] == (1,) and jax.default_backend() == "gpu":
            return self._mixed_once(alpha)
        return jnp.tensordot(self.features, self.weight @ alpha, axes=1) + self.bias @ alpha

    def _mixed_once(self, alpha):
        """The same for one mixture on a GPU, where the product is a sum. The gradient, alpha times a number
        per feature and action, then needs no array of its own: Adam takes one pass over the heads instead of
        three. The barrier keeps the draw of alpha out of that pass."""
        alpha = jax.lax.optimization_barrier(alpha)
        weight = (self.weight * jnp.broadcast_to(alpha[:, 0], self.weight.shape)).sum(axis=-1, keepdims=True)
        return jnp.tensordot(self.features, weight, axes=1) + self.bias @ alpha

    def mean(self):
        """The plain mean of the columns, (A,)."""
        columns = self.bias.shape[-1]
        return self @ jnp.full(columns, 1 / columns)

    def columns(self):
        """Every value, (A, K)."""
        return jnp.tensordot(self.features, self.weight, axes=1) + self.bias


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SplitTable:
    """A table whose columns are divided among separate networks, each with its own features."""

    parts: Table  # every leaf with a leading axis of networks

    @property
    def features(self):
        """The features of each network, (N, F)."""
        return self.parts.features

    def __matmul__(self, alpha):
        """Mix the columns of all networks: (K, ...) -> (A, ...)."""
        networks, _, _, columns = self.parts.weight.shape
        alphas = alpha.reshape(networks, columns, *alpha.shape[1:])
        return jax.vmap(Table.__matmul__)(self.parts, alphas).sum(axis=0)

    def mean(self):
        columns = self.parts.bias.shape[0] * self.parts.bias.shape[-1]
        return self @ jnp.full(columns, 1 / columns)

    def columns(self):
        """Every value, (A, K), network after network."""
        values = jax.vmap(Table.columns)(self.parts)
        return values.transpose(1, 0, 2).reshape(values.shape[1], -1)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AllowedTable:
    """A table of the allowed actions. The row of any other action is a copy of the first allowed one's, so
    that a maximum over actions of any function of the rows is that of an allowed action."""

    table: Table | SplitTable
    rows: Any  # (A,): for each action, the action whose row is read

    @classmethod
    def of(cls, table: "Table | SplitTable", allowed) -> "AllowedTable":
        """The table with this mask, (A,)."""
        return cls(table, jnp.where(allowed, jnp.arange(allowed.shape[-1]), allowed.argmax()))

    @property
    def features(self):
        return self.table.features

    def __matmul__(self, alpha):
        return (self.table @ alpha)[self.rows]

    def mean(self):
        return self.table.mean()[self.rows]

    def columns(self):
        return self.table.columns()[self.rows]


AnyTable = Table | SplitTable | AllowedTable


@dataclass(frozen=True)
class MultiHead:
    """One torso, and a linear layer on its features that gives a table."""

    torso: Torso
    actions: int
    columns: int
    initializer: str
    spread: float | None = None  # heads start as one shared head plus this much independent noise

    def init(self, key, observation_shape: tuple[int, ...]) -> dict:
        """The mean of K independent heads is 1/sqrt(K) as large as one head, and so is the gradient that
        reaches the torso; with a shared start both are as large as with one head."""
        torso_key, head_key = jax.random.split(key)
        features = self.torso.features(observation_shape)

        def drawn(key, columns: int):
            weight = initial_weight(key, (features, self.actions * columns), self.initializer)
            return weight.reshape(features, self.actions, columns)

        if self.spread is None:
            weight = drawn(head_key, self.columns)
        else:
            shared_key, own_key = jax.random.split(head_key)
            weight = drawn(shared_key, 1) + self.spread * drawn(own_key, self.columns)
        torso = self.torso.init(torso_key, observation_shape, self.initializer)
        return {"torso": torso, "weight": weight, "bias": jnp.zeros((self.actions, self.columns))}

    def __call__(self, params: dict, observation) -> Table:
        return Table(self.torso(params["torso"], observation), params["weight"], params["bias"])


@dataclass(frozen=True)
class MultiNetwork:
    """Separate networks, trained in one program, among which the columns of a table are divided."""

    network: MultiHead
    count: int

    def init(self, key, observation_shape: tuple[int, ...]) -> dict:
        keys = jax.random.split(key, self.count)
        return jax.vmap(lambda one: self.network.init(one, observation_shape))(keys)

    def __call__(self, params: dict, observation) -> SplitTable:
        return SplitTable(jax.vmap(self.network, in_axes=(0, None))(params, observation))
