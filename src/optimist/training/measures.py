"""What an offline run measures: losses, steps, values and agreement at its log; and how they went."""

import logging
import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from optimist.data.sampling import Sampler, transitions
from optimist.equations.optimizers import Adam
from optimist.errors import DivergedError
from optimist.training import guard as guarding
from optimist.training.guard import UNREACHED, Guard, Probes, answers, probes_of
from optimist.training.learner import Learner, TrainState
from optimist.training.seed_logs import SeedLogs
from optimist.training.settings import FREEZE, STOP, Training
from optimist.training.storage.rows import RunCurve, curves_of
from optimist.training.storage.run_folder import Alarm

ENDLESS = 0.9999  # the discount that a sum without discount counts as, where it must be finite
SLOW = 0.05  # share of a full Adam step; smaller steps give a warning
SETTLED = 1_000  # gradient steps after which it no longer matters that Adam's moments began at zero
HELD_OUT_KEY = 1  # of the random draws in the held-out losses, the same at every log
HELD_OUT_LOSS = "held_out_loss_"
WORDS = {"value_ratio": "value ratio", "agreement": "agreement", "value_drift": "drift"}
SHARES = ("agreement", "value_drift")  # are shown in percent
FEWEST = 3  # looks that say which way a loss went
LOOKS, STRETCHES = 3, (5, 20)  # looks in a stretch, and the fewest and most stretches of a run
CLEAR = 0.1  # share of a loss; a smaller change is called none


class Measures:
    """The figures of every seed, and the guard against divergence of agents that have values."""

    def __init__(self, learner: Learner, data: SeedLogs, training: Training, state: TrainState, health: Any):
        """`health` is that of the checkpoint from which the run continues, if it has one."""
        self._learner, self._seeds, self._training = learner, data.seeds, training
        reads = learner.agent.reads_next_action
        held, samplers = data.samplers(training, reads, held=True), data.samplers(training, reads)
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
        if bad.any() and self._guard and self._training.on_divergence == FREEZE:
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
        return bool(self._training.on_divergence == STOP and self.alarms)

    def leave_if_diverged(self) -> None:
        """Raise DivergedError if the run is to stop; call this when everything is saved."""
        if self._guard and self.stops:
            raise DivergedError(self._guard.told(next(iter(self.alarms))))

    def saved(self, state: TrainState) -> Any:
        """The state with what the guard knows, as one tree for a checkpoint."""
        return {**state._asdict(), **({"health": self._guard.health} if self._guard else {})}


log = logging.getLogger("optimist")


class Monitor:
    """Losses and sizes of steps of every seed."""

    def __init__(self, learner: Learner, seeds: tuple[int, ...]):
        self._learner, self._seeds = learner, seeds
        self._slow: set[str] = set()  # parts for which a warning was given

    def rows(self, step: int, state: TrainState, losses: dict, learns: np.ndarray) -> list[dict]:
        """The figures of each seed; seeds that learn no more have none."""
        shares = {
            f"step_share_{part}": np.asarray(share)
            for part, share in _step_shares(self._learner, state.slots).items()
        }
        columns = {**self._means(step, losses), **shares}
        for part in shares if learns.any() else ():
            self._warn_if_too_slow(step, part, shares[part][learns])
        return [
            {name: float(values[place]) for name, values in columns.items()} if learns[place] else {}
            for place in range(len(self._seeds))
        ]

    def _means(self, step: int, losses: dict) -> dict[str, np.ndarray]:
        """The mean loss of each objective over the steps at which it was due, if there are any."""
        found = {}
        objectives = self._learner.agent.objectives(self._learner.spec)
        for objective in objectives if losses else ():
            values = np.asarray(losses[objective.name])
            due = np.arange(step - len(values), step) % objective.period == 0
            if due.any():
                found[f"loss_{objective.name}"] = values[due].mean(axis=0)
        return found

    def _warn_if_too_slow(self, step: int, part: str, shares: np.ndarray) -> None:
        """Warn once per part, after SETTLED steps: before, bias correction makes up for small moments."""
        if step < SETTLED or part in self._slow or shares.mean() >= SLOW:
            return
        self._slow.add(part)
        name = part.removeprefix("step_share_")
        log.warning(
            "step %s: a step of the %s is %.1f%% of a full Adam step, because epsilon %.1e is large compared "
            "with the gradients: learning is slow; try a smaller --optimizer.epsilon%s",
            f"{step:,}",
            name.replace("_", " "),
            100 * shares.mean(),
            self._learner.agent.optimizer.epsilon,
            " or --optimizer.head-epsilon" * name.endswith("heads"),
        )


def check_finite(step: int, seeds: tuple[int, ...], rows: list[dict]) -> None:
    """Raise DivergedError for the first figure that is not finite; `rows` has one row for each seed."""
    for seed, row in zip(seeds, rows, strict=True):
        if bad := not_finite(row):
            raise DivergedError(
                f"{bad[0]} of seed {seed} is not finite before step {step:,}: the state is kept in "
                "diverged/; try a smaller learning rate or clipped rewards"
            )


def not_finite(row: dict) -> list[str]:
    """The names of the figures that are not finite."""
    return [name for name, value in row.items() if not math.isfinite(value)]


@partial(jax.jit, static_argnames="learner")
def _step_shares(learner: Learner, slots: dict) -> dict:
    """The share of a full Adam step that each seed takes, (S,), by part of the parameters: the torso and the
    heads of a table, or each network of an actor-critic."""
    found: dict[str, jax.Array] = {}
    for group, moments in slots.items():
        optimizer = learner.agent.optimizer_of(group)
        if isinstance(optimizer, Adam):
            parts = jax.vmap(optimizer.step_shares)(moments)
            found |= parts if "heads" in parts else {group: parts["torso"]}
    return found


