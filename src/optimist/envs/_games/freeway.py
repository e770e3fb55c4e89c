"""Freeway: a chicken crosses eight lanes of cars, again and again, for 2,501 steps."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from optimist.envs._games import LAST, SIDE, Move, cell, cells, one_of, started, ticked, walked

ACTIONS = (Move.NOTHING, Move.UP, Move.DOWN)
CHANNELS = 7
CARS = 8
LUCK_OF_A_STEP = LUCK_OF_A_START = 2 * CARS
ROWS = np.arange(1, CARS + 1)
CHICKEN = 4  # its column
SLOWEST = 5
REST = 3  # steps between two moves of the chicken
STEPS = 2_500


class Freeway(NamedTuple):
    pace: Any  # of the cars, steps between two moves; negative to the left
    wait: Any
    x: Any = np.zeros(CARS, np.int32)  # of the cars
    y: Any = LAST
    rest: Any = REST
    steps_left: Any = STEPS


def begin(luck) -> Freeway:
    pace = _paces(luck)
    return started(Freeway(pace, wait=abs(pace)))


def step(was: Freeway, move, luck) -> tuple[Freeway, Any, Any]:
    moving = (was.rest == 0) & ((move == Move.UP) | (move == Move.DOWN))
    y = jnp.where(moving, walked(was.y, move, Move.UP, Move.DOWN), was.y)
    across = y == 0
    pace = jnp.where(across, _paces(luck), was.pace)
    wait = jnp.where(across, abs(pace), was.wait)
    y = jnp.where(across, LAST, y)

    driving = wait == 0
    x = jnp.where(driving, (was.x + jnp.sign(pace)) % SIDE, was.x)
    hit = (y == ROWS) & ((was.x == CHICKEN) | (x == CHICKEN))
    following = Freeway(
        y=jnp.where(hit.any(), LAST, y),
        rest=ticked(jnp.where(moving, REST, was.rest)),
        steps_left=was.steps_left - 1,
        x=x,
        pace=pace,
        wait=jnp.where(driving, abs(pace), wait - 1),
    )
    return following, across, following.steps_left < 0


def picture(now: Freeway) -> Any:
    behind = (now.x - jnp.sign(now.pace)) % SIDE
    trails = [cells(behind, ROWS, abs(now.pace) == each) for each in range(1, SLOWEST + 1)]
    return jnp.stack([cell(CHICKEN, now.y), cells(now.x, ROWS, np.ones(CARS, bool)), *trails], axis=-1)


def _paces(luck) -> Any:
    return (1 + one_of(luck[:CARS], SLOWEST)) * jnp.where(luck[CARS:] < 0.5, -1, 1)
