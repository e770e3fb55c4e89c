"""Networks for all candidates, fitted in one program to the same minibatches; and what they are fitted to.

Every network begins with the same weights and reads the same transitions, so that two candidates differ only
in their own data, such as the actions of their policies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from optimist.agents._actor_critic import Bounds
from optimist.agents._table_agent import choice_loss
from optimist.choosing.evidence import Steps
from optimist.data.transition import Spec
from optimist.equations.optimizers import Adam, changed
from optimist.networks import MultiHead, Perceptron, torso_for
from optimist.training.learner import SIDE_BY_SIDE
from optimist.training.scaling import Inputs
from optimist.training.terminal import Bar

OPTIMIZER = Adam(learning_rate=1e-3, epsilon=1e-8)
TARGET_RATE = 0.01  # how far the targets move towards the networks at each update
CHUNK = 250  # updates of one program
BATCH, IMAGES = 128, 32  # transitions in a minibatch: of vectors, and of images, which cost more
HIDDEN = (128, 128)  # widths of a network that reads action vectors


def batch_size(spec: Spec) -> int:
    return BATCH if len(spec.frame_shape) == 1 else IMAGES


class Problem(Protocol):
    """A network and its loss; hashable, so that equal problems share their programs."""

    def init(self, key) -> Any: ...

    def loss(self, params: Any, targets: Any, step: Any, own: Any) -> Any:
        """The loss of one transition; `own` is what belongs to the candidate."""
        ...


@dataclass(frozen=True)
class Critic:
    """A network of values: (observation, action) -> (columns,)."""

    spec: Spec
    inputs: Inputs | None
    columns: int = 1
    start: float = 0.0  # the value that it begins with, for every action

    def init(self, key) -> Any:
        if self.spec.discrete:
            params = self._network.init(key, self.spec.observation_shape)
            return {**params, "bias": params["bias"] + self.start}
        (observation,), (action,) = self.spec.observation_shape, self.spec.action_shape
        *layers, last = self._network.init(key, observation, action)
        return [*layers, last._replace(bias=last.bias + self.start)]

    def __call__(self, params: Any, observation, action) -> Any:
        read = observation if self.inputs is None else self.inputs(observation)
        if self.spec.discrete:
            return self._network(params, read).columns()[action]
        return self._network(params, read, Bounds.of(self.spec).share(action))

    @property
    def _network(self) -> Any:
        return _network_of(self.spec, self.columns, self.columns)


def _network_of(spec: Spec, columns: int, outputs: int) -> Any:
    """A table of so many columns for discrete actions, a perceptron of so many outputs for vectors."""
    if spec.discrete:
        return MultiHead(torso_for(spec), spec.actions, columns, "fan_in")
    return Perceptron(HIDDEN, outputs)


class Own(NamedTuple):
    """What belongs to a candidate in a transition of FittedQ."""

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


@dataclass(frozen=True)
class Behaviour:
    """The behaviour, cloned: the logits of discrete actions, or the mean of action vectors in [-1, 1]."""

    spec: Spec
    inputs: Inputs | None

    def init(self, key) -> Any:
        shape = self.spec.observation_shape
        return self._network.init(key, shape) if self.spec.discrete else self._network.init(key, *shape)

    def __call__(self, params: Any, observation) -> Any:
        answer = self._network(params, observation if self.inputs is None else self.inputs(observation))
        return answer.mean() if self.spec.discrete else answer

    def loss(self, params, targets, step, own) -> Any:
        said = self(params, step.observation)
        if self.spec.discrete:
            return choice_loss(said, step)
        return ((said - Bounds.of(self.spec).share(step.action)) ** 2).sum()

    @property
    def _network(self) -> Any:
        return _network_of(self.spec, 1, len(self.spec.action_low))


class Networks(NamedTuple):
    """The parameters of every candidate's network, (C, ...), and those after half of the updates."""

    params: Any
    halfway: Any


