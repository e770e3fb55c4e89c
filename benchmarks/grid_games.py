"""Stand-ins for the 60 Atari games in `benchmarks.grid`: chains of six states that one process plays in
microseconds."""

import numpy as np

from optimist.data import Spec
from optimist.envs import Environment, Lanes

SPEC = Spec((6,), "float32", actions=2)
LONGEST = 20  # steps of an episode


class Chain:
    """Action 1 leads to the right end and its reward, action 0 to the left; one step in ten slips."""

    def __init__(self, seed: int):
        self._random, self._state, self._age = np.random.default_rng(seed), 0, 0

    def reset(self) -> np.ndarray:
        self._state = self._age = 0
        return np.eye(6, dtype=np.float32)[0]

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        right = bool(action) != (self._random.random() < 0.1)
        self._state, self._age = int(np.clip(self._state + (1 if right else -1), 0, 5)), self._age + 1
        over = self._state == 5
        return np.eye(6, dtype=np.float32)[self._state], float(over), over, self._age >= LONGEST and not over

    def render(self) -> np.ndarray:
        return np.zeros((8, 8, 3), np.uint8)

    def close(self) -> None: ...


class Chains:
    """A family with any number of games, all of them the same chain."""

    @staticmethod
    def make(game: str, *, seeds: list[int]) -> Environment:
        return Lanes(f"benchmarks.grid_games:Chains/{game}", SPEC, [Chain(seed) for seed in seeds], {})

    @staticmethod
    def games() -> list[str]:
        return []
