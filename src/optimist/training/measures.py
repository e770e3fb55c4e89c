"""What an offline run measures at its logs: losses, values, agreement; and the guard that uses it."""

from typing import Any

import numpy as np

from optimist.errors import DivergedError
from optimist.training import guard as guarding
from optimist.training.guard import Guard
from optimist.training.held_out import HeldOut
from optimist.training.learner import Learner, TrainState
from optimist.training.monitor import Monitor, check_finite, not_finite
from optimist.training.offline_settings import Training
from optimist.training.probes import Probes, answers, probes_of
from optimist.training.seed_logs import SeedLogs
from optimist.training.storage.alarms import Alarm

ENDLESS = 0.9999  # the discount that a sum without discount counts as, where it must be finite


class Measures:
    """The figures of every seed, and the guard against divergence of agents that have values."""

    def __init__(self, learner: Learner, data: SeedLogs, training: Training, state: TrainState, health: Any):
        """`health` is that of the checkpoint from which the run continues, if it has one."""
        self._learner, self._seeds, self._training = learner, data.seeds, training
        reads = learner.agent.reads_next_action
        held, samplers = data.held_out_samplers(training, reads), data.samplers(training, reads)
        self._monitor = Monitor(learner, data.seeds)
        self._held_out = HeldOut(learner, held) if held else None
        self._probes: Probes = probes_of(samplers)
        self.latest: list[dict] = []  # the figures of the latest look
        self._guard: Guard | None = None
        if learner.agent.has_values:
            if health is None:
                values = answers(learner, len(data.seeds), state.params, self._probes).values
                health = guarding.first_health(state.params, values, int(state.step))
            lift = learner.agent.lift and learner.agent.lift / (1 - min(training.gamma, ENDLESS))
            self._guard = Guard(
                *(learner, data.seeds, data.logged_values(training), health, training.on_divergence),
                lift=lift,
            )

    @property
    def alarms(self) -> dict[int, Alarm]:
        return self._guard.alarms if self._guard else {}

    @property
    def learns(self) -> np.ndarray:
        """The seeds that are not frozen, (seeds,)."""
        return ~self._guard.frozen if self._guard else np.ones(len(self._seeds), bool)

    def rows(self, step: int, count: int, state: TrainState, losses: dict) -> list[dict]:
        """The figures of each seed after the `count` steps that end at this one. DivergedError if one is not
        finite, unless such a seed is to be frozen."""
        rows = self._monitor.rows(step, state, losses, self.learns)
        if self._held_out:
            rows = [{**row, **held} for row, held in zip(rows, self._held_out.rows(state), strict=True)]
        looks = guarding.is_due(step, count) or self._training.evaluates(step)
        found = answers(self._learner, len(self._seeds), state.params, self._probes) if looks else None
        if found is not None and found.values is not None:
            estimates = np.asarray(found.values).mean(axis=1).tolist()
            rows = [{**row, "estimate": each} for row, each in zip(rows, estimates, strict=True)]
        rows = self._finite(step, rows)
        if found is not None:
            rows = self._looked(step, state, found, rows)
        return rows

    def _finite(self, step: int, rows: list[dict]) -> list[dict]:
        bad = np.array([bool(not_finite(row)) for row in rows])
        if bad.any() and self._guard and self._training.on_divergence == guarding.FREEZE:
            self._guard.fail(step, bad)
            return [{} if failed else row for failed, row in zip(bad, rows, strict=True)]
        check_finite(step, self._seeds, rows)
        return rows

    def _looked(self, step: int, state: TrainState, found: Any, rows: list[dict]) -> list[dict]:
        """The rows with what the probes show."""
        agreed = np.asarray(found.agreement).tolist()
        rows = [{**row, "agreement": each} for row, each in zip(rows, agreed, strict=True)]
        if self._guard:
            looked = self._guard.look(step, state.params, found.values)
            rows = [{**row, **more} for row, more in zip(rows, looked, strict=True)]
        self.latest = rows
        return rows

    def hold(self, state: TrainState) -> TrainState:
        """The state with the last healthy parameters of the frozen seeds."""
        return self._guard.hold(state) if self._guard else state

    @property
    def stops(self) -> bool:
        """Is there an alarm at which the run is to stop?"""
        return bool(self._training.on_divergence == guarding.STOP and self.alarms)

    def leave_if_diverged(self) -> None:
        """Raise DivergedError if the run is to stop; call this when everything is saved."""
        if self._guard and self.stops:
            raise DivergedError(self._guard.told(next(iter(self.alarms))))

    def saved(self, state: TrainState) -> Any:
        """The state with what the guard knows, as one tree for a checkpoint."""
        return {**state._asdict(), **({"health": self._guard.health} if self._guard else {})}
