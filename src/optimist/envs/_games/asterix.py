"""Asterix: gold and enemies cross the board, one per row; the player collects gold and avoids enemies."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from optimist.envs._games import LAST, Move, ahead, cell, cells, one_of, outside, started, walked

ACTIONS = (Move.NOTHING, Move.LEFT, Move.UP, Move.RIGHT, Move.DOWN)
CHANNELS = 4
LUCK_OF_A_STEP, LUCK_OF_A_START = 3, 0
ROWS = np.arange(1, LAST)  # each has room for one object
SPAWN_EVERY, MOVE_EVERY, RAMP_EVERY = 10, 5, 100  # steps; the first two shrink


NOBODY = np.zeros(len(ROWS), bool)


class Asterix(NamedTuple):
    x: Any = 5
    y: Any = 5
    there: Any = NOBODY  # whether each row has an object; the next three describe it
    place: Any = NOBODY.astype(np.int32)
    right: Any = NOBODY
    gold: Any = NOBODY
    spawn_every: Any = SPAWN_EVERY
    until_spawn: Any = SPAWN_EVERY
    move_every: Any = MOVE_EVERY
    until_move: Any = MOVE_EVERY
    until_ramp: Any = RAMP_EVERY
    ramps: Any = 0


def begin(luck) -> Asterix:
    return started(Asterix())


def step(was: Asterix, move, luck) -> tuple[Asterix, Any, Any]:
    to_right, is_gold, which = luck
    spawning = was.until_spawn == 0
    free = ~was.there
    new = spawning & free & (jnp.cumsum(free) - 1 == one_of(which, free.sum()))
    there, right = was.there | new, jnp.where(new, to_right < 1 / 2, was.right)
    gold = jnp.where(new, is_gold < 1 / 3, was.gold)
    place = jnp.where(new, jnp.where(right, 0, LAST), was.place)

    x, y = walked(was.x, move, Move.LEFT, Move.RIGHT), walked(was.y, move, Move.UP, Move.DOWN, 1, LAST - 1)
    touched = there & (place == x) & (y == ROWS)
    there &= ~(touched & gold)
    moving = was.until_move == 0
    place = jnp.where(moving & there, place + ahead(right), place)
    there &= ~outside(place)
    met = moving & there & (place == x) & (y == ROWS)
    there &= ~(met & gold)

    can_ramp = (was.spawn_every > 1) | (was.move_every > 1)
    ramping, counting = can_ramp & (was.until_ramp < 0), can_ramp & (was.until_ramp >= 0)
    following = Asterix(
        x=x,
        y=y,
        there=there,
        place=place,
        right=right,
        gold=gold,
        spawn_every=was.spawn_every - (ramping & (was.spawn_every > 1)),
        until_spawn=jnp.where(spawning, was.spawn_every, was.until_spawn) - 1,
        move_every=was.move_every - (ramping & (was.move_every > 1) & (was.ramps % 2 == 1)),
        until_move=jnp.where(moving, was.move_every, was.until_move) - 1,
        until_ramp=jnp.where(ramping, RAMP_EVERY, was.until_ramp - counting),
        ramps=was.ramps + ramping,
    )
    return following, (touched & gold).sum() + (met & gold).sum(), ((touched | met) & ~gold).any()


def picture(now: Asterix) -> Any:
    enemies, gold = (
        cells(now.place, ROWS, now.there & ~now.gold),
        cells(now.place, ROWS, now.there & now.gold),
    )
    trails = cells(now.place - ahead(now.right), ROWS, now.there)
    return jnp.stack([cell(now.x, now.y), enemies, trails, gold], axis=-1)
