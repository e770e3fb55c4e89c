"""Conservative Q-learning on QR-DQN: the combination that its authors used for Atari games."""

from dataclasses import dataclass

from optimist.agents._table_agent import Conservative
from optimist.agents.qr_dqn import QrDqn


@dataclass(frozen=True, kw_only=True)
class QrCql(Conservative, QrDqn):
    """CQL(H) (Kumar et al. 2020, section 6) on QR-DQN: the term reads the means of the quantiles."""
