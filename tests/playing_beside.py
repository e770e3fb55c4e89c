"""A family whose small games play in a thread beside this process: `playing_beside:Family/breakout`."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from optimist import envs


class InThread:
    """MinAtar, whose episodes are short, with three frames in an observation."""

    encoding = "as in MinAtar"

    def __init__(self, game: str, seeds: list[int]):
        self._play = envs.make_lanes(f"minatar/{game}", seeds)
        self.name, self.lanes = f"playing_beside:Family/{game}", len(seeds)
        self.spec = replace(self._play.spec, stack=3)
        self._thread = ThreadPoolExecutor(1)
        self.playing: Future | None = None

    def reset(self) -> np.ndarray:
        if self.playing:
            self.receive()
        return self._play.reset()

    def send(self, actions: Any) -> None:
        assert self.playing is None
        self.playing = self._thread.submit(self._play.step, actions)

    def receive(self) -> envs.Step:
        assert self.playing is not None
        playing, self.playing = self.playing, None
        return playing.result()

    def step(self, actions: Any) -> envs.Step:
        self.send(actions)
        return self.receive()

    def versions(self) -> dict[str, str]:
        return self._play.versions()

    def close(self) -> None:
        self._thread.shutdown()


class Restorable(InThread):
    """One whose state could be saved."""

    resumable = True


class Family:
    PLAYS_BESIDE = True

    @staticmethod
    def games() -> list[str]:
        return ["breakout"]

    @staticmethod
    def make(game: str, *, seeds: list[int]) -> InThread:
        return InThread(game, seeds)


class RestorableFamily:
    PLAYS_BESIDE = True

    @staticmethod
    def make(game: str, *, seeds: list[int]) -> InThread:
        return Restorable(game, seeds)
