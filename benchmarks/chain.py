"""Four states in a row with a known best policy, and random logs of them: a test of scales.

The action AHEAD moves to the next state, beyond the last of which the episode ends with a reward of 1; the
action BACK moves to the state before. One step in ten does the other action. Policies are scored exactly:
0 is random play, 1 the best policy.
"""

import numpy as np

from optimist import Dataset

STATES, SLIP, GAMMA, TIME_LIMIT = 4, 0.1, 0.99, 60
BACK, AHEAD = ACTIONS = (0, 1)


def moved(state: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    """The next state; STATES is the end."""
    return np.where(ahead, state + 1, np.maximum(state - 1, 0))


def value(ahead: np.ndarray) -> float:
    """The exact discounted return from state 0; `ahead` are the probabilities of moving ahead, (4,)."""
    share = ahead * (1 - SLIP) + (1 - ahead) * SLIP
    here = np.arange(STATES)
    goes = np.zeros((STATES, STATES + 1))
    goes[here, moved(here, np.ones(STATES, bool))] += share
    goes[here, moved(here, np.zeros(STATES, bool))] += 1 - share
    values = np.linalg.solve(np.eye(STATES) - GAMMA * goes[:, :STATES], goes[:, STATES])
    return float(values[0])


def score(actions: np.ndarray) -> float:
    """0: as good as random play; 1: the best policy. `actions` has one action for each state."""
    random, best = value(np.full(STATES, 0.5)), value(np.ones(STATES))
    return (value(np.asarray(actions, float)) - random) / (best - random)


def observations() -> np.ndarray:
    """What an agent sees in each state, (4, 4)."""
    return np.eye(STATES, dtype=np.float32)


def log(steps: int = 5_000, seed: int = 0, *, ahead: float = 0.5) -> dict[str, np.ndarray]:
    """The arrays of a log whose actions are AHEAD with this probability, for `Dataset.from_arrays`."""
    random = np.random.default_rng(seed)
    action = (random.random(steps) < ahead).astype(int)
    slips = random.random(steps) < SLIP
    state, following = np.zeros((2, steps), int)
    truncated = np.zeros(steps, bool)
    at, age = 0, 0
    for step in range(steps):
        state[step], age = at, age + 1
        following[step] = at = int(moved(at, action[step] != slips[step]))
        truncated[step] = at < STATES and age == TIME_LIMIT
        if at == STATES or truncated[step]:
            at, age = 0, 0
    terminal = following == STATES
    return {
        "observations": observations()[state],
        "actions": action,
        "rewards": terminal * 1.0,
        "terminals": terminal,
        "truncations": truncated,
        "next_observations": observations()[following % STATES],
    }


def cost(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same log with a cost of 1 for each step but the last."""
    return {**arrays, "rewards": arrays["rewards"] - 1}


def scaled(arrays: dict[str, np.ndarray], factor: float) -> dict[str, np.ndarray]:
    return {**arrays, "rewards": factor * arrays["rewards"]}


def one_reward(arrays: dict[str, np.ndarray], size: float = 1e6, row: int = 1234) -> dict[str, np.ndarray]:
    """The same log with one absurd reward."""
    return {**arrays, "rewards": np.where(np.arange(len(arrays["rewards"])) == row, size, arrays["rewards"])}


def one_feature(arrays: dict[str, np.ndarray], size: float = 1e6, row: int = 1234) -> dict[str, np.ndarray]:
    """The same log with one absurd number in the first feature; it is also the next observation before."""
    seen, following = arrays["observations"].copy(), arrays["next_observations"].copy()
    seen[row, 0] = following[row - 1, 0] = size
    return {**arrays, "observations": seen, "next_observations": following}


PLAIN = log()
CASES = {
    **{f"x{factor:g}": scaled(PLAIN, factor) for factor in (1, 0.1, 0.01, 1e-4, 1e5)},
    "-1/0": cost(PLAIN),
    "one reward of 1e6": one_reward(PLAIN),
    "one feature of 1e6": one_feature(PLAIN),
}


def dataset(case: str = "x1") -> Dataset:
    return Dataset.from_arrays(**CASES[case])
