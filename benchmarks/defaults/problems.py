"""Small problems with a known best policy, played many episodes at once, and logs of them.

Each problem has the log of a learner, and logs of its best policy with half and with a tenth of the actions
at random. The logs are somebody else's: arrays without an environment, as a user brings them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

GAMMA = 0.99
LANES = 8
KINDS = ("learner", "half random", "tenth random")
Act = Callable[[np.ndarray, np.random.Generator], np.ndarray]  # observations (n, f) -> actions (n,)


class Problem:
    """A simulator of n episodes at once; a state is a row."""

    name: str
    actions: int
    limit: int  # steps, after which an episode is cut

    def reset(self, count: int, rng: np.random.Generator) -> np.ndarray:
        raise NotImplementedError

    def step(self, states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> tuple:
        """The next states, the rewards and which episodes end."""
        raise NotImplementedError

    def observe(self, states: np.ndarray) -> np.ndarray:
        return states.astype(np.float32)

    def best(self, observations: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The actions of the best policy that is known."""
        raise NotImplementedError


class CartPole(Problem):
    """Gymnasium's CartPole-v1."""

    name, actions, limit = "CartPole", 2, 500

    def reset(self, count, rng):
        return rng.uniform(-0.05, 0.05, (count, 4))

    def step(self, states, actions, rng):
        x, speed, angle, turning = states.T
        force = np.where(actions == 1, 10.0, -10.0)
        temporary = (force + 0.05 * turning**2 * np.sin(angle)) / 1.1
        turned = (9.8 * np.sin(angle) - np.cos(angle) * temporary) / (
            0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1)
        )
        moved = temporary - 0.05 * turned * np.cos(angle) / 1.1
        states = states + 0.02 * np.stack([speed, moved, turning, turned], axis=1)
        falls = (np.abs(states[:, 0]) > 2.4) | (np.abs(states[:, 2]) > 12 * 2 * np.pi / 360)
        return states, np.ones(len(states)), falls

    def best(self, observations, rng):
        position, speed, angle, turning = observations.T
        return (angle + 0.5 * turning + 0.05 * position + 0.1 * speed > 0).astype(np.int64)


class Acrobot(Problem):
    """Gymnasium's Acrobot-v1."""

    name, actions, limit = "Acrobot", 3, 500

    def reset(self, count, rng):
        return rng.uniform(-0.1, 0.1, (count, 4))

    def step(self, states, actions, rng):
        torque, half = actions - 1.0, 0.1
        first = _acrobot(states, torque)
        second = _acrobot(states + half * first, torque)
        third = _acrobot(states + half * second, torque)
        fourth = _acrobot(states + 2 * half * third, torque)
        states = states + 0.2 / 6 * (first + 2 * second + 2 * third + fourth)
        angles = (states[:, :2] + np.pi) % (2 * np.pi) - np.pi
        speeds = np.clip(states[:, 2:], [-4 * np.pi, -9 * np.pi], [4 * np.pi, 9 * np.pi])
        up = -np.cos(angles[:, 0]) - np.cos(angles.sum(axis=1)) > 1
        return np.concatenate([angles, speeds], axis=1), np.where(up, 0.0, -1.0), up

    def observe(self, states):
        one, two, speed, turning = states.T
        return np.stack([np.cos(one), np.sin(one), np.cos(two), np.sin(two), speed, turning], 1).astype(
            np.float32
        )

    def best(self, observations, rng):
        """Push the lower link the way that pumps energy into the upper one."""
        return np.where(observations[:, 4] > 0, 0, 2)


def _acrobot(states: np.ndarray, torque: np.ndarray) -> np.ndarray:
    """The derivative of the state (Sutton and Barto 2018, section 11.3)."""
    one, two, speed, turning = states.T
    d1 = 0.25 + (1 + 0.25 + np.cos(two)) + 2
    d2 = 0.25 + 0.5 * np.cos(two) + 1
    phi2 = 0.5 * 9.8 * np.cos(one + two - np.pi / 2)
    phi1 = -0.5 * turning**2 * np.sin(two) - turning * speed * np.sin(two)
    phi1 = phi1 + 1.5 * 9.8 * np.cos(one - np.pi / 2) + phi2
    turned = (torque + d2 / d1 * phi1 - 0.5 * speed**2 * np.sin(two) - phi2) / (0.25 + 1 - d2**2 / d1)
    return np.stack([speed, turning, -(d2 * turned + phi1) / d1, turned], axis=1)


