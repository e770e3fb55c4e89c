"""Breakout: a paddle, a ball, and three rows of bricks that are renewed when all are gone."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from optimist.envs._games import LAST, ROW, SIDE, Move, ahead, cell, outside, walked

ACTIONS = (Move.NOTHING, Move.LEFT, Move.RIGHT)
CHANNELS = 4
LUCK_OF_A_STEP, LUCK_OF_A_START = 0, 1


class Breakout(NamedTuple):
    paddle: Any
    x: Any
    y: Any
    right: Any
    down: Any
    last_x: Any
    last_y: Any
    bricks: Any
    striking: Any  # the ball met a brick in the last step: it breaks the next one only after a step without


def begin(luck) -> Breakout:
    from_left, row = luck[0] < 0.5, jnp.int32(3)
    x = jnp.where(from_left, 0, LAST)
    return Breakout(
        paddle=jnp.int32(4),
        x=x,
        y=row,
        right=from_left,
        down=jnp.bool_(True),
        last_x=x,
        last_y=row,
        bricks=_wall(),
        striking=jnp.bool_(False),
    )


def step(was: Breakout, move, luck) -> tuple[Breakout, Any, Any]:
    paddle = walked(was.paddle, move, Move.LEFT, Move.RIGHT)
    x, y = was.x + ahead(was.right), was.y + ahead(was.down)
    side, ceiling = outside(x), y < 0
    x, y = x.clip(0, LAST), y.clip(0)

    here = cell(x, y)
    brick = ~ceiling & (was.bricks & here).any()
    struck = brick & ~was.striking
    bottom = ~ceiling & ~brick & (y == LAST)
    bricks = was.bricks & ~(here & struck)
    bricks |= _wall() & bottom & ~bricks.any()

    caught = bottom & (was.x == paddle)
    clipped = bottom & ~caught & (x == paddle)  # it hits the edge of the paddle and goes back
    following = Breakout(
        paddle=paddle,
        x=x,
        y=jnp.where(struck | caught | clipped, was.y, y),
        right=was.right ^ side ^ clipped,
        down=was.down ^ (ceiling | struck | caught | clipped),
        last_x=was.x,
        last_y=was.y,
        bricks=bricks,
        striking=brick,
    )
    return following, struck, bottom & ~caught & ~clipped


def picture(now: Breakout) -> Any:
    paddle, ball, trail = cell(now.paddle, LAST), cell(now.x, now.y), cell(now.last_x, now.last_y)
    return jnp.stack([paddle, ball, trail, now.bricks], axis=-1)


def _wall() -> Any:
    return jnp.broadcast_to((ROW >= 1) & (ROW < 4), (SIDE, SIDE))
