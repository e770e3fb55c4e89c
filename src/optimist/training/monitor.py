"""The figures of a run for its logs, with warnings, and an error if a figure is not finite."""

import logging
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from optimist.equations.optimizers import Adam
from optimist.errors import DivergedError
from optimist.training.learner import Learner, TrainState

log = logging.getLogger("optimist")
ALARM = 10  # an estimate above this many times the largest possible return counts as divergence
SLOW = 0.05  # share of a full Adam step; smaller steps give a warning
SETTLED = 1_000  # gradient steps after which it no longer matters that Adam's moments began at zero


class Monitor:
    """Losses, sizes of steps and estimated returns of every seed; the estimates are for a fixed batch of the
    seed's own log."""

    def __init__(
        self,
        learner: Learner,
        seeds: tuple[int, ...],
        observations,  # (seeds, batch, ...)
        largest_return: float,
        alarms: dict[int, int] | None = None,
    ):
        self._learner, self._seeds, self._observations = learner, seeds, observations
        self._largest_return = largest_return
        self.alarms = dict(alarms or {})  # seed: first step whose estimate exceeded any possible return
        self._slow: set[str] = set()  # parts for which a warning was given

    def rows(self, step: int, state: TrainState, losses: dict) -> list[dict]:
        """The figures of each seed; DivergedError if one is not finite."""
        estimate, largest = _estimates(self._learner, len(self._seeds), state.params, self._observations)
        shares = {
            f"step_share_{part}": share for part, share in _step_shares(self._learner, state.slots).items()
        }
        columns = {**self._means(step, losses), "estimate": estimate, "largest_estimate": largest, **shares}
        columns = {name: np.asarray(values) for name, values in columns.items()}
        rows = [{name: float(values[i]) for name, values in columns.items()} for i in range(len(self._seeds))]
        check_finite(step, self._seeds, rows)
        self._warn_if_too_large(step, columns["largest_estimate"])
        for part in shares:
            self._warn_if_too_slow(step, part, columns[part])
        return rows

    def _means(self, step: int, losses: dict) -> dict[str, np.ndarray]:
        """The mean loss of each objective over the steps at which it was due, if there are any."""
        found = {}
        for objective in self._learner.agent.objectives(self._learner.spec):
            values = np.asarray(losses[objective.name])
            due = np.arange(step - len(values), step) % objective.period == 0
            if due.any():
                found[f"loss_{objective.name}"] = values[due].mean(axis=0)
        return found

    def _warn_if_too_large(self, step: int, largest: np.ndarray) -> None:
        for seed, size in zip(self._seeds, largest.tolist(), strict=True):
            if size > ALARM * self._largest_return and seed not in self.alarms:
                self.alarms[seed] = step
                log.warning(
                    "step %s: seed %s estimates a return of %.0f, but the largest possible one is %.0f: "
                    "it may be diverging",
                    f"{step:,}",
                    seed,
                    size,
                    self._largest_return,
                )

    def _warn_if_too_slow(self, step: int, part: str, shares: np.ndarray) -> None:
        """Warn once per part, after SETTLED steps: before, bias correction makes up for small moments."""
        if step < SETTLED or part in self._slow or shares.mean() >= SLOW:
            return
        self._slow.add(part)
        name = part.removeprefix("step_share_")
        log.warning(
            "step %s: the %s take %.1f%% of a full Adam step, because epsilon %.1e is large compared with "
            "their gradients: they learn slowly; try a smaller --optimizer.epsilon%s",
            f"{step:,}",
            name.replace("_", " "),
            100 * shares.mean(),
            self._learner.agent.optimizer.epsilon,
            " or --optimizer.head-epsilon" * name.endswith("heads"),
        )


def check_finite(step: int, seeds: tuple[int, ...], rows: list[dict]) -> None:
    """Raise DivergedError for the first figure that is not finite; `rows` has one row for each seed."""
    for name in rows[0]:
        bad = [seed for seed, row in zip(seeds, rows, strict=True) if not math.isfinite(row[name])]
        if bad:
            raise DivergedError(
                f"{name} of seed {bad[0]} is not finite before step {step:,}: the state is kept in "
                "diverged/; try a smaller learning rate or clipped rewards"
            )


@partial(jax.jit, static_argnames=("learner", "seeds"))
def _estimates(learner: Learner, seeds: int, params: dict, observations):
    """The mean estimated return and the largest absolute one of each seed, (S,) each."""

    def of_seed(params, observations):
        estimates = jax.vmap(partial(learner.estimate, params))(observations)
        return estimates.mean(), jnp.abs(estimates).max()

    return jax.vmap(of_seed, axis_size=seeds)(params, observations)  # an agent may have no parameters


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
