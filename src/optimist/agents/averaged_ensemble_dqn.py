"""Averaged Ensemble-DQN: many heads, trained towards the mean of the target heads."""

from dataclasses import dataclass

from optimist.agents._agent import EnsembleAgent


@dataclass(frozen=True, kw_only=True)
class AveragedEnsembleDqn(EnsembleAgent):
    """Averaged Ensemble-DQN (Anschel et al. 2017; Agarwal et al. 2020, section 5.2)."""

    def next_values(self, table):
        return table.mean().max()
