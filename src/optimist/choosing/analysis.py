"""What the log shows about all candidates: their actions, their support, their values and their gains over
the log's own policy. What several estimators need is computed once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist.agents._actor_critic import Bounds
from optimist.agents._table_agent import NEVER
from optimist.choosing.evidence import Evidence, Steps
from optimist.choosing.importance import Weighted, softened
from optimist.choosing.ranking import Estimate
from optimist.choosing.regression import (
    Behaviour,
    Critic,
    FittedQ,
    LoggedValue,
    Networks,
    Own,
    batch_size,
    fitted,
    stacked_on_device,
)
from optimist.data.transition import Spec
from optimist.data.views import View
from optimist.training.learner import Learner
from optimist.training.play.acting import POLICY

THRESHOLD = 0.3  # smallest probability of an action, relative to the likeliest: discrete BCQ's
USUAL = 0.99  # share of the logged action vectors that are within the support
PASSES = 20  # with more passes over the log the clone would overfit single steps
LARGEST_WEIGHT = 20.0  # of one step


class Actions(NamedTuple):
    """A candidate's actions at every transition of its log, (n,) each."""

    action: Any
    next_action: Any  # in the next observation


class Supported(NamedTuple):
    """For each candidate whether its actions are within the support, (n,) each."""

    learned: list[np.ndarray]  # the next action of each learned step
    held: list[np.ndarray]  # the action of each held-out step
    propensities: list[np.ndarray | None]  # b(a | s) of the logged actions in the held-out steps of each log


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


