"""The term that makes a value agent conservative: actions the log does not show are held down."""

from dataclasses import dataclass
from typing import Annotated

from optimist.equations.losses import excess_value
from optimist.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Conservative:
    """CQL(H) (Kumar et al. 2020, eq. 4), added to the table agent that is the next base class."""

    conservatism: Annotated[float, "the weight of the term; 0 is the agent without it"] = 1.0

    def __post_init__(self):
        super().__post_init__()  # type: ignore[misc]
        if not 0 <= self.conservatism < float("inf"):
            raise UsageError(f"conservatism is {self.conservatism}: a finite number from 0 upwards")

    def loss(self, q, q_target, step, key):
        excess = excess_value(self.values(q(step.observation)), step.action)  # type: ignore[attr-defined]
        return super().loss(q, q_target, step, key) + self.conservatism * excess  # type: ignore[misc]
