"""The five games of MinAtar (Young & Tian 2019) as pure functions of one lane, without loops.

Each module is one game. Its random events are determined by `luck`, numbers drawn uniformly from [0, 1), so
that a step can be compared with the authors' game (tests/contract/envs/test_games.py). Objects are kept in
slots and found by comparison, never by an index, so that a step is plain arithmetic over all lanes. Below are
the board of ten by ten cells, the six moves, and functions of places on the board.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

SIDE = 10
LAST = SIDE - 1
ROW, COLUMN = np.arange(SIDE)[:, None], np.arange(SIDE)[None, :]


class Move:
    NOTHING, LEFT, UP, RIGHT, DOWN, FIRE = range(6)


class Game(Protocol):
    """The members of a module of this folder."""

    ACTIONS: tuple[int, ...]  # the minimal actions, as moves
    CHANNELS: int
    LUCK_OF_A_STEP: int  # how many random numbers a step needs
    LUCK_OF_A_START: int  # how many the start of an episode needs

    begin: Callable[[Any], Any]  # (luck) -> state
    step: Callable[[Any, Any, Any], tuple[Any, Any, Any]]  # (state, move, luck) -> state, reward, over
    picture: Callable[[Any], Any]  # (state) -> bool (10, 10, channels)


def named(game: str) -> Game:
    return import_module(f"{__name__}.{game}")  # type: ignore[return-value]


def started(state: Any) -> Any:
    """A state of plain numbers as one of arrays: counts have 32 bits."""
    kinds = {int: jnp.int32, bool: bool}
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, kinds.get(type(leaf))), state)


def cell(x: Any, y: Any) -> Any:
    """The board with one cell marked, or none if it is outside."""
    return (y == ROW) & (x == COLUMN)


def cells(x: Any, y: Any, there: Any) -> Any:
    """The board with the cells of all objects that are `there` marked."""
    x, y, there = (each[:, None, None] for each in (x, y, there))
    return (there & (y == ROW[None]) & (x == COLUMN[None])).any(axis=0)


def outside(x: Any) -> Any:
    return (x < 0) | (x > LAST)


def ahead(right: Any) -> Any:
    """One cell in the direction of travel."""
    return jnp.where(right, 1, -1)


def walked(place: Any, move: Any, back: int, forth: int, lowest: int = 0, highest: int = LAST) -> Any:
    """The place after one of these two moves along an axis, kept between `lowest` and `highest`."""
    return (place - (move == back) + (move == forth)).clip(lowest, highest)


def one_of(luck: Any, count: Any) -> Any:
    """A whole number below `count`."""
    return jnp.floor(luck * count).astype(jnp.int32)


def shifted(board: Any, rows: int = 0, columns: int = 0) -> Any:
    """The board moved by this many rows and columns; marks that leave the board are dropped."""
    moved = jnp.roll(board, (rows, columns), (0, 1))
    return moved & ~outside(ROW - rows) & ~outside(COLUMN - columns)


def ticked(timer: Any) -> Any:
    return timer - (timer > 0)
