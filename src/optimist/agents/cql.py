"""Conservative Q-learning on DQN: DQN with lowered values of actions other than the logged one."""

from dataclasses import dataclass

from optimist.agents._table_agent import Conservative
from optimist.agents.dqn import Dqn
from optimist.equations.optimizers import Adam, RmsProp


@dataclass(frozen=True, kw_only=True)
class Cql(Conservative, Dqn):
    """CQL(H) (Kumar et al. 2020, eq. 4) on DQN (Adam)."""

    optimizer: RmsProp | Adam = Adam()
