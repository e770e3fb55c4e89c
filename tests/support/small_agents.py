"""Small agents of every kind, a log of noise, and a few steps of training."""

import dataclasses
import math

import jax
import numpy as np
import pytest

from optimist import agents
from optimist.agents._actor_critic import ActorAgent, ActorCritic
from optimist.agents._agent import Agent
from optimist.agents._table_agent import TableAgent
from optimist.data.transition import Spec, Transition
from optimist.errors import DataError
from optimist.networks import DenseNetwork
from optimist.training.learner import Learner, advance

VECTORS = Spec(frame_shape=(6,), frame_dtype="float32", actions=3)
CONTROL = Spec(frame_shape=(6,), frame_dtype="float32", action_low=(-1.0, -1.0), action_high=(1.0, 1.0))


def small(agent: Agent) -> Agent:
    """The same agent with few columns and networks, a high learning rate, a target copied every 3 steps."""
    optimizer = dataclasses.replace(agent.optimizer, learning_rate=1e-3)
    agent = dataclasses.replace(agent, optimizer=optimizer, target_period=3)
    if isinstance(agent, ActorAgent):
        sizes = {"vae_hidden": "16,8"} if hasattr(agent, "vae_hidden") else {}
        periods = {"actor_period": 1} if isinstance(agent, ActorCritic) else {}
        return dataclasses.replace(agent, network=DenseNetwork("16,8"), **sizes, **periods)
    return narrow(agent) if isinstance(agent, TableAgent) else agent


def narrow(agent: TableAgent) -> TableAgent:
    """Eight columns of one network, or four networks, at most."""
    networks = min(agent.networks, 4)
    columns = min(agent.columns, 8 if networks == 1 else networks)
    return dataclasses.replace(agent, columns=columns, networks=networks)


PRESETS = {
    f"{name}-{preset}": small(agent)
    for name in agents.available()
    for preset, agent in agents.presets(name).items()
}
TABLES = {label: agent for label, agent in PRESETS.items() if isinstance(agent, TableAgent)}
LEARN_NO_VALUES = {"behaviour_cloning", "random"}  # their losses know of no rewards (test_table_agent)
# Their values are not those of the best policy, by design; their policy is (test_learning).
CONSERVATIVE = {"cql", "qr_cql", "c51_cql", "rem_cql", "rem_dr3", "discrete_bcq", "discrete_iql"}
LEARNERS = {
    label: agent
    for label, agent in TABLES.items()
    if agents.name_of(agent) not in LEARN_NO_VALUES | CONSERVATIVE
    and label not in ("rem-networks-16", "rem-online")  # which at this size train as networks-4 does
}
every_table = pytest.mark.parametrize("agent", TABLES.values(), ids=TABLES)


def default(name: str) -> Agent:
    return small(agents.preset(name))


def spec_for(agent: Agent) -> Spec:
    """The first kind of data that the agent accepts."""
    try:
        agent.check(VECTORS)
    except DataError:
        return CONTROL
    return VECTORS


def transitions(spec: Spec, count: int = 64) -> Transition:
    """Seeded noise; one transition in five is terminal."""
    rng = np.random.default_rng(0)
    observation, next_observation = rng.normal(size=(2, count, *spec.observation_shape)).astype(np.float32)
    control = rng.uniform(-1, 1, size=(count, *spec.action_shape))
    action = rng.integers(spec.actions, size=count) if spec.discrete else control
    return Transition(
        observation=observation,
        action=action.astype(spec.action_dtype),
        reward=rng.uniform(-1, 1, size=count).astype(np.float32),
        discount=np.where(rng.uniform(size=count) < 0.2, 0, 0.99).astype(np.float32),
        next_observation=next_observation,
    )


def transitions_for(agent: Agent, spec: Spec) -> Transition:
    """The same with the next logged action for an agent that reads it; one in five has none."""
    found = transitions(spec)
    if not agent.reads_next_action:
        return found
    more = np.roll(found.action, 1, axis=0), np.arange(len(found.reward)) % 5 > 0
    return found._replace(next_action=more[0], next_logged=more[1])


def rows(resident: Transition, item) -> Transition:
    """The minibatch of the rows named by one item."""
    return jax.tree.map(lambda column: column[item], resident)


def train(agent: Agent, steps: int, seed: int = 0, state=None, data: Transition | None = None):
    """Start at a seed, or go on from a state; a step's 16 of the 64 rows depend on its number alone.

    Steps are taken one at a time, so that all runs of an agent share one compiled program.
    """
    spec = spec_for(agent)
    learner, data = Learner(agent, spec), transitions_for(agent, spec) if data is None else data
    state, parts = learner.init((seed,)) if state is None else state, []
    for step in range(int(state.step), int(state.step) + steps):
        item = np.random.default_rng(step).integers(64, size=(1, 1, 16))
        state, losses = advance(learner, state, rows, data, item)
        parts.append(losses)
    return state, jax.tree.map(lambda *losses: np.concatenate(losses), *parts)


def copied(tree):
    """Numpy's own copy, which outlives the state that `advance` consumes."""
    return jax.tree.map(np.array, tree)


def same_bits(left, right) -> bool:
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def learns(agent: Agent) -> bool:
    """Does it descend on anything? The random agent does not: it has no parameters and no objectives."""
    return bool(agent.objectives(spec_for(agent)))


def softmax(logits: list[float]) -> list[float]:
    weights = [math.exp(logit) for logit in logits]
    return [weight / sum(weights) for weight in weights]