@dataclass
class Tabular(Problem):
    """A finite MDP; an observation is the state as a vector of zeros and a one."""

    name: str
    chances: np.ndarray  # (states, actions, states); the last state is the end
    rewards: np.ndarray  # (states, actions, states)
    limit: int
    actions: int = field(init=False)

    def __post_init__(self):
        self.actions = self.chances.shape[1]
        self.sums = self.chances.cumsum(axis=2)
        self.expected = (self.chances * self.rewards).sum(axis=2)
        values = np.zeros(len(self.chances))
        for _ in range(10_000):
            values = self.looked_ahead(values).max(axis=1)
        self.best_actions = self.looked_ahead(values).argmax(axis=1)

    def looked_ahead(self, values: np.ndarray) -> np.ndarray:
        """The value of each action, (states, actions), if these are the values of the states after it."""
        return self.expected + GAMMA * self.chances @ values

    def reset(self, count, rng):
        return np.zeros((count, 1), np.int64)

    def step(self, states, actions, rng):
        before = states[:, 0]
        drawn = rng.random((len(states), 1))
        after = np.minimum((drawn > self.sums[before, actions]).sum(axis=1), len(self.chances) - 1)
        return after[:, None], self.rewards[before, actions, after], after == len(self.chances) - 1

    def observe(self, states):
        return np.eye(len(self.chances) - 1, dtype=np.float32)[
            np.minimum(states[:, 0], len(self.chances) - 2)
        ]

    def best(self, observations, rng):
        return self.best_actions[observations.argmax(axis=1)]


def frozen_lake() -> Tabular:
    """Gymnasium's FrozenLake-v1 with ice: a move goes where it should in a third of the cases."""
    cells = "SFFFFHFHFFFHHFFG"
    end = len(cells)
    chances, rewards = np.zeros((end + 1, 4, end + 1)), np.zeros((end + 1, 4, end + 1))
    chances[end, :, end] = 1
    moves = ((0, -1), (1, 0), (0, 1), (-1, 0))
    for cell in range(end):
        for action in range(4):
            for way in (action - 1, action, action + 1):
                row, column = (np.array(divmod(cell, 4)) + moves[way % 4]).clip(0, 3)
                after = 4 * row + column
                ends = cells[after] in "HG"
                chances[cell, action, end if ends else after] += 1 / 3
                rewards[cell, action, end if ends else after] += (cells[after] == "G") / 3
    rewards = np.divide(rewards, chances, out=np.zeros_like(rewards), where=chances > 0)
    return Tabular("FrozenLake", chances, rewards, limit=100)


def chain() -> Tabular:
    """Four states in a row, 10% slip: going right from the last one pays 1 and ends, left pays 0.2 and ends
    at once from the first."""
    chances, rewards = np.zeros((5, 2, 5)), np.zeros((5, 2, 5))
    chances[4, :, 4] = 1
    for state in range(4):
        for action in range(2):
            for way, chance in ((action, 0.9), (1 - action, 0.1)):
                after = state + 1 if way else state - 1
                after, paid = (4, 1.0) if after == 4 else (4, 0.2) if after < 0 else (after, 0.0)
                chances[state, action, after] += chance
                rewards[state, action, after] = paid
    return Tabular("chain", chances, rewards, limit=50)


class Bandit(Problem):
    """One step: the reward of an action is a noisy linear function of five features."""

    name, actions, limit = "bandit", 4, 1

    def __init__(self):
        self.weights = np.random.default_rng(0).normal(size=(5, self.actions))

    def reset(self, count, rng):
        return rng.normal(size=(count, 5))

    def step(self, states, actions, rng):
        means = (states @ self.weights)[np.arange(len(states)), actions]
        return states, means + rng.normal(size=len(states)), np.ones(len(states), bool)

    def best(self, observations, rng):
        return (observations @ self.weights).argmax(axis=1)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "CartPole": CartPole,
    "Acrobot": Acrobot,
    "FrozenLake": frozen_lake,
    "chain": chain,
    "bandit": Bandit,
}
STEPS = {"CartPole": 20_000, "Acrobot": 30_000, "FrozenLake": 20_000, "chain": 5_000, "bandit": 4_000}


