"""A game that pauses while a file exists, so that a test decides when an evaluation ends.

The file's path is in the variable GATE; a process that waits there writes its id into `playing` beside it.
Tests name the game by this file's path, so that other processes find it.
"""

import os
import time
from pathlib import Path

import numpy as np

from optimist.agents.dqn import Dqn
from optimist.data import Spec
from optimist.envs import Lanes

SPEC = Spec((3,), "float32", actions=2)


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
        _wait_at_the_gate()
        move = self._random.normal() + 0.3
        self._at, self._left = self._at + move / 10, self._left - 1
        return self._seen(), float((move > 0) == action), self._left == 0, False

    def render(self) -> np.ndarray:
        return np.zeros((2, 2, 3), np.uint8)

    def close(self) -> None:
        """Nothing is open."""


def _wait_at_the_gate() -> None:
    gate = os.environ.get("GATE")
    while gate and os.path.exists(gate):
        Path(gate).with_name("playing").write_text(str(os.getpid()))
        time.sleep(0.01)


class OwnDqn(Dqn):
    """An agent that other processes find by its address."""


class Gated:
    @staticmethod
    def make(game: str, *, seeds: list[int]) -> Lanes:
        return Lanes(f"{__file__}:Gated/{game}", SPEC, [Walk(seed) for seed in seeds], {})
