"""Eight simulated logs with rewards of 10 to 3,000, and the exact value of every policy for them.

A score is 0 for random decisions and 1 for the best policy. `Contexts` are decisions without consequences,
`States` are Markov decision processes whose policies are evaluated by a system of linear equations.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, factorial
from typing import Any, NamedTuple

import numpy as np

STEPS = 20_000


class Rows(NamedTuple):
    """A log as arrays, one row a step."""

    observation: Any
    action: Any
    reward: Any
    terminal: Any
    truncated: Any
    next_observation: Any


@dataclass(frozen=True)
class Contexts:
    """`drawn(random, n)` are contexts (n, F), `expected(x)` the mean rewards of all actions (n, A), and
    `paid(random, x, action)` rewards. Episodes have up to `longest` decisions."""

    gamma: float
    explored: float  # share of random actions in the log
    longest: int
    drawn: Callable
    expected: Callable
    paid: Callable
    usual: Callable  # the other actions of the log

    @cached_property
    def observations(self) -> np.ndarray:
        return self.drawn(np.random.default_rng(1_000_000), 4_000)

    def log(self, seed: int) -> Rows:
        random = np.random.default_rng(seed)
        x = self.drawn(random, STEPS)
        explores, any_action = random.random(STEPS) < self.explored, self.expected(x).shape[1]
        action = np.where(explores, random.integers(any_action, size=STEPS), self.usual(x))
        ends = np.zeros(STEPS, bool)
        lengths = random.integers(1, self.longest + 1, STEPS)
        ends[np.minimum(np.cumsum(lengths), STEPS) - 1] = True
        reward = self.paid(random, x, action)
        return Rows(x, action, reward, ends, np.zeros(STEPS, bool), np.roll(x, -1, axis=0))

    def score(self, actions: np.ndarray) -> float:
        expected = self.expected(self.observations)
        worst, best = expected.mean(), expected.max(axis=1).mean()
        return (expected[np.arange(len(actions)), actions].mean() - worst) / (best - worst)


@dataclass(frozen=True)
class States:
    """`outcomes[state][action]` is a list of (probability, next state or -1 for the end, reward)."""

    gamma: float
    explored: float
    limit: int  # steps after which an episode is truncated
    observations: np.ndarray
    outcomes: list
    begins: np.ndarray  # probability of each first state
    usual: np.ndarray

    def log(self, seed: int) -> Rows:
        random, rows, age = np.random.default_rng(seed), [], 0
        actions, state = len(self.outcomes[0]), random.choice(len(self.begins), p=self.begins)
        for step in range(STEPS):
            explores = random.random() < self.explored
            action = random.integers(actions) if explores else self.usual[state]
            chances, following, rewards = zip(*self.outcomes[state][action], strict=True)
            k = min(np.searchsorted(np.cumsum(chances), random.random()), len(chances) - 1)
            age += 1
            over = following[k] < 0
            cut = not over and (age == self.limit or step == STEPS - 1)
            rows.append((state, action, rewards[k], over, cut, max(following[k], 0)))
            fresh = over or cut
            state = random.choice(len(self.begins), p=self.begins) if fresh else following[k]
            age = 0 if fresh else age
        state, action, reward, over, cut, following = (np.array(each) for each in zip(*rows, strict=True))
        seen = self.observations
        return Rows(seen[state], action, reward.astype(float), over, cut, seen[following])

    @cached_property
    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """The probabilities of the next states (S, A, S) and the mean rewards (S, A)."""
        states, actions = len(self.outcomes), len(self.outcomes[0])
        moves, means = np.zeros((states, actions, states)), np.zeros((states, actions))
        for place in np.ndindex(states, actions):
            for chance, following, reward in self.outcomes[place[0]][place[1]]:
                means[place] += chance * reward
                moves[place][following] += chance * (following >= 0)
        return moves, means

    @cached_property
    def best(self) -> np.ndarray:
        (moves, means), value = self.tables, np.zeros(len(self.outcomes))
        for _ in range(5_000):
            value = (means + self.gamma * moves @ value).max(axis=1)
        return (means + self.gamma * moves @ value).argmax(axis=1)

    def value(self, policy: np.ndarray) -> float:
        """The discounted return of a policy (S, A) from the first states."""
        moves, means = self.tables
        chain, paid = np.einsum("sa,sat->st", policy, moves), (policy * means).sum(axis=1)
        return float(self.begins @ np.linalg.solve(np.eye(len(paid)) - self.gamma * chain, paid))

    def score(self, actions: np.ndarray) -> float:
        each = np.eye(len(self.outcomes[0]))
        worst, best = self.value(np.full((len(self.outcomes), len(each)), 1 / len(each))), each[self.best]
        return (self.value(each[actions]) - worst) / (self.value(best) - worst)


def shop() -> Contexts:
    """Visitors buy with a chance of 5 to 25%, for about 300: sparse, skewed rewards of up to 3,000."""
    keeps, costs = np.array([1, 0.9, 0.8, 0.95, 1]), np.array([0, 0, 0, 0, 12.5])

    def drawn(random, n):
        age, income, basket = (
            random.integers(18, 80, n),
            random.normal(3e4, 8e3, n),
            random.exponential(80, n),
        )
        others = random.normal(12, 8, n), random.integers(0, 20, n), random.exponential(30, n)
        return np.stack([age, np.maximum(income, 0), basket, *others, random.random(n), random.random(n)], 1)

    def chance(x):
        action, age, income = np.arange(5)[None], x[:, :1], x[:, 1:2]
        liked, called = action == np.where(age < 45, 1, 3), (action == 4) & (income > 35_000)
        return 0.05 + 0.2 * liked + 0.1 * called

    def paid(random, x, action):
        buys = random.random(len(x)) < chance(x)[np.arange(len(x)), action]
        amount = np.minimum(3_000, random.exponential(x[:, 1] / 100)) * keeps[action]
        return np.where(buys, amount, 0) - costs[action]

    def expected(x):
        return chance(x) * x[:, 1:2] / 100 * keeps - costs

    return Contexts(0.99, 1.0, 40, drawn, expected, paid, lambda x: np.zeros(len(x), int))


def offers() -> Contexts:
    """One decision each: every reward is about 200 with a noise of 50, and actions differ by about 20."""
    weight = np.random.default_rng(5).normal(size=(6, 4))

    def expected(x):
        return 200 + 20 * np.tanh(x @ weight) + 30 * x[:, :1]

    def paid(random, x, action):
        return expected(x)[np.arange(len(x)), action] + random.normal(0, 50, len(x))

    def drawn(random, n):
        return random.normal(size=(n, 6))

    return Contexts(0.99, 0.4, 1, drawn, expected, paid, lambda x: (x[:, 0] > 0).astype(int))


def lottery() -> Contexts:
    """A sure 10, or 1,000 with a chance of 0.1 to 3% that the context tells: the most skewed rewards."""

    def chance(x):
        return 0.001 + 0.029 * x[:, 0]

    def expected(x):
        return np.stack([np.full(len(x), 10.0), 1_000 * chance(x)], 1)

    def paid(random, x, action):
        return np.where(action == 0, 10.0, 1_000.0 * (random.random(len(x)) < chance(x)))

    def drawn(random, n):
        return random.random((n, 3))

    return Contexts(0.9, 1.0, 1, drawn, expected, paid, lambda x: np.zeros(len(x), int))


def stock() -> States:
    """Orders of 0 to 15 for a store of 20 in four seasons of demand: costs of up to 480 at every step."""
    outcomes, seen = [], []
    for season, mean in enumerate((2, 4, 7, 10)):
        demand = np.array([exp(-mean) * mean**k / factorial(k) for k in range(25)])
        for level in range(21):
            row = []
            for order in (0, 5, 10, 15):
                has, found = min(level + order, 20), []
                for wanted, chance in enumerate(demand / demand.sum()):
                    left, missed = max(has - wanted, 0), max(wanted - has, 0)
                    cost = -2.0 * left - 20.0 * missed - 15.0 * (order > 0)
                    later = (season + 1) % 4
                    found += [
                        (0.9 * chance, 21 * season + left, cost),
                        (0.1 * chance, 21 * later + left, cost),
                    ]
                row.append(found)
            outcomes.append(row)
            seen.append([level, mean, *np.eye(4)[season]])
    usual = np.array([int(level < 5) for _ in range(4) for level in range(21)])
    return States(0.9, 0.3, 50, np.array(seen, float), outcomes, np.full(84, 1 / 84), usual)


def maze() -> States:
    """8 x 8 cells with two walls; a step costs 1, the goal pays 99: one large reward at the end."""
    walls = {(3, k) for k in range(6)} | {(5, k) for k in range(2, 8)}
    cells = [(i, j) for i in range(8) for j in range(8) if (i, j) not in walls]
    moves, outcomes = ((-1, 0), (1, 0), (0, -1), (0, 1)), []
    for i, j in cells:
        near = [(i + di, j + dj) if (i + di, j + dj) in cells else (i, j) for di, dj in moves]
        ends = [(-1, 99.0) if cell == (7, 7) else (cells.index(cell), -1.0) for cell in near]
        outcomes.append([[(0.85 if a == b else 0.05, *ends[b]) for b in range(4)] for a in range(4)])
    seen = np.array([[i, j, *np.eye(8)[i], *np.eye(8)[j]] for i, j in cells], float)
    begins = np.array([i < 3 for i, _ in cells], float)
    made = States(0.99, 0.5, 200, seen, outcomes, begins / begins.sum(), np.zeros(len(cells), int))
    return replace(made, usual=made.best)


def machine() -> States:
    """A machine earns 30 a step until it fails, which costs 1,000; service costs 40, a new one 200."""
    outcomes = []
    for worn in range(10):
        fails, worse = (0.002 * 1.8**worn if worn < 9 else 0.4), min(worn + 1, 9)
        runs = [(fails, 0, -1_000.0), ((1 - fails) / 2, worn, 30.0), ((1 - fails) / 2, worse, 30.0)]
        service = [(fails / 2, 0, -1_000.0), (1 - fails / 2, max(worn - 2, 0), -40.0)]
        outcomes.append([runs, service, [(1.0, 0, -200.0)]])
    seen = np.concatenate([np.arange(10)[:, None], np.eye(10)], axis=1)
    return States(0.99, 0.2, 100, seen, outcomes, np.eye(10)[0], np.array([0] * 7 + [2] * 3))


def triage() -> Contexts:
    """Patients are sent home, tested or admitted; a mistake costs 2,000 with a chance of 0.1 to 8%."""

    def harmed(x):
        return (0.001 + 0.08 * x[:, :1] * x[:, 1:2]) * np.array([1, 0.2, 0])

    costs = np.array([0.0, -30.0, -100.0])

    def expected(x):
        return costs - 2_000 * harmed(x)

    def paid(random, x, action):
        return costs[action] - 2_000.0 * (random.random(len(x)) < harmed(x)[np.arange(len(x)), action])

    def drawn(random, n):
        return random.random((n, 5))

    return Contexts(0.9, 0.5, 5, drawn, expected, paid, lambda x: np.ones(len(x), int))


def tickets() -> States:
    """One to five seats and ten days to sell them, one at most a day, for 20, 50, 100 or 200."""
    prices, chances = (20.0, 50.0, 100.0, 200.0), (0.9, 0.6, 0.35, 0.15)
    places = [(days, seats) for days in range(1, 11) for seats in range(1, 6)]
    outcomes = []
    for days, seats in places:
        stays, sells = (
            (places.index(at) if at in places else -1) for at in ((days - 1, seats), (days - 1, seats - 1))
        )
        both = zip(prices, chances, strict=True)
        outcomes.append([[(chance, sells, price), (1 - chance, stays, 0.0)] for price, chance in both])
    begins = np.array([float(days == 10) for days, _ in places])
    seen, usual = np.array(places, float), np.ones(len(places), int)
    return States(0.99, 0.3, 50, seen, outcomes, begins / begins.sum(), usual)


def orders() -> Contexts:
    """One customer in 200 is a trader, who orders 1 to 100,000 pieces; the others order up to 100. Small
    orders go by post, those of traders by rail, and from 70,000 on, 15 to 18 deviations, by ship."""

    def drawn(random, n):
        most = np.where(random.random(n) < 0.005, 100_000, 100)
        return np.stack([random.uniform(1, most), random.random(n), random.random(n)], 1)

    def expected(x):
        return 100.0 * (np.digitize(x[:, :1], (100, 70_000)) == np.arange(3))

    def paid(random, x, action):
        return expected(x)[np.arange(len(x)), action] + random.normal(0, 20, len(x))

    return Contexts(0.9, 1.0, 1, drawn, expected, paid, lambda x: np.zeros(len(x), int))


def accounts() -> Contexts:
    """Balances of log-normal size, in thousands: to invest one pays as much, less 1; to call pays twice as
    much, less 5, but only from 150 on, 17 to 19 deviations."""

    def drawn(random, n):
        return np.stack([np.exp(random.normal(0, 1.5, n)), random.random(n), random.normal(size=n)], 1)

    def expected(x):
        size = x[:, :1]
        return np.concatenate([0 * size, size - 1, np.where(size > 150, 2 * size, 0) - 5], 1)

    def paid(random, x, action):
        return expected(x)[np.arange(len(x)), action] + random.normal(0, 1, len(x))

    return Contexts(0.9, 1.0, 1, drawn, expected, paid, lambda x: np.zeros(len(x), int))


LOGS = {each.__name__: each() for each in (shop, offers, lottery, stock, maze, machine)}
AFTERWARDS = {each.__name__: each() for each in (triage, tickets)}  # written when the rule was settled
WIDE = {each.__name__: each() for each in (orders, accounts)}  # what is right changes far from the mean
