"""Lanes in two halves: while one half plays, this process can choose the actions of the other."""

from typing import Any

import numpy as np

from optimist.envs._environment import Environment, Step


class Halves:
    """An `Environment` of two environments with `send` and `receive`. Its lanes are those of the first, then
    those of the second. Whoever steps it as a whole gets the same as from one environment."""

    def __init__(self, first: Any, second: Any):
        self.halves = (first, second)
        self.name, self.spec, self.lanes = first.name, first.spec, first.lanes + second.lanes
        self.encoding = getattr(first, "encoding", "")

    def reset(self) -> np.ndarray:
        return np.concatenate([half.reset() for half in self.halves])

    def step(self, actions: Any) -> Step:
        for group in groups_of(self):
            group.send(np.asarray(actions)[group.lanes])
        return joined([half.receive() for half in self.halves])

    def render(self) -> np.ndarray:
        return self.halves[0].render()

    def versions(self) -> dict[str, str]:
        return self.halves[0].versions()

    def close(self) -> None:
        for half in self.halves:
            half.close()


class Group:
    """Consecutive lanes of an environment that are stepped together. If the environment does not play beside
    this process, it plays when its step is received."""

    def __init__(self, play: Any, first: int, lanes: int):
        self.lanes, self._play = slice(first, first + play.lanes), play
        self._actions: np.ndarray | None = None
        self.member = np.zeros(lanes, bool)  # which of all lanes
        self.member[self.lanes] = True

    def send(self, actions: np.ndarray) -> None:
        if hasattr(self._play, "send"):
            self._play.send(actions)
        else:
            self._actions = actions

    def receive(self) -> Step:
        return self._play.receive() if self._actions is None else self._play.step(self._actions)


def groups_of(play: Environment) -> list[Group]:
    """The two halves of the lanes, or all lanes as one group."""
    if not isinstance(play, Halves):
        return [Group(play, 0, play.lanes)]
    first, second = play.halves
    return [Group(first, 0, play.lanes), Group(second, first.lanes, play.lanes)]


def joined(parts: list[Step]) -> Step:
    """The step of all lanes, from the steps of the groups."""
    return parts[0] if len(parts) == 1 else Step(*map(np.concatenate, zip(*parts, strict=True)))
