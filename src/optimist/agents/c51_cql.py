"""Conservative Q-learning on C51: C51 with lowered values of actions other than the logged one."""

from dataclasses import dataclass

from optimist.agents._table_agent import Conservative
from optimist.agents.c51 import C51


@dataclass(frozen=True, kw_only=True)
class C51Cql(Conservative, C51):
    """CQL(H) (Kumar et al. 2020, eq. 4) on C51: the term reads the means of the distributions."""
