"""Conservative Q-learning over REM."""

from dataclasses import dataclass

from optimist.agents._conservative import Conservative
from optimist.agents.rem import Rem


@dataclass(frozen=True, kw_only=True)
class RemCql(Conservative, Rem):
    """CQL(H) (Kumar et al. 2020, eq. 4) on REM: the term is over the mean of the heads, by which REM acts."""
