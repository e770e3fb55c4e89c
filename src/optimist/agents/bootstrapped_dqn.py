"""Bootstrapped-DQN: trains each of several networks towards its own target; one network plays an episode."""

from dataclasses import dataclass

from optimist.agents.ensemble_dqn import EnsembleDqn
from optimist.equations.optimizers import Adam, RmsProp


@dataclass(frozen=True, kw_only=True)
class BootstrappedDqn(EnsembleDqn):
    """Bootstrapped-DQN (Osband et al. 2016), as run online in Agarwal et al. 2020, section 5.3.

    Every network learns from every transition, as in the second paper; in the first, each network learns from
    a part. Offline it differs from Ensemble-DQN only in the number of heads and in using separate networks.
    """

    columns: int = 4
    networks: int = 4
    explore: str = "one_hot"
    optimizer: RmsProp | Adam = Adam(epsilon=0.001 / 32)