def at_random(problem: Problem, act: Act, share: float) -> Act:
    """The policy with this share of its actions at random."""

    def mixed(observations, rng):
        drawn = rng.integers(problem.actions, size=len(observations))
        return np.where(rng.random(len(observations)) < share, drawn, act(observations, rng))

    return mixed


def returns(problem: Problem, act: Act, episodes: int, seed: int) -> np.ndarray:
    """The return of each episode, undiscounted."""
    rng = np.random.default_rng(seed)
    states, totals, plays = problem.reset(episodes, rng), np.zeros(episodes), np.ones(episodes, bool)
    for _ in range(problem.limit):
        states, rewards, ends = problem.step(states, act(problem.observe(states), rng), rng)
        totals += rewards * plays
        plays &= ~ends
        if not plays.any():
            break
    return totals


def played(
    problem: Problem, act: Act, steps: int, seed: int, learn: Callable[..., None] = lambda *row: None
) -> dict[str, Any]:
    """A log of this policy as arrays, lane after lane; `learn` sees every step as it is taken."""
    rng = np.random.default_rng(seed)
    states, ages, rows = problem.reset(LANES, rng), np.zeros(LANES, int), []
    for _ in range(steps // LANES):
        observations = problem.observe(states)
        actions = act(observations, rng)
        states, rewards, ends = problem.step(states, actions, rng)
        ages += 1
        cut = (ages >= problem.limit) & ~ends
        rows.append((observations, actions, rewards, ends, cut, problem.observe(states)))
        for row in zip(observations, actions, rewards, ends, rows[-1][-1], strict=True):
            learn(*row)
        over = ends | cut
        states = np.where(over[:, None], problem.reset(LANES, rng), states)
        ages[over] = 0
    observations, actions, rewards, ends, cut, after = (
        np.stack(each, axis=1).reshape(LANES * len(rows), *np.shape(each[0])[1:])
        for each in zip(*rows, strict=True)
    )
    cut[len(rows) - 1 :: len(rows)] |= ~ends[len(rows) - 1 :: len(rows)]  # the last row of a lane
    return {
        "observations": observations,
        "actions": actions.astype(np.int32),
        "rewards": rewards,
        "terminals": ends,
        "truncations": cut,
        "next_observations": after,
        "actions_count": problem.actions,
    }


def learned(problem: Problem, steps: int, seed: int) -> dict[str, Any]:
    """The log of a learner of a small problem: Q-learning of a table, or ridge regression, with exploration
    that falls from 1 to a twentieth over half of the steps."""
    features = problem.observe(problem.reset(1, np.random.default_rng(0))).shape[1]
    covariance = np.broadcast_to(np.eye(features), (problem.actions, features, features)).copy()
    sums, values, left = np.zeros((problem.actions, features)), np.zeros((problem.actions, features)), steps

    def act(observations, rng):
        nonlocal left
        left -= len(observations)
        share = max(0.05, 1 - 2 * (steps - left) / steps)
        greedy = (observations @ values.T + 1e-6 * rng.random((len(observations), problem.actions))).argmax(1)
        drawn = rng.integers(problem.actions, size=len(observations))
        return np.where(rng.random(len(observations)) < share, drawn, greedy)

    def learn(observation, action, reward, ends, after):
        target = reward + (0 if ends else GAMMA * (values @ after).max())
        if isinstance(problem, Tabular):
            values[action] += 0.1 * (target - values[action] @ observation) * observation
            return
        covariance[action] += np.outer(observation, observation)
        sums[action] += reward * observation
        values[action] = np.linalg.solve(covariance[action], sums[action])

    return played(problem, act, steps, seed, learn)