class HeldOut:
    """A fixed batch of held-back transitions for each seed. Computing its losses changes nothing else."""

    def __init__(self, learner: Learner, samplers: Sequence[Sampler]):
        self._learner = learner
        batches = [
            transitions(each, each.positions(UNREACHED, 1)[0], each.dataset.timeline.frames)
            for each in samplers
        ]
        self._batch = jax.tree.map(lambda *columns: np.stack(columns), *batches)
        self._seeds = len(samplers)

    def rows(self, state: TrainState) -> list[dict[str, float]]:
        """The loss of each objective, by its name in the logs, for each seed."""
        found = _losses(self._learner, self._seeds, state.params, state.targets, self._batch)
        columns = {f"{HELD_OUT_LOSS}{name}": np.asarray(values) for name, values in found.items()}
        return [{name: float(values[i]) for name, values in columns.items()} for i in range(self._seeds)]


@partial(jax.jit, static_argnames=("learner", "seeds"))
def _losses(learner: Learner, seeds: int, params: dict, targets: dict, batch) -> dict:
    """(S,) for each objective."""
    key = jax.random.PRNGKey(HELD_OUT_KEY)

    def of_seed(params, targets, batch):
        return learner.losses(params, targets, batch, key)

    return jax.vmap(of_seed, axis_size=seeds)(params, targets, batch)


def estimators_in(row: dict) -> list[str]:
    """The names of the estimators in a row of figures, those on held-out data first."""
    return [name for name in row if name.startswith(HELD_OUT_LOSS)] + [name for name in WORDS if name in row]


def title(name: str) -> str:
    """'held-out loss q', 'value ratio'."""
    return WORDS.get(name) or f"held-out loss {name.removeprefix(HELD_OUT_LOSS)}"


def shown(name: str, value: float) -> str:
    if name in SHARES:
        return f"{100 * value:.3g}%"
    return f"{value:.3g}" if math.isfinite(value) else str(value)


def in_words(rows: Sequence[dict]) -> str:
    """'held-out loss q 0.0123, value ratio 0.93, agreement 81%': means over the seeds that have a figure."""
    names = list(dict.fromkeys(name for row in rows for name in estimators_in(row)))
    found = []
    for name in names:
        values = [row[name] for row in rows if name in row]
        found.append(f"{title(name)} {shown(name, sum(values) / len(values))}")
    return ", ".join(found)


class Course(NamedTuple):
    """How a loss went in a run: means over the seeds, each the median of a stretch of looks."""

    first: float
    lowest: float
    last: float
    step: int  # of the lowest
    noise: float  # a smaller difference is none

    @property
    def rose(self) -> bool:
        return self.last - self.lowest > self.noise

    @property
    def fell(self) -> bool:
        return self.first - self.lowest > self.noise

    @property
    def growth(self) -> float:
        """How far it rose, as a share of the lowest."""
        return (self.last - self.lowest) / max(abs(self.lowest), 1e-9)

    def __str__(self) -> str:
        if self.rose:
            before = f"fell from {self.first:.3g}, and " if self.fell else ""
            return f"{before}rose from step {self.step:,} on, from {self.lowest:.3g} to {self.last:.3g}"
        return (
            f"fell from {self.first:.3g} to {self.last:.3g}" if self.fell else f"stayed about {self.last:.3g}"
        )


def course(curves: Iterable[RunCurve]) -> Course | None:
    """The course of the mean of these curves; None if there are too few looks to tell."""
    by_step = [dict(zip(curve.steps.tolist(), curve.values.tolist(), strict=True)) for curve in curves]
    steps = sorted(set.intersection(*map(set, by_step))) if by_step else []
    if len(steps) < FEWEST:
        return None
    values = np.array([np.mean([seed[step] for seed in by_step]) for step in steps])
    count = min(len(steps), np.clip(len(steps) // LOOKS, *STRETCHES))
    stretches = np.array_split(np.arange(len(steps)), count)
    levels = np.array([np.median(values[each]) for each in stretches])
    errors = [np.std(values[each]) / math.sqrt(len(each)) for each in stretches]
    low = int(levels.argmin())
    noise = max(CLEAR * abs(levels[low]), 2 * float(np.median(errors)))
    at = stretches[low][values[stretches[low]].argmin()]
    first, lowest, last = levels[[0, low, -1]].tolist()
    return Course(first, lowest, last, steps[at], noise)


def held_out_courses(rows: Sequence[dict]) -> dict[str, Course]:
    """The course of each held-out loss, by its name in the logs."""
    names = dict.fromkeys(name for row in rows for name in row if name.startswith(HELD_OUT_LOSS))
    found = {name: course(curves_of(rows, name).values()) for name in names}
    return {name: each for name, each in found.items() if each}


class Remark(NamedTuple):
    line: str
    warns: bool  # is it a reason to train otherwise?


def held_out_remarks(rows: Sequence[dict]) -> list[Remark]:
    """Which way each held-out loss went and, if that of the training did not go the same way, what to do."""
    return [_remark(name, held, rows) for name, held in held_out_courses(rows).items()]


def _remark(name: str, held: Course, rows: Sequence[dict]) -> Remark:
    line = f"the {title(name)} {held}"
    learned = course(curves_of(rows, name.removeprefix("held_out_")).values())
    if not held.rose:
        return Remark(line, False)
    if learned and learned.rose and learned.growth > held.growth / 2:
        return Remark(f"{line}; the loss in training rose too: values grow, which is no overfitting", False)
    other = "take a policy from there" if held.fell else "with a smaller learning rate"
    return Remark(f"{line}: train for fewer steps (--steps {held.step:_}) or {other}", True)
