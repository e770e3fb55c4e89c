"""Conservative Q-learning over QR-DQN, as its authors played Atari."""

from dataclasses import dataclass

from optimist.agents._conservative import Conservative
from optimist.agents.qr_dqn import QrDqn


@dataclass(frozen=True, kw_only=True)
class QrCql(Conservative, QrDqn):
    """CQL(H) (Kumar et al. 2020, section 6) on QR-DQN: the term is over the means of the quantiles."""
