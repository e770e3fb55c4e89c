"""A game that fails as the variable FAIL says. Tests name it by this file's path."""

import os
import sys

import numpy as np

from optimist.data import Spec
from optimist.envs import Lanes

SPEC = Spec((3,), "float32", actions=2)


def raises() -> None:
    raise ZeroDivisionError("the walk\nis broken")


FAILURES = {"raise": raises, "exit": lambda: sys.exit(3)}


class Walk:
    """A random walk to the left or to the right; an action is rewarded if it is the walk's direction."""

    def __init__(self, seed: int):
        self._random = np.random.default_rng(seed)

    def reset(self) -> np.ndarray:
        self._at, self._left = 0.0, int(self._random.integers(3, 30))
        return self._seen()

    def _seen(self) -> np.ndarray:
        return np.array([self._at, self._left / 30, np.sin(self._at)], np.float32)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        if how := os.environ.get("FAIL", ""):
            FAILURES[how]()
        move = self._random.normal() + 0.3
        self._at, self._left = self._at + move / 10, self._left - 1
        return self._seen(), float((move > 0) == action), self._left == 0, False

    def render(self) -> np.ndarray:
        return np.zeros((2, 2, 3), np.uint8)

    def close(self) -> None:
        """Nothing is open."""


class Game:
    @staticmethod
    def make(game: str, *, seeds: list[int]) -> Lanes:
        return Lanes(f"{__file__}:Game/{game}", SPEC, [Walk(seed) for seed in seeds], {})
