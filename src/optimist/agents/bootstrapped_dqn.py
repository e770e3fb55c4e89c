"""Bootstrapped-DQN: separate networks, each trained towards its own target; one plays an episode."""

from dataclasses import dataclass

from optimist.agents.ensemble_dqn import EnsembleDqn
from optimist.equations.optimizers import Adam, RmsProp


@dataclass(frozen=True, kw_only=True)
class BootstrappedDqn(EnsembleDqn):
    """Bootstrapped-DQN (Osband et al. 2016), as played online in Agarwal et al. 2020, section 5.3.

    Every network sees every transition, as there; the original hides some from each. Offline, nothing but the
    number and kind of networks tells it from Ensemble-DQN.
    """

    columns: int = 4
    networks: int = 4
    explore: str = "one_hot"
    optimizer: RmsProp | Adam = Adam(epsilon=0.001 / 32)
