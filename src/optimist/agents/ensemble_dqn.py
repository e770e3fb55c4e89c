"""Ensemble-DQN: trains each of many heads towards its own target."""

from dataclasses import dataclass

from optimist.agents._table_agent import EnsembleAgent


@dataclass(frozen=True, kw_only=True)
class EnsembleDqn(EnsembleAgent):
    """Ensemble-DQN (Agarwal et al. 2020, section 4.1): each head has its own target."""

    def next_values(self, table):
        return table.columns().max(axis=0)