class Fit(NamedTuple):
    """The networks of all candidates; every leaf is (logs, candidates of a log, ...)."""

    params: Any
    targets: Any
    slots: Any


def fitted(problem: Problem, steps: Steps, whose: Any, own: Any, updates: int, title: str = "") -> Networks:
    """The network of every candidate after this many updates; a `title` shows the progress. Every leaf of
    `own` is (C, n, ...): one entry for each transition of a candidate's log, number `whose[c]` of `steps`."""
    table, place = by_log(np.asarray(whose), len(steps.views))
    begun = problem.init(jax.random.PRNGKey(0))
    one = Fit(begun, begun, OPTIMIZER.transform().init(begun))
    halfway: Any = None
    fit = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*table.shape, *leaf.shape)).copy(), one)
    own = jax.tree.map(lambda column: column[table], own)
    feed, begins, half = steps.feed, jnp.asarray(steps.begins), updates // 2 // CHUNK * CHUNK
    with Bar(title, updates, "update") as bar:
        for first in range(0, updates, CHUNK):
            halfway = jax.tree.map(jnp.copy, fit.params) if first == half else halfway
            items = feed.items(first, min(CHUNK, updates - first))
            fit = _advance(problem, fit, feed.minibatch, feed.resident, items, begins, own)
            if title:
                jax.block_until_ready(fit)
                bar.update(min(first + CHUNK, updates))
    both = Networks(fit.params, halfway)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[place], both)


def stacked_on_device(arrays: Sequence[np.ndarray]) -> Any:
    """Arrays of unequal length as one, (C, longest, ...); the padding is never read."""
    longest = max(len(array) for array in arrays)
    out = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), arrays[0].dtype)
    for place, array in enumerate(arrays):
        out[place, : len(array)] = array
    return jnp.asarray(out)


def by_log(whose: np.ndarray, logs: int) -> tuple[np.ndarray, np.ndarray]:
    """The candidates of each log, (logs, most), and where each candidate is in that table, (C,). A log with
    fewer candidates than another repeats its first one; a log without any repeats candidate 0. The copies
    are never read."""
    members = [np.flatnonzero(whose == log) for log in range(logs)]
    table = np.zeros((logs, max(map(len, members))), int)
    place = np.zeros(len(whose), int)
    for log, mine in enumerate(members):
        table[log] = mine[0] if len(mine) else 0
        table[log, : len(mine)] = mine
        place[mine] = log * table.shape[1] + np.arange(len(mine))
    return table, place


@partial(
    jax.jit,
    static_argnames=("problem", "minibatch"),
    donate_argnames="fit",
    compiler_options=SIDE_BY_SIDE,
)
def _advance(problem: Problem, fit: Fit, minibatch, resident, items, begins, own) -> Fit:
    """Take one update of every network per item: the positions of a minibatch in each log, (logs, B). The
    candidates of a log share its minibatch, which is gathered and prepared once."""
    of_a_log = jax.vmap(partial(_updated, problem), in_axes=(0, 0, None, None))

    def update(fit: Fit, item):
        batch = jax.vmap(partial(minibatch, resident))(item)
        return jax.vmap(of_a_log)(fit, own, batch, item - begins[:, None]), None

    return jax.lax.scan(update, fit, items)[0]


def _updated(problem: Problem, fit: Fit, own, batch, inside) -> Fit:
    mine = jax.tree.map(lambda column: column[inside], own)

    def loss(params):
        return jax.vmap(partial(problem.loss, params, fit.targets))(batch, mine).mean()

    gradient = jax.grad(loss)(fit.params)
    changes, slots = OPTIMIZER.transform().update(gradient, fit.slots, fit.params)
    params = changed(fit.params, changes)
    targets = jax.tree.map(lambda t, p: t + TARGET_RATE * (p - t), fit.targets, params)
    return Fit(params, targets, slots)
