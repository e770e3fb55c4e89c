"""Minimum-target ensemble: trains many heads towards the best value of the target heads' minimum."""

from dataclasses import dataclass

from optimist.agents._table_agent import EnsembleAgent


@dataclass(frozen=True, kw_only=True)
class MinimumEnsembleDqn(EnsembleAgent):
    """The minimum-target ablation of Agarwal et al. 2020, section 5.2 (after Fujimoto et al. 2018)."""

    def next_values(self, table):
        return table.columns().min(axis=1).max()
