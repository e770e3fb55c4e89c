"""Three small problems whose policies have exactly known values: a shop's, a clinic's and a plant's.

Each is a Markov decision process of a few dozen states. An observation has numbers that describe the state,
so that a log looks as any other; the value of a policy is the solution of linear equations.

    simulator = shop()
    data = simulator.log(episodes=2_000, seed=0)      # of the behaviour policy
    simulator.value(simulator.behaviour)              # what it is worth: exact, discounted
    simulator.value(simulator.played(run.policy))     # what a trained policy is worth
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from optimist.data import Dataset


@dataclass(frozen=True)
class Simulator:
    """S states, A actions, and E ends of an episode, which come after the states."""

    name: str
    observations: np.ndarray  # (S, d)
    moves: np.ndarray  # probabilities of what follows, (S, A, S + E)
    rewards: np.ndarray  # (S, A, S + E)
    noise: float  # standard deviation of a reward around that
    allowed: np.ndarray  # (S, A)
    behaviour: np.ndarray  # probabilities of the actions in the log, (S, A)
    start: np.ndarray  # (S,)
    gamma: float = 0.99
    limit: int | None = None  # steps after which an episode is cut off

    def value(self, policy: np.ndarray) -> float:
        """The mean discounted return of a policy, (S, A), without any limit of time."""
        count = len(self.start)
        moves = np.einsum("sa,sat->st", policy, self.moves)[:, :count]
        rewards = np.einsum("sa,sat,sat->s", policy, self.moves, self.rewards)
        return float(self.start @ np.linalg.solve(np.eye(count) - self.gamma * moves, rewards))

    def best(self) -> np.ndarray:
        """The best policy, by value iteration."""
        count, values = len(self.start), np.zeros(self.moves.shape[2])
        for _ in range(2000):
            after = np.einsum("sat,sat->sa", self.moves, self.rewards + self.gamma * values)
            after = np.where(self.allowed, after, -np.inf)
            values[:count] = after.max(axis=1)
        return np.eye(self.moves.shape[1])[after.argmax(axis=1)]

    def played(self, policy: Callable) -> np.ndarray:
        """What a trained policy does in every state, (S, A)."""
        masks = {} if self.allowed.all() else {"allowed": self.allowed}
        return np.eye(self.moves.shape[1])[np.asarray(policy(self.observations, **masks))]

    def exploring(self, share: float, usual: np.ndarray | None = None) -> "Simulator":
        """The same problem with a log of one action a state, (S,), by default what was usual, and this share
        of random ones."""
        usual = self.behaviour.argmax(axis=1) if usual is None else usual
        uniform = self.allowed / self.allowed.sum(axis=1, keepdims=True)
        return replace(self, behaviour=(1 - share) * np.eye(uniform.shape[1])[usual] + share * uniform)

    def log(self, episodes: int, seed: int, *, propensities: bool = True) -> Dataset:
        """Episodes of the behaviour, with its masks and, if it is wanted, its probabilities."""
        random, count = np.random.default_rng(seed), len(self.start)
        state = random.choice(count, episodes, p=self.start)
        numbers, rows, t = np.arange(episodes), [], 0
        while len(numbers):
            action = _drawn(random, self.behaviour[state])
            after = _drawn(random, self.moves[state, action])
            reward = self.rewards[state, action, after] + self.noise * random.normal(size=len(state))
            over, cut = after >= count, np.full(len(state), t + 1 == self.limit)
            rows.append(np.stack([numbers, np.full(len(state), t), state, action, after, over, cut & ~over]))
            rows[-1] = np.concatenate([rows[-1].astype(float), reward[None]])
            state, numbers, t = after[~over & ~cut], numbers[~over & ~cut], t + 1
        table = np.concatenate(rows, axis=1)
        table = table[:, np.lexsort(table[1::-1])]
        state, action, after = table[2:5].astype(int)
        successors = np.concatenate(
            [self.observations, np.zeros((self.moves.shape[2] - count, 1)) + self.observations[:1]]
        )
        return Dataset.from_arrays(
            self.observations[state],
            action,
            table[7],
            table[5] > 0,
            truncations=table[6] > 0,
            next_observations=successors[after],
            actions_count=self.moves.shape[1],
            probabilities=self.behaviour[state, action] if propensities else None,
            **({} if self.allowed.all() else {"allowed_actions": self.allowed[state]}),
        )


def _drawn(random: np.random.Generator, probabilities: np.ndarray) -> np.ndarray:
    """One index for each row of probabilities."""
    return (probabilities.cumsum(axis=1) < random.random(len(probabilities))[:, None]).sum(axis=1)


def _softmax(logits: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    weights = np.where(allowed, np.exp(logits), 0)
    return weights / weights.sum(axis=1, keepdims=True)


def shop() -> Simulator:
    """Customers of three segments get one of five coupons at each visit; the reward is the profit. A coupon
    sells more and costs its discount; customers who get many are tired of them, and some never come back."""
    states = list(product(range(3), range(4), range(4)))  # segment, tiredness, basket
    price, pull = np.array([0.0, 3.0, 4.0, 12.0, 9.0]), np.array([0.0, 0.5, 0.4, 1.5, 0.9])
    tires = np.array([0.0, 0.3, 0.3, 0.8, 0.6])
    count, actions = len(states), len(price)
    moves, rewards = np.zeros((count, actions, count + 1)), np.zeros((count, actions, count + 1))
    allowed = np.ones((count, actions), bool)
    for place, (segment, tired, basket) in enumerate(states):
        allowed[place, 3] = tired < 3 and basket > 0
        for action in range(actions):
            buys = 1 / (
                1 + np.exp(2.2 - 0.3 * basket - (0.5, 1.0, 1.6)[segment] * pull[action] + 0.25 * tired)
            )
            leaves = 0.12 + 0.03 * tired
            gain = buys * ((14, 20, 26)[segment] + 5 * basket - price[action])
            for step, chance in (
                (1, tires[action]),
                (-1, 0.4 * (action == 0)),
                (0, 1 - tires[action] - 0.4 * (action == 0)),
            ):
                after = min(3, max(0, tired + step))
                for full, share in ((min(3, basket + 1), 0.35), (max(0, basket - 1), 0.25), (basket, 0.4)):
                    moves[place, action, states.index((segment, after, full))] += (
                        (1 - leaves) * chance * share
                    )
            moves[place, action, count] += leaves
            rewards[place, action] = gain
    liking = np.array(
        [[1.2, 0.6, 0.4, 0.2 + 0.3 * basket, 0.6 + 0.4 * (segment == 0)] for segment, _, basket in states]
    )
    start = np.array(
        [
            (0.5, 0.3, 0.2)[segment] * (tired == 0) * (0.4, 0.3, 0.2, 0.1)[basket]
            for segment, tired, basket in states
        ]
    )
    return Simulator(
        "shop", np.array(states, float), moves, rewards, 15.0, allowed, _softmax(liking, allowed), start
    )


def clinic() -> Simulator:
    """Patients of six grades of illness get one of nine doses, 3 fluids x 3 drugs, until they leave with +15
    or die with -15. The right dose depends on the grade and on a second illness; the behaviour is near it."""
    states = list(
        product(range(6), range(2), range(3))
    )  # grade, second illness, the drug that was given last
    count, actions = len(states), 9
    moves, rewards = np.zeros((count, actions, count + 2)), np.zeros((count, actions, count + 2))
    away = np.zeros((count, actions))  # of the dose from the right one
    used = np.zeros((count, actions))  # of the dose from the usual one
    for place, (grade, second, last) in enumerate(states):
        fluid, drug = (2 if grade > 1 and not second else 1 if grade > 0 else 0), min(2, grade // 2 + second)
        for action in range(actions):
            far = abs(action // 3 - fluid) + abs(action % 3 - drug)
            away[place, action] = far
            used[place, action] = abs(action // 3 - min(2, grade // 2)) + abs(
                action % 3 - min(2, (grade + 1) // 2)
            )
            better = max(0.04, 0.54 - 0.11 * far - 0.03 * grade)
            worse = min(0.6, 0.09 + 0.08 * far + 0.03 * grade + 0.05 * (abs(action % 3 - last) > 1))
            for after, chance in ((grade - 1, better), (grade + 1, worse), (grade, 1 - better - worse)):
                end = count if after < 0 else count + 1
                to = end if after in (-1, 6) else states.index((after, second, action % 3))
                moves[place, action, to] += chance
    rewards[:, :, count], rewards[:, :, count + 1] = 15.0, -15.0
    allowed = np.ones((count, actions), bool)
    start = np.array(
        [
            (0, 0, 0.3, 0.4, 0.2, 0.1)[grade] * (0.6, 0.4)[second] * (last == 0)
            for grade, second, last in states
        ]
    )
    return Simulator(
        "clinic", np.array(states, float), moves, rewards, 0.0, allowed, _softmax(-1.3 * used, allowed), start
    )


def plant() -> Simulator:
    """A machine is run slowly, normally or fast, or is maintained; every hour has its costs, and none ends
    the work: the episodes are shifts of 40 hours. The behaviour maintains too late."""
    states = list(product(range(8), range(3)))  # wear, demand
    count, actions = len(states), 4
    moves, rewards = np.zeros((count, actions, count)), np.zeros((count, actions, count))
    for place, (wear, demand) in enumerate(states):
        for action in range(actions):  # 0 maintains, 1 to 3 are speeds
            missed = max(0, demand + 1 - action)
            cost = 2.0 * missed + (6.0 if action == 0 else 0.3 * action * action)
            breaks = 0.0 if action == 0 else min(0.9, 0.004 * wear * wear * action)
            worn = min(7, wear + 1)
            outcomes = (
                [(0, 1.0, 0.0)]
                if action == 0
                else [
                    (0, breaks, 30.0),
                    (worn, (1 - breaks) * 0.25 * action, 0.0),
                    (wear, (1 - breaks) * (1 - 0.25 * action), 0.0),
                ]
            )
            for (after, chance, more), (level, share) in product(
                outcomes, zip(range(3), (0.3, 0.4, 0.3), strict=True)
            ):
                to = states.index((after, level))
                rewards[place, action, to] -= (cost + more) * chance * share
                moves[place, action, to] += chance * share
    rewards = rewards / np.maximum(moves, 1e-12)
    late = np.array(
        [
            [
                2.0 * (wear - 5.5),
                -abs(demand - 0) * 1.0,
                0.3 - abs(demand - 1) * 0.8,
                0.6 - abs(demand - 2) * 0.9,
            ]
            for wear, demand in states
        ]
    )
    allowed, start = np.ones((count, actions), bool), np.array([(wear < 3) / 9 for wear, _ in states])
    return Simulator(
        "plant",
        np.array(states, float),
        moves,
        rewards,
        1.0,
        allowed,
        _softmax(1.5 * late, allowed),
        start,
        0.97,
        40,
    )


SIMULATORS = {"shop": shop, "clinic": clinic, "plant": plant}
