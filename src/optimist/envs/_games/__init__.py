"""The five games of MinAtar (Young & Tian 2019) as pure functions of one lane, without a loop.

Each module is one game: what may happen in `step` is decided by `luck`, numbers drawn evenly from [0, 1), so
that a step can be compared with the authors' own (tests/envs/test_games.py). Things are kept in slots and
looked for by comparing, never by an index: a step is then one stretch of arithmetic over all lanes.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol


class Game(Protocol):
    """What a module of this folder offers."""

    ACTIONS: tuple[int, ...]  # those that make a difference, as moves of `board`
    CHANNELS: int
    LUCK_OF_A_STEP: int  # how many numbers it takes
    LUCK_OF_A_START: int

    begin: Callable[[Any], Any]  # (luck) -> state
    step: Callable[[Any, Any, Any], tuple[Any, Any, Any]]  # (state, move, luck) -> state, reward, over
    picture: Callable[[Any], Any]  # (state) -> bool (10, 10, channels)


def named(game: str) -> Game:
    return import_module(f"{__name__}.{game}")  # type: ignore[return-value]
