"""The five games of MinAtar (Young & Tian 2019) as pure functions of one lane, without loops.

Each module is one game. Its random events are determined by `luck`, numbers drawn uniformly from [0, 1), so
that a step can be compared with the authors' game (tests/envs/test_games.py). Objects are kept in slots and
found by comparison, never by an index, so that a step is plain arithmetic over all lanes.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol


class Game(Protocol):
    """The members of a module of this folder."""

    ACTIONS: tuple[int, ...]  # the minimal actions, as moves of `board`
    CHANNELS: int
    LUCK_OF_A_STEP: int  # how many random numbers a step needs
    LUCK_OF_A_START: int  # how many the start of an episode needs

    begin: Callable[[Any], Any]  # (luck) -> state
    step: Callable[[Any, Any, Any], tuple[Any, Any, Any]]  # (state, move, luck) -> state, reward, over
    picture: Callable[[Any], Any]  # (state) -> bool (10, 10, channels)


def named(game: str) -> Game:
    return import_module(f"{__name__}.{game}")  # type: ignore[return-value]
