"""Freeway: a chicken crosses eight lanes of cars, again and again, for 2,501 steps."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from optimist.envs._games.board import DOWN, LAST, NOTHING, SIDE, UP, cell, cells, one_of, ticked, walked

ACTIONS = (NOTHING, UP, DOWN)
CHANNELS = 7
CARS = 8
LUCK_OF_A_STEP = LUCK_OF_A_START = 2 * CARS
ROWS = np.arange(1, CARS + 1)
CHICKEN = 4  # its column
SLOWEST = 5
REST = 3  # steps from one move of the chicken to the next
STEPS = 2_500


class Freeway(NamedTuple):
    y: Any
    rest: Any
    left: Any  # steps until the end
    x: Any  # of the cars
    speed: Any  # steps between two moves; below zero to the left
    wait: Any


def begin(luck) -> Freeway:
    speed = _speeds(luck)
    return Freeway(
        y=jnp.int32(LAST),
        rest=jnp.int32(REST),
        left=jnp.int32(STEPS),
        x=jnp.zeros(CARS, jnp.int32),
        speed=speed,
        wait=abs(speed),
    )


def step(was: Freeway, move, luck) -> tuple[Freeway, Any, Any]:
    moving = (was.rest == 0) & ((move == UP) | (move == DOWN))
    y = jnp.where(moving, walked(was.y, move, UP, DOWN), was.y)
    across = y == 0
    speed = jnp.where(across, _speeds(luck), was.speed)
    wait = jnp.where(across, abs(speed), was.wait)
    y = jnp.where(across, LAST, y)

    driving = wait == 0
    x = jnp.where(driving, (was.x + jnp.sign(speed)) % SIDE, was.x)
    hit = (y == ROWS) & ((was.x == CHICKEN) | (x == CHICKEN))
    following = Freeway(
        y=jnp.where(hit.any(), LAST, y),
        rest=ticked(jnp.where(moving, REST, was.rest)),
        left=was.left - 1,
        x=x,
        speed=speed,
        wait=jnp.where(driving, abs(speed), wait - 1),
    )
    return following, across, following.left < 0


def picture(now: Freeway) -> Any:
    behind, pace = (now.x - jnp.sign(now.speed)) % SIDE, abs(now.speed)
    trails = [cells(behind, ROWS, pace == each) for each in range(1, SLOWEST + 1)]
    return jnp.stack([cell(CHICKEN, now.y), cells(now.x, ROWS, pace > 0), *trails], axis=-1)


def _speeds(luck) -> Any:
    return (1 + one_of(luck[:CARS], SLOWEST)) * jnp.where(luck[CARS:] < 0.5, -1, 1)
