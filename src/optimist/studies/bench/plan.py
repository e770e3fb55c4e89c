"""The rows that are measured: all of them, or a few that take about a minute."""

from dataclasses import dataclass, field

from optimist.errors import UsageError, did_you_mean
from optimist.studies.bench import play
from optimist.studies.bench.timing import Timing

PARTS = ("learner", "data", "play")


@dataclass(frozen=True)
class Plan:
    """The rows to measure. A learner's row is an agent, a network, a batch size and a number of seeds."""

    learners: tuple[tuple[str, str, int, int], ...]
    games: tuple[str, ...]
    logged: int  # steps of the log from which batches are read
    played: int  # steps of one collection
    timing: Timing = field(default_factory=Timing)
    parts: tuple[str, ...] = PARTS

    def __post_init__(self):
        for part in self.parts:
            if part not in PARTS:
                raise UsageError(f'there is no part "{part}": {did_you_mean(part, PARTS)}')
        if self.timing.rounds < 1 or not self.timing.seconds > 0:
            raise UsageError("choose at least one round, and seconds above 0")


def quick() -> Plan:
    """A few rows; they take about a minute on two cores."""
    rows = (
        ("dqn", "minatar", 32, 1),
        ("rem", "minatar", 32, 1),
        ("rem", "minatar", 32, 5),
        ("rem", "nature", 32, 1),
        ("td3", "control", 100, 1),
    )
    return Plan(rows, ("minatar_jax/breakout",), logged=2_000, played=2_000, timing=Timing(3, 0.4))


def whole() -> Plan:
    """Agents, batch sizes and seeds on every network; they take some minutes."""
    table = [
        (agent, network, 32, seeds)
        for network in ("minatar", "nature")
        for agent in ("dqn", "qr_dqn", "rem")
        for seeds in (1, 5)
    ]
    larger = [("rem", network, batch, 1) for network in ("minatar", "nature") for batch in (128, 512)]
    control = [("td3", "control", 100, seeds) for seeds in (1, 5)]
    others = [(agent, "control", 256, 1) for agent in ("td3_bc", "iql", "sac_cql")]
    rows = tuple(table + larger + control + others)
    return Plan(rows, tuple(play.playable()), logged=20_000, played=10_000)
