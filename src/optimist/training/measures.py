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
from optimist.training.guard import UNREACHED, Guard, answers, first_health, is_due, probes_of
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
log = logging.getLogger("optimist")


class Measures:
    """The figures of every seed, and the guard against divergence of agents that have values."""

    def __init__(self, learner: Learner, data: SeedLogs, training: Training, state: TrainState, health: Any):
        """`health` is that of the checkpoint from which the run continues, if it has one."""
        self._learner, self._seeds, self._training = learner, data.seeds, training
        reads = learner.agent.reads_next_action
        held = data.samplers(training, reads, held=True)
        self._monitor = Monitor(learner, data.seeds)
        self._held_out = HeldOut(learner, held) if held else None
        self._probes = probes_of(data.samplers(training, reads))
        self.latest: list[dict] = []  # the figures of the latest look
        self._guard: Guard | None = None
        if learner.agent.has_values:
            if health is None:
                values = answers(learner, len(data.seeds), state.params, self._probes).values
                health = first_health(state.params, values, int(state.step))
            lift = learner.agent.lift and learner.agent.lift / (1 - min(training.gamma, ENDLESS))
            logged, response = data.logged_values(training), training.on_divergence
            self._guard = Guard(learner, data.seeds, logged, health, response, lift)

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
            rows = _joined(rows, self._held_out.rows(state))
        if not is_due(step, count) and not self._training.evaluates(step):
            return self._finite(step, rows)
        seen = answers(self._learner, len(self._seeds), state.params, self._probes)
        if seen.values is not None:
            rows = _joined(rows, [{"estimate": float(each)} for each in np.asarray(seen.values).mean(axis=1)])
        rows = self._finite(step, rows)
        rows = _joined(rows, [{"agreement": float(each)} for each in np.asarray(seen.agreement)])
        if self._guard:
            rows = _joined(rows, self._guard.look(step, state.params, seen.values))
        self.latest = rows
        return rows

    def _finite(self, step: int, rows: list[dict]) -> list[dict]:
        """The rows, without those of seeds that are frozen because a figure of theirs is not finite."""
        bad = np.array([bool(_not_finite(row)) for row in rows])
        if bad.any() and self._guard and self._training.on_divergence == FREEZE:
            self._guard.fail(step, bad)
            return [{} if failed else row for failed, row in zip(bad, rows, strict=True)]
        check_finite(step, self._seeds, rows)
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


def _joined(rows: list[dict], more: list[dict]) -> list[dict]:
    return [{**row, **others} for row, others in zip(rows, more, strict=True)]


class Monitor:
    """Losses and sizes of steps of every seed."""

    def __init__(self, learner: Learner, seeds: tuple[int, ...]):
        self._learner, self._seeds = learner, seeds
        self._slow: set[str] = set()  # parts for which a warning was given

    def rows(self, step: int, state: TrainState, losses: dict, learns: np.ndarray) -> list[dict]:
        """The figures of each seed; seeds that learn no more have none."""
        columns = {}
        for objective in self._learner.agent.objectives(self._learner.spec) if losses else ():
            values = np.asarray(losses[objective.name])
            due = np.arange(step - len(values), step) % objective.period == 0
            if due.any():  # the mean over the steps at which the objective was due
                columns[f"loss_{objective.name}"] = values[due].mean(axis=0)
        for part, share in _step_shares(self._learner, state.slots).items():
            columns[f"step_share_{part}"] = np.asarray(share)
            if learns.any():
                self._warn_if_too_slow(step, part, columns[f"step_share_{part}"][learns])
        return [
            {name: float(values[place]) for name, values in columns.items()} if learns[place] else {}
            for place in range(len(self._seeds))
        ]

    def _warn_if_too_slow(self, step: int, part: str, shares: np.ndarray) -> None:
        """Warn once per part, after SETTLED steps: before, bias correction makes up for small moments."""
        if step < SETTLED or part in self._slow or shares.mean() >= SLOW:
            return
        self._slow.add(part)
        log.warning(
            "step %s: a step of the %s is %.1f%% of a full Adam step, because epsilon %.1e is large compared "
            "with the gradients: learning is slow; try a smaller --optimizer.epsilon%s",
            f"{step:,}",
            part.replace("_", " "),
            100 * shares.mean(),
            self._learner.agent.optimizer.epsilon,
            " or --optimizer.head-epsilon" * part.endswith("heads"),
        )


def check_finite(step: int, seeds: tuple[int, ...], rows: list[dict]) -> None:
    """Raise DivergedError for the first figure that is not finite; `rows` has one row for each seed."""
    for seed, row in zip(seeds, rows, strict=True):
        if bad := _not_finite(row):
            raise DivergedError(
                f"{bad[0]} of seed {seed} is not finite before step {step:,}: the state is kept in "
                "diverged/; try a smaller learning rate or clipped rewards"
            )


def _not_finite(row: dict) -> list[str]:
    """The names of the figures that are not finite."""
    return [name for name, value in row.items() if not math.isfinite(value)]


@partial(jax.jit, static_argnames="learner")
def _step_shares(learner: Learner, slots: dict) -> dict:
    """The share of a full Adam step that each seed takes, (S,), by part of the parameters: the torso and the
    heads of a table, or each network of an actor-critic."""
    shares: dict[str, jax.Array] = {}
    for group, moments in slots.items():
        optimizer = learner.agent.optimizer_of(group)
        if isinstance(optimizer, Adam):
            parts = jax.vmap(optimizer.step_shares)(moments)
            shares |= parts if "heads" in parts else {group: parts["torso"]}
    return shares


class HeldOut:
    """A fixed batch of held-back transitions for each seed. Computing its losses changes nothing else."""

    def __init__(self, learner: Learner, samplers: Sequence[Sampler]):
        self._learner, self._seeds = learner, len(samplers)
        batches = [
            transitions(each, each.positions(UNREACHED, 1)[0], each.dataset.timeline.frames)
            for each in samplers
        ]
        self._batch = jax.tree.map(lambda *columns: np.stack(columns), *batches)

    def rows(self, state: TrainState) -> list[dict[str, float]]:
        """The loss of each objective, by its name in the logs, for each seed."""
        losses = _losses(self._learner, self._seeds, state.params, state.targets, self._batch)
        columns = {f"{HELD_OUT_LOSS}{name}": np.asarray(values) for name, values in losses.items()}
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
    values: dict[str, list[float]] = {}
    for row in rows:
        for name in estimators_in(row):
            values.setdefault(name, []).append(row[name])
    return ", ".join(f"{title(name)} {shown(name, sum(of) / len(of))}" for name, of in values.items())


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
    courses = {name: course(curves_of(rows, name).values()) for name in names}
    return {name: each for name, each in courses.items() if each}


class Remark(NamedTuple):
    line: str
    warns: bool  # is it a reason to train otherwise?


def held_out_remarks(rows: Sequence[dict]) -> list[Remark]:
    """Which way each held-out loss went and, if that of the training did not go the same way, what to do."""
    remarks = []
    for name, held in held_out_courses(rows).items():
        line, warns = f"the {title(name)} {held}", held.rose
        learned = course(curves_of(rows, name.removeprefix("held_out_")).values())
        if held.rose and learned and learned.rose and learned.growth > held.growth / 2:
            warns = False
            line += "; the loss in training rose too: values grow, which is no overfitting"
        elif held.rose:
            other = "take a policy from there" if held.fell else "with a smaller learning rate"
            line += f": train for fewer steps (--steps {held.step:_}) or {other}"
        remarks.append(Remark(line, warns))
    return remarks
