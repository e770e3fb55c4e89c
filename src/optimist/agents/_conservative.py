"""The conservative term of CQL, which lowers the values of actions other than the logged one."""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, ClassVar

from optimist.agents._table_agent import of_choices
from optimist.equations.losses import excess_value
from optimist.errors import UsageError
from optimist.networks import SplitTable, Table


class ReadOnce:
    """A table whose values are computed once, although both terms of the loss read them. There is then one
    backward pass through the network: XLA merges equal forward passes, but not backward passes of different
    gradients."""

    def __init__(self, table: Table | SplitTable):
        self.mean, self.columns, self._table = cache(table.mean), cache(table.columns), table

    def __matmul__(self, alpha):
        return self._table @ alpha


@dataclass(frozen=True, kw_only=True)
class Conservative:
    """CQL(H) (Kumar et al. 2020, eq. 4), added to the loss of the next base class, a table agent. On a log
    with masks the term is about the actions that could be chosen."""

    vector_peer: ClassVar[str] = "td3_bc"
    # The slope of the term is at most its weight, whatever the rewards: with values of 3 the agent clones the
    # log, with 300 it is DQN. With 30 it keeps to good logs and improves bad ones (docs/decisions/024).
    best_value_size: ClassVar[float] = 30.0
    conservatism: Annotated[float, "weight of the conservative term; 0: no such term"] = 1.0

    def __post_init__(self):
        super().__post_init__()  # type: ignore[misc]
        if not 0 <= self.conservatism < float("inf"):
            raise UsageError(f"conservatism is {self.conservatism}: choose a finite number of at least 0")

    @property
    def lift(self) -> float:
        """Where the slopes of the term and of a squared error cancel, the error is at most the weight."""
        return self.conservatism

    def loss(self, q, q_target, step, key):
        table = ReadOnce(q(step.observation))

        def shared(observation, allowed=None):
            read_again = allowed is None and observation is step.observation  # another costs only its time
            return table if read_again else q(observation, allowed)

        values = of_choices(self.values(table), step)  # type: ignore[attr-defined]
        excess = excess_value(values, step.action)
        return super().loss(shared, q_target, step, key) + self.conservatism * excess  # type: ignore[misc]
