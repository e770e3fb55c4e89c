"""The conservative term of CQL, which lowers the values of actions other than the logged one."""

from dataclasses import dataclass
from typing import Annotated

from optimist.equations.losses import excess_value
from optimist.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Conservative:
    """CQL(H) (Kumar et al. 2020, eq. 4), added to the loss of the table agent that is the next base class."""

    conservatism: Annotated[float, "weight of the conservative term; 0: no such term"] = 1.0

    def __post_init__(self):
        super().__post_init__()  # type: ignore[misc]
        if not 0 <= self.conservatism < float("inf"):
            raise UsageError(f"conservatism is {self.conservatism}: choose a finite number of at least 0")

    def loss(self, q, q_target, step, key):
        excess = excess_value(self.values(q(step.observation)), step.action)  # type: ignore[attr-defined]
        return super().loss(q, q_target, step, key) + self.conservatism * excess  # type: ignore[misc]
