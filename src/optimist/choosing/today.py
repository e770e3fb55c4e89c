"""Today's policy, that of the log: what it earned in held-out episodes, and what a candidate would have."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from optimist.choosing.evidence import Evidence, Steps
from optimist.choosing.regression import Critic, batch_size, fitted

LARGEST_WEIGHT = 20.0  # of one step


@dataclass(frozen=True)
class LoggedValue:
    """The value of the states under the policy of the log, V(s) -> r + discount * V(s') (TD(0)): a critic
    that is always asked about the same action."""

    critic: Critic

    def init(self, key) -> Any:
        return self.critic.init(key)

    def __call__(self, params, observation) -> Any:
        spec = self.critic.spec
        return self.critic(params, observation, jnp.zeros(spec.action_shape, spec.action_dtype))[0]

    def loss(self, params, targets, step, own) -> Any:
        target = step.reward + step.discount * self(targets, step.next_observation)
        return (target - self(params, step.observation)) ** 2


def observed_returns(evidence: Evidence, held_steps: Steps, updates: int) -> list[np.ndarray]:
    """The discounted return of each held-out episode of each log. What follows an episode that was cut off is
    not in the log: the fitted value of its last state, under the policy of the log, stands for it."""
    logs, gamma = evidence.logs, evidence.rewards.gamma
    observed = [evidence.rewards.returns(log.held)[log.held.offsets[:-1]] for log in logs]
    cut = [np.flatnonzero(~log.held.timeline.terminal[log.held.stops - 1]) for log in logs]
    if not any(map(len, cut)):
        return observed
    unit = evidence.unit
    steps = Steps([log.learned for log in logs], evidence.rewards, batch_size(evidence.spec), 1 / unit)
    problem = LoggedValue(Critic(evidence.spec, evidence.inputs, start=evidence.typical / unit))
    params = fitted(problem, steps, np.arange(len(logs)), None, updates)
    for number, (log, short) in enumerate(zip(logs, cut, strict=True)):
        mine = jax.tree.map(lambda leaf, number=number: leaf[number], params)
        last = jnp.asarray(held_steps.begins[number] + log.held.offsets[1:][short] - 1)
        feed = held_steps.feed
        after = unit * np.asarray(_following(problem, mine, feed.minibatch, feed.resident, last), float)
        observed[number][short] += gamma ** np.diff(log.held.offsets)[short] * after
    return observed


@partial(jax.jit, static_argnames=("problem", "minibatch"))
def _following(problem: LoggedValue, params, minibatch, resident, positions):
    return jax.vmap(partial(problem, params))(minibatch(resident, positions).next_observation)


def corrections(
    evidence: Evidence, log: int, actions: np.ndarray, propensities: np.ndarray | None, surprises: np.ndarray
) -> np.ndarray:
    """By how much FQE is too low in each held-out episode, (episodes,): the discounted sum of its surprises
    in the steps in which the candidate would act as was logged, each weighed by 1 / b(a | s).

    This is the doubly robust estimate (Jiang and Li 2016) with the weight of each step alone, not their
    product: it has little variance, and it judges FQE in the states of the log, not in those that the
    candidate would reach. Zero for action vectors."""
    held = evidence.logs[log].held
    if propensities is None:
        return np.zeros(len(held.starts))
    same = held.timeline.action[held.steps()] == actions
    weights = np.minimum(same / propensities, LARGEST_WEIGHT)
    weights /= max(weights.mean(), 1 / LARGEST_WEIGHT)
    inside = np.arange(len(held)) - np.repeat(held.offsets[:-1], np.diff(held.offsets))
    return np.add.reduceat(evidence.rewards.gamma**inside * weights * surprises, held.offsets[:-1])
