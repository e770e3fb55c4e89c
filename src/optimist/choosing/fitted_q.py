"""Fitted Q evaluation: the value of a frozen policy, learned from the log."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist.choosing.decisions import Answers
from optimist.choosing.evidence import Evidence, Steps, stacked_on_device
from optimist.choosing.regression import Critic, batch_size, fitted


class Own(NamedTuple):
    """What belongs to a candidate in a transition."""

    next_action: Any
    supported: Any  # whether the behaviour would take that action


@dataclass(frozen=True)
class FittedQ:
    """FQE (Le et al. 2019, algorithm 3): Q(s, a) is trained towards r + discount * Q(s', pi(s')).

    The network has two columns. The first is FQE. The second is the same, except that an action which the
    behaviour would not take has the lowest value of the log (Liu et al. 2020, eq. 4): the log does not
    show what follows it. Targets stay within the returns that are possible.
    """

    critic: Critic
    lowest: float
    possible: tuple[float, float]

    def init(self, key) -> Any:
        return self.critic.init(key)

    def loss(self, params, targets, step, own: Own) -> Any:
        following = self.critic(targets, step.next_observation, own.next_action)
        careful = jnp.where(own.supported, following[1], self.lowest)
        target = step.reward + step.discount * jnp.stack([following[0], careful])
        target = jnp.clip(target, *self.possible)
        return ((target - self.critic(params, step.observation, step.action)) ** 2).sum()


class Values(NamedTuple):
    """The value of each candidate at the start of each held-out episode of its log, (C,) of (episodes,); and
    by how much FQE is too low for each held-out step: r + discount * V(s') - Q(s, a)."""

    fqe: list[np.ndarray]
    supported: list[np.ndarray]
    surprises: list[np.ndarray]  # (C,) of (n,)

    @property
    def cautious(self) -> list[np.ndarray]:
        """The mean of both: FQE overrates actions outside the log, and the other underrates them."""
        return [(plain + careful) / 2 for plain, careful in zip(self.fqe, self.supported, strict=True)]


def policy_values(
    evidence: Evidence,
    learned: Sequence[Answers],
    held: Sequence[Answers],
    supported: Sequence[np.ndarray],
    starts_supported: Sequence[np.ndarray],
    held_steps: Steps,
    updates: int,
) -> Values:
    """Values in the unit of the log's rewards. `learned` and `supported` are about the next actions of the
    learned steps, `held` and `starts_supported` about the actions in held-out steps."""
    unit = evidence.unit
    steps = Steps(
        [log.learned for log in evidence.logs], evidence.rewards, batch_size(evidence.spec), 1 / unit
    )
    critic = Critic(evidence.spec, evidence.inputs, columns=2, start=evidence.typical / unit)
    low, high = _possible(evidence)
    problem = FittedQ(critic, evidence.lowest / unit, (low / unit, high / unit))
    own = Own(stacked_on_device([each.next_action for each in learned]), stacked_on_device(list(supported)))
    title = "FQE of one policy" if len(learned) == 1 else f"FQE of {len(learned)} policies"
    params = fitted(problem, steps, evidence.whose, own, updates, title)
    found = Values([], [], [])
    for number, log in enumerate(evidence.whose.tolist()):
        starts = evidence.starts(log)
        mine = jax.tree.map(lambda leaf, number=number: leaf[number], params)
        values, surprises = values_on_log(critic, unit, mine, held_steps, log, held[number])
        plain, careful = values[starts].T
        found.fqe.append(plain)
        found.supported.append(np.where(starts_supported[number][starts], careful, evidence.lowest))
        found.surprises.append(surprises)
    return found


def values_on_log(
    critic: Critic, unit: float, params: Any, steps: Steps, log: int, said: Answers
) -> tuple[np.ndarray, np.ndarray]:
    """The value of a policy in every step, (n, columns), and the surprise of every step, (n,)."""
    values, surprises = [], []
    for inside, place in steps.chunks(log):
        positions, mine = jnp.asarray(steps.begins[log] + inside), Answers(*(each[inside] for each in said))
        found = _values(critic, unit, params, steps.feed.minibatch, steps.feed.resident, positions, mine)
        value, surprise = (np.asarray(column, float)[: place.stop - place.start] for column in found)
        values.append(value)
        surprises.append(surprise)
    return np.concatenate(values), np.concatenate(surprises)


@partial(jax.jit, static_argnames=("critic", "minibatch"))
def _values(critic: Critic, unit, params, minibatch, resident, positions, said: Answers):
    batch, asked = minibatch(resident, positions), jax.vmap(partial(critic, params))

    def value(observation, action):
        return unit * asked(observation, action)

    following = value(batch.next_observation, said.next_action)[:, 0]
    expected = value(batch.observation, batch.action)[:, 0]
    return value(batch.observation, said.action), batch.reward + batch.discount * following - expected


def _possible(evidence: Evidence) -> tuple[float, float]:
    """The returns that rewards such as the logged ones can sum to."""
    rewards = np.concatenate(
        [evidence.rewards.clipped(log.learned.timeline.reward[log.learned.steps()]) for log in evidence.logs]
    )
    horizon = 1 / max(1 - evidence.rewards.gamma, 1e-3)
    return min(0.0, horizon * float(rewards.min())), max(0.0, horizon * float(rewards.max()))
