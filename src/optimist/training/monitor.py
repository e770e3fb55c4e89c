"""Losses and sizes of steps for the logs, with warnings, and an error if a figure is not finite."""

import logging
import math
from functools import partial

import jax
import numpy as np

from optimist.equations.optimizers import Adam
from optimist.errors import DivergedError
from optimist.training.learner import Learner, TrainState

log = logging.getLogger("optimist")
SLOW = 0.05  # share of a full Adam step; smaller steps give a warning
SETTLED = 1_000  # gradient steps after which it no longer matters that Adam's moments began at zero


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
