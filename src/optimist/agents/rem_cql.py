"""Conservative Q-learning on REM: REM with lowered values of actions other than the logged one."""

from dataclasses import dataclass

from optimist.agents._table_agent import Conservative
from optimist.agents.rem import Rem


@dataclass(frozen=True, kw_only=True)
class RemCql(Conservative, Rem):
    """CQL(H) (Kumar et al. 2020, eq. 4) on REM: the term reads the mean of the heads, as REM's actions do."""
