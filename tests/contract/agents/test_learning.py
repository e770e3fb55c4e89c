"""Agents find the values, the frequencies or the policy of a chain small enough to solve by hand."""

import dataclasses

import jax
import numpy as np
import pytest

from optimist.agents._table_agent import TableAgent
from optimist.data.transition import Transition
from small_agents import (
    CONSERVATIVE,
    LEARNERS,
    VECTORS,
    default,
    softmax,
    train,
)

# Every agent that learns values finds the optimal ones of a chain small enough to solve by hand.


LEFT, RIGHT, STAY, GAMMA = 0, 1, 2, 0.9
PLACES = np.eye(4, 6, dtype=np.float32)  # four states as one-hot vectors, of six numbers as VECTORS has it


def chain_step(state: int, action: int) -> tuple[int, float, bool]:
    """Four states in a row; walking right out of the last pays one and ends the episode."""
    if action == RIGHT:
        return min(state + 1, 3), float(state == 3), state == 3
    return max(state - 1, 0) if action == LEFT else state, 0.0, False


def value(steps_to_the_end: int) -> float:
    return GAMMA**steps_to_the_end


# LEFT, RIGHT and STAY in each state: walking right leaves the last state with a reward of one.
OPTIMAL = [[value(4 - max(state - 1, 0)), value(3 - state), value(4 - state)] for state in range(4)]


def chain() -> Transition:
    """Every state and action in turn, again and again, through 64 rows."""
    steps = []
    for row in range(64):
        state, action = row // 3 % 4, row % 3
        arrival, reward, ended = chain_step(state, action)
        steps.append((PLACES[state], action, reward, 0.0 if ended else GAMMA, PLACES[arrival]))
    observation, action, reward, discount, next_observation = map(np.array, zip(*steps, strict=True))
    return Transition(
        observation, np.int32(action), np.float32(reward), np.float32(discount), next_observation
    )


def values_at_every_place(agent: TableAgent, state) -> np.ndarray:
    """Of the only seed, (4, A)."""
    params = jax.tree.map(lambda leaf: leaf[0], state.params["q"])
    return np.array([agent.values(agent.table(VECTORS)(params, place)) for place in PLACES])


def assert_reaches_the_values_of_the_chain(agent: TableAgent, within: float = 0.02, steps: int = 4000):
    state, data = None, chain()
    for _ in range(steps // 250):
        state, _ = train(agent, steps=250, state=state, data=data)
        values = values_at_every_place(agent, state)
        if np.abs(values - OPTIMAL).max() < within / 2:
            break
    np.testing.assert_allclose(values, OPTIMAL, rtol=0, atol=within)


# One agent of each kind of table: one value, heads, quantiles, atoms, separate networks.

KINDS_OF_TABLES = {"dqn-adam", "rem-paper", "qr_dqn-paper", "c51-paper", "rem-networks-4"}


@pytest.mark.parametrize(
    "agent",
    [
        pytest.param(agent, id=label, marks=() if label in KINDS_OF_TABLES else pytest.mark.slow)
        for label, agent in LEARNERS.items()
    ],
)
def test_every_agent_that_learns_values_finds_those_of_the_chain(agent):
    assert_reaches_the_values_of_the_chain(agent)


def test_behaviour_cloning_finds_how_often_each_action_was_logged():
    """The likelihood is greatest where the softmax over actions is their frequencies: here 1 to 8 in 16."""
    agent, counts = default("behaviour_cloning"), [[4, 4, 8], [8, 7, 1], [3, 8, 5], [6, 6, 4]]
    logged = [action for row in counts for action, count in enumerate(row) for _ in range(count)]
    data = chain()._replace(observation=PLACES.repeat(16, axis=0), action=np.int32(logged))
    state, _ = train(agent, steps=1000, data=data)
    for values, row in zip(values_at_every_place(agent, state).tolist(), counts, strict=True):
        np.testing.assert_allclose(softmax(values), np.array(row) / 16, rtol=0, atol=0.05)


# Conservative agents find the best policy where the log shows every action, and stay with the log elsewhere.


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("cql", "discrete_bcq", "discrete_iql") else pytest.mark.slow)
        for name in sorted(CONSERVATIVE)
    ],
)
def test_a_conservative_agent_finds_the_best_policy_of_the_chain(name):
    agent = dataclasses.replace(default(name), **({"conservatism": 0.02} if "cql" in name else {}))
    state, _ = train(agent, steps=500, data=chain())
    assert values_at_every_place(agent, state).argmax(axis=1).tolist() == [RIGHT] * 4


def narrow_log() -> Transition:
    """The chain where the log shows LEFT and STAY alone, and other actions are never tried."""
    data = chain()
    logged = np.where(data.action == RIGHT, STAY, data.action).astype(np.int32)
    arrivals = [
        chain_step(int(np.argmax(place)), int(a)) for place, a in zip(data.observation, logged, strict=True)
    ]
    return data._replace(
        action=logged,
        reward=np.float32([1.0 if a == STAY else 0.0 for a in logged]),
        discount=np.float32([GAMMA] * len(logged)),
        next_observation=np.stack([PLACES[arrival] for arrival, _, _ in arrivals]),
    )


@pytest.mark.parametrize("name", sorted(CONSERVATIVE - {"rem_dr3"}))
def test_a_conservative_agent_does_not_choose_what_the_log_never_shows(name):
    """Staying pays one for ever; whatever RIGHT is thought to be worth, nobody has tried it."""
    agent = default(name)
    state, _ = train(agent, steps=500, data=narrow_log())
    assert values_at_every_place(agent, state).argmax(axis=1).tolist() == [STAY] * 4