class Analysis:
    """The candidates of one selection, judged by the evidence."""

    def __init__(self, evidence: Evidence, updates: int):
        self.evidence, self.candidates, self.updates = evidence, evidence.candidates, updates
        (learned, held), rewards, scale = (
            zip(*evidence.logs, strict=True),
            evidence.rewards,
            1 / evidence.unit,
        )
        self._learned_steps = Steps(learned, rewards, batch_size(evidence.spec), scale)
        self._held_steps = Steps(held, rewards, scale=scale)

    @cached_property
    def actions(self) -> tuple[list[Actions], list[Actions]]:
        """The actions of each candidate in the learned and in the held-out steps of its log."""
        learned, held = list[Actions](), list[Actions]()
        for (source, step), policies in groupby(self.candidates, lambda each: (each.source, each.step)):
            params, several = source.params(step), list(policies)
            for log, here in groupby(several, lambda each: each.log):
                rows = jnp.array([each.row for each in here])
                mine = jax.tree.map(lambda leaf, rows=rows: leaf[rows], params)
                for steps, found in ((self._learned_steps, learned), (self._held_steps, held)):
                    each = steps.read(_actions, source.run.learner, mine, log)
                    found += [Actions(*(c[:, i] for c in each)) for i in range(len(rows))]
        return learned, held

    @property
    def held(self) -> list[Actions]:
        return self.actions[1]

    @cached_property
    def supported(self) -> Supported:
        """Would the behaviour that was logged take the candidates' actions? It is cloned for each log."""
        evidence, spec = self.evidence, self.evidence.spec
        behaviour = Behaviour(spec, evidence.inputs)
        passes = PASSES * max(len(log.learned) for log in evidence.logs) // batch_size(spec) + 1
        logs = np.arange(len(evidence.logs))
        params, _ = fitted(behaviour, self._learned_steps, logs, None, min(self.updates, passes))
        found, clones = Supported([], [], []), list[tuple[Any, ...]]()
        for log, view in enumerate(self._held_steps.views):
            mine = jax.tree.map(lambda leaf, log=log: leaf[log], params)
            _, following = self._learned_steps.read(_clone, behaviour, mine, log)
            now, _ = self._held_steps.read(_clone, behaviour, mine, log)
            logged = view.timeline.action[view.steps()]
            found.propensities.append(_propensities(view, now, logged) if spec.discrete else None)
            clones.append((likely if spec.discrete else Near.of(spec, now, logged), following, now))
        for candidate, learned, held in zip(self.candidates, *self.actions, strict=True):
            inside, following, now = clones[candidate.log]
            found.learned.append(inside(following, learned.next_action))
            found.held.append(inside(now, held.action))
        return found

    @cached_property
    def critic(self) -> Critic:
        """The network of FQE, and of FQE within the support, in units of the spread of the log's returns."""
        evidence = self.evidence
        return Critic(evidence.spec, evidence.inputs, columns=2, start=evidence.typical / evidence.unit)

    @cached_property
    def networks(self) -> Networks:
        """The critic of each candidate."""
        evidence, unit, actions = self.evidence, self.evidence.unit, self.actions[0]
        low, high = evidence.possible
        problem = FittedQ(self.critic, evidence.lowest / unit, (low / unit, high / unit))
        next_actions = stacked_on_device([each.next_action for each in actions])
        own = Own(next_actions, stacked_on_device(self.supported.learned))
        title = "FQE of one policy" if len(actions) == 1 else f"FQE of {len(actions)} policies"
        return fitted(problem, self._learned_steps, evidence.whose, own, self.updates, title)

    @cached_property
    def values(self) -> Values:
        """The values at the start of every held-out episode, in the unit of the log's rewards."""
        found = Values([], [], [])
        for number, candidate in enumerate(self.candidates):
            values, surprises = self._judged(self.networks.params, number)
            starts = self.evidence.logs[candidate.log].held.offsets[:-1]
            plain, careful = values[starts].T
            inside = self.supported.held[number][starts]
            found.fqe.append(plain)
            found.supported.append(np.where(inside, careful, self.evidence.lowest))
            found.surprises.append(surprises)
        return found

    def change(self, number: int) -> float:
        """By how much the FQE of a candidate changed in the second half of the updates."""
        starts = self.evidence.logs[self.candidates[number].log].held.offsets[:-1]
        before, _ = self._judged(self.networks.halfway, number)
        return float(self.values.fqe[number].mean() - before[starts, 0].mean())

    def _judged(self, networks: Any, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The value of a candidate in every held-out step, (n, 2), and the surprise of every step, (n,)."""
        mine, log = jax.tree.map(lambda leaf: leaf[number], networks), self.candidates[number].log
        values, surprises = self._held_steps.read(_values, self.critic, mine, log, *self.held[number])
        return self.evidence.unit * values.astype(float), self.evidence.unit * surprises.astype(float)

    @cached_property
    def observed(self) -> list[np.ndarray]:
        """The discounted return of each held-out episode of each log. What follows an episode that was cut
        off is not in the log: the fitted value of its last state, under the log's policy, stands for it."""
        evidence, unit, gamma = self.evidence, self.evidence.unit, self.evidence.rewards.gamma
        views = self._held_steps.views
        observed = [evidence.rewards.returns(view)[view.offsets[:-1]] for view in views]
        if not any(map(len, cuts := [np.flatnonzero(_is_cut(view)) for view in views])):
            return observed
        problem = LoggedValue(Critic(evidence.spec, evidence.inputs, start=evidence.typical / unit))
        params, _ = fitted(problem, self._learned_steps, np.arange(len(views)), None, self.updates)
        for log, (view, cut) in enumerate(zip(views, cuts, strict=True)):
            mine = jax.tree.map(lambda leaf, log=log: leaf[log], params)
            following = unit * self._held_steps.read(_following, problem, mine, log).astype(float)
            last, length = view.offsets[1:][cut] - 1, np.diff(view.offsets)[cut]
            observed[log][cut] += gamma**length * following[last]
        return observed

    @cached_property
    def gains(self) -> list[np.ndarray]:
        """What each candidate would have earned above that, in each held-out episode of its log; empty for
        action vectors, for which nothing corrects FQE."""
        gains, gamma = list[np.ndarray](), self.evidence.rewards.gamma
        each = zip(self.candidates, self.held, self.values.fqe, self.values.surprises, strict=True)
        for candidate, said, value, surprises in each if self.evidence.spec.discrete else ():
            view, known = self.evidence.logs[candidate.log].held, self.supported.propensities[candidate.log]
            corrected = value + corrections(view, gamma, said.action, known, surprises)
            gains.append(corrected - self.observed[candidate.log])
        return gains

    @cached_property
    def cut_episodes(self) -> int:
        """The number of held-out episodes that were cut off."""
        return sum(int(_is_cut(view).sum()) for view in self._held_steps.views)

    @cached_property
    def weighted(self) -> list[Weighted | None]:
        """Importance sampling on each log; None for action vectors."""
        found, whose = list[Weighted | None](), self.evidence.whose.tolist()
        for log, (view, known) in enumerate(
            zip(self._held_steps.views, self.supported.propensities, strict=True)
        ):
            mine = [said.action for said, owner in zip(self.held, whose, strict=True) if owner == log]
            found.append(None if known is None else softened(view, mine, known, self.evidence.rewards))
        return found

    def weighted_gain(self, number: int) -> Estimate | None:
        """The gain of a candidate by importance sampling; None if too few episodes tell it."""
        log = self.candidates[number].log
        if (weighted := self.weighted[log]) is None:
            return None
        gains = weighted.gains[:, np.sum(self.evidence.whose[:number] == log)]
        if np.isnan(gains).any():
            return None
        return Estimate(*gains[:1], *np.quantile(gains[1:], [0.025, 0.975]))

    def of_weighted(self, read: Callable[[Weighted], np.ndarray]) -> np.ndarray:
        """A column of the weighted estimates, (C,), such as the effective number of episodes."""
        column = np.full(len(self.candidates), np.nan)
        for log, weighted in enumerate(self.weighted):
            if weighted is not None:
                column[self.evidence.whose == log] = read(weighted)
        return column


def _is_cut(view: View) -> np.ndarray:
    """Was each episode cut off?"""
    return ~view.timeline.terminal[view.stops - 1]


def _actions(learner: Learner, params: dict, batch) -> Actions:
    """The actions of several policies of one run, (n, S)."""
    key = jax.random.PRNGKey(POLICY)

    def of_step(params, step):
        return Actions(
            action=learner.action(params, step.observation, key, step.allowed),
            next_action=learner.action(params, step.next_observation, key, step.next_allowed),
        )

    def of_seed(params):
        return jax.vmap(partial(of_step, params))(batch)

    return jax.vmap(of_seed, out_axes=1)(params)


def _clone(behaviour: Behaviour, params, batch):
    """The clone's answers at every observation and at every next observation."""
    answer = jax.vmap(partial(behaviour, params))
    now, following = answer(batch.observation), answer(batch.next_observation)
    if batch.allowed is None:
        return now, following
    return jnp.where(batch.allowed, now, NEVER), jnp.where(batch.next_allowed, following, NEVER)


def _values(critic: Critic, params, batch, action, next_action):
    """The value of a policy in every step, (n, columns), and the surprise of every step, (n,)."""
    value = jax.vmap(partial(critic, params))
    following = value(batch.next_observation, next_action)[:, 0]
    expected = value(batch.observation, batch.action)[:, 0]
    return value(batch.observation, action), batch.reward + batch.discount * following - expected


def _following(problem: LoggedValue, params, batch):
    return jax.vmap(partial(problem, params))(batch.next_observation)


def corrections(
    held: View, gamma: float, actions: np.ndarray, propensities: Any, surprises: np.ndarray
) -> np.ndarray:
    """By how much FQE is too low in each held-out episode, (episodes,): the discounted sum of its surprises
    in the steps in which the candidate would act as was logged, each weighed by 1 / b(a | s).

    This is the doubly robust estimate (Jiang and Li 2016) with the weight of each step alone, not their
    product: it has little variance, and it judges FQE in the states of the log, not in those that the
    candidate would reach."""
    same = held.timeline.action[held.steps()] == actions
    weights = np.minimum(same / propensities, LARGEST_WEIGHT)
    weights /= max(weights.mean(), 1 / LARGEST_WEIGHT)
    inside = np.arange(len(held)) - np.repeat(held.offsets[:-1], np.diff(held.offsets))
    return np.add.reduceat(gamma**inside * weights * surprises, held.offsets[:-1])


def _propensities(view: View, logits: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Those that were logged, else the clone's."""
    if view.timeline.probability is not None:
        return view.timeline.probability[view.steps()].astype(float)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights[np.arange(len(actions)), actions] / weights.sum(axis=1)


def likely(logits: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Is the probability of each action at least THRESHOLD times that of the likeliest? (n, A), (n,)."""
    apart = logits[np.arange(len(actions)), actions] - logits.max(axis=1)
    return apart >= np.log(THRESHOLD)


@dataclass(frozen=True)
class Near:
    """The support of action vectors: those as near to the cloned behaviour as most logged ones are."""

    spec: Spec
    spread: np.ndarray  # of the logged actions around the clone's, in each dimension
    farthest: float

    @classmethod
    def of(cls, spec: Spec, predicted: np.ndarray, logged: np.ndarray) -> "Near":
        apart = _share(spec, logged) - predicted
        spread = np.maximum(np.sqrt((apart**2).mean(axis=0)), 1e-3)
        farthest = float(np.quantile(((apart / spread) ** 2).mean(axis=1), USUAL))
        return cls(spec, spread, farthest)

    def __call__(self, predicted: np.ndarray, actions: np.ndarray) -> np.ndarray:
        apart = (_share(self.spec, actions) - predicted) / self.spread
        return (apart**2).mean(axis=1) <= self.farthest


def _share(spec: Spec, actions: np.ndarray) -> np.ndarray:
    """Actions, (n, D), from the box to [-1, 1]."""
    return np.asarray(jax.vmap(Bounds.of(spec).share)(jnp.asarray(actions)))


def means(columns: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([float(np.mean(column)) for column in columns])
