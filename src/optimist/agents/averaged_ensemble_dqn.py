"""Averaged Ensemble-DQN: trains many heads towards the best value of the target heads' mean."""

from dataclasses import dataclass

from optimist.agents._table_agent import EnsembleAgent


@dataclass(frozen=True, kw_only=True)
class AveragedEnsembleDqn(EnsembleAgent):
    """Averaged Ensemble-DQN (Anschel et al. 2017; Agarwal et al. 2020, section 5.2)."""

    def next_values(self, table):
        return table.mean().max()
