"""Conservative Q-learning over C51."""

from dataclasses import dataclass

from optimist.agents._conservative import Conservative
from optimist.agents.c51 import C51


@dataclass(frozen=True, kw_only=True)
class C51Cql(Conservative, C51):
    """CQL(H) (Kumar et al. 2020, eq. 4) on C51: the term is over the means of the distributions."""
