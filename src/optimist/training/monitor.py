"""Watches the numbers of a run: what goes into its logs, and when to warn or to stop."""

import logging
from functools import partial

import jax
import numpy as np

from optimist.errors import DivergedError
from optimist.training.learner import Learner, TrainState

log = logging.getLogger("optimist")
ALARM = 10  # estimates this many times the largest possible return are taken for divergence


class Monitor:
    """Losses and estimated returns of every seed, on a fixed batch of observations."""

    def __init__(
        self,
        learner: Learner,
        seeds: tuple[int, ...],
        observations,
        largest_return: float,
        alarms: dict[int, int] | None = None,
    ):
        self._learner, self._seeds, self._observations = learner, seeds, observations
        self._largest_return = largest_return
        self.alarms = dict(alarms or {})  # seed: the step from which its estimates were beyond any return

    def rows(self, step: int, state: TrainState, losses: dict) -> list[dict]:
        """One row of metrics per seed; a number that is not finite stops the run."""
        means = self._means(step, losses)
        columns = {
            **means,
            "estimate": np.asarray(
                _estimates(self._learner, len(self._seeds), state.params, self._observations)
            ),
        }
        for name, values in columns.items():
            self._stop_if_not_finite(step, name, values)
        self._warn_if_too_large(step, columns["estimate"])
        return [
            {"step": step, "seed": seed, **{name: float(values[i]) for name, values in columns.items()}}
            for i, seed in enumerate(self._seeds)
        ]

    def _means(self, step: int, losses: dict) -> dict[str, np.ndarray]:
        """The mean loss of each objective over the steps on which it was due, if there was one."""
        found = {}
        for objective in self._learner.agent.objectives(self._learner.spec):
            values = np.asarray(losses[objective.name])
            due = np.arange(step - len(values), step) % objective.period == 0
            if due.any():
                found[f"loss_{objective.name}"] = values[due].mean(axis=0)
        return found

    def _stop_if_not_finite(self, step: int, name: str, values: np.ndarray) -> None:
        bad = [seed for seed, value in zip(self._seeds, values, strict=True) if not np.isfinite(value)]
        if bad:
            raise DivergedError(
                f"{name} of seed {bad[0]} is not finite before step {step:,}: the state is kept in "
                "diverged/; try a smaller learning rate or clipped rewards"
            )

    def _warn_if_too_large(self, step: int, estimates: np.ndarray) -> None:
        for seed, size in zip(self._seeds, np.abs(estimates).tolist(), strict=True):
            if size > ALARM * self._largest_return and seed not in self.alarms:
                self.alarms[seed] = step
                log.warning(
                    "step %s: seed %s estimates %.0f where no return exceeds %.0f: it may be diverging",
                    f"{step:,}",
                    seed,
                    size,
                    self._largest_return,
                )


@partial(jax.jit, static_argnames=("learner", "seeds"))
def _estimates(learner: Learner, seeds: int, params: dict, observations):
    """The mean estimated return of each seed, (S,)."""
    estimate = partial(learner.agent.estimate, learner.spec)

    def mean_estimate(params):
        return jax.vmap(partial(estimate, params))(observations).mean()

    return jax.vmap(mean_estimate, axis_size=seeds)(params)  # an agent may have no parameters
