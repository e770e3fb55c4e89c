"""The support of the log: would the behaviour that was logged take a candidate's action?"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist.agents._actor_critic import Bounds
from optimist.agents._table_agent import NEVER, choice_loss
from optimist.choosing.decisions import Answers
from optimist.choosing.evidence import Evidence, Steps
from optimist.choosing.regression import HIDDEN, batch_size, fitted
from optimist.data.transition import Spec
from optimist.data.views import View
from optimist.networks import MultiHead, Perceptron, torso_for
from optimist.training.scaling import Inputs

THRESHOLD = 0.3  # smallest probability of an action, relative to the likeliest: discrete BCQ's
USUAL = 0.99  # share of the logged action vectors that are within the support
PASSES = 20  # with more passes over the log the clone would overfit single steps


@dataclass(frozen=True)
class Behaviour:
    """The behaviour, cloned: the logits of discrete actions, or the mean of action vectors in [-1, 1]."""

    spec: Spec
    inputs: Inputs | None

    def init(self, key) -> Any:
        if self.spec.discrete:
            return self._table.init(key, self.spec.observation_shape)
        return self._perceptron.init(key, *self.spec.observation_shape)

    def __call__(self, params: Any, observation) -> Any:
        read = observation if self.inputs is None else self.inputs(observation)
        return self._table(params, read).mean() if self.spec.discrete else self._perceptron(params, read)

    def loss(self, params, targets, step, own) -> Any:
        said = self(params, step.observation)
        if self.spec.discrete:
            return choice_loss(said, step)
        return ((said - Bounds.of(self.spec).share(step.action)) ** 2).sum()

    @property
    def _table(self) -> MultiHead:
        return MultiHead(torso_for(self.spec), self.spec.actions, 1, "fan_in")

    @property
    def _perceptron(self) -> Perceptron:
        return Perceptron(HIDDEN, len(self.spec.action_low))


class Supported(NamedTuple):
    """For each candidate whether its actions are within the support, (n,) each."""

    learned: list[np.ndarray]  # the next action of each learned step
    held: list[np.ndarray]  # the action of each held-out step
    propensities: list[np.ndarray | None]  # b(a | s) of the logged actions in the held-out steps of each log


def support(
    evidence: Evidence,
    learned: Sequence[Answers],
    held: Sequence[Answers],
    learned_steps: Steps,
    held_steps: Steps,
    updates: int,
) -> Supported:
    """Clone the behaviour of each log, and compare the candidates' actions with it."""
    behaviour = Behaviour(evidence.spec, evidence.inputs)
    params = _cloned(behaviour, evidence, updates)
    found = Supported([], [], [None] * len(evidence.logs))
    judged = dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]()
    for number, log in enumerate(evidence.whose.tolist()):
        if log not in judged:
            mine = jax.tree.map(lambda leaf, log=log: leaf[log], params)
            following = _said(behaviour, mine, learned_steps, log)[1]
            now = _said(behaviour, mine, held_steps, log)[0]
            judged[log] = following, now, _logged(held_steps, log)
        following, now, logged = judged[log]
        if evidence.spec.discrete:
            found.propensities[log] = _propensities(held_steps.views[log], now, logged)
            found.learned.append(likely(following, learned[number].next_action))
            found.held.append(likely(now, held[number].action))
        else:
            near = Near.of(evidence.spec, now, logged)
            found.learned.append(near(following, learned[number].next_action))
            found.held.append(near(now, held[number].action))
    return found


def _cloned(behaviour: Behaviour, evidence: Evidence, updates: int) -> Any:
    """The parameters of the clone of each log."""
    size = batch_size(evidence.spec)
    steps = Steps([log.learned for log in evidence.logs], evidence.rewards, size)
    passes = PASSES * max(steps.lengths) // size + 1
    return fitted(behaviour, steps, np.arange(len(evidence.logs)), None, min(updates, passes))


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


def _logged(steps: Steps, log: int) -> np.ndarray:
    view = steps.views[log]
    return view.timeline.action[view.steps()]


def _said(behaviour: Behaviour, params: Any, steps: Steps, log: int) -> tuple[np.ndarray, np.ndarray]:
    """The clone's answers at every observation and at every next observation of a log."""
    parts = []
    for inside, place in steps.chunks(log):
        positions = jnp.asarray(steps.begins[log] + inside)
        said = _clone(behaviour, params, steps.feed.minibatch, steps.feed.resident, positions)
        parts.append([np.asarray(column)[: place.stop - place.start] for column in said])
    now, following = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return now, following


@partial(jax.jit, static_argnames=("behaviour", "minibatch"))
def _clone(behaviour: Behaviour, params, minibatch, resident, positions):
    batch = minibatch(resident, positions)
    answer = jax.vmap(partial(behaviour, params))
    now, following = answer(batch.observation), answer(batch.next_observation)
    if batch.allowed is None:
        return now, following
    return jnp.where(batch.allowed, now, NEVER), jnp.where(batch.next_allowed, following, NEVER)
