"""A game that fails as the variable FAIL says, in the process that evaluates or in every process.

Tests name it by this file's path, so that other processes find it.
"""

import ctypes
import os
import sys

import numpy as np
from gated_game import SPEC, Walk

from optimist.envs import Lanes


class Failing(Walk):
    """The walk, which also prints."""

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        print("a step is made")
        how, spared = os.environ.get("FAIL", ""), os.environ.get("SPARED", "")
        if how and spared != str(os.getpid()):
            FAILURES[how]()
        return super().step(action)


def raises() -> None:
    raise ZeroDivisionError("the walk\nis broken")


FAILURES = {
    "raise": raises,
    "exit": lambda: sys.exit(3),
    "crash": lambda: ctypes.string_at(0),  # reads memory that is not there
    "die": lambda: os._exit(7),
}


class Game:
    @staticmethod
    def make(game: str, *, seeds: list[int]) -> Lanes:
        return Lanes(f"{__file__}:Game/{game}", SPEC, [Failing(seed) for seed in seeds], {})
