"""Breakout: a paddle, a ball, and three rows of bricks that are renewed when all are gone."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from optimist.envs._games import LAST, ROW, SIDE, Move, ahead, cell, outside, started, walked

ACTIONS = (Move.NOTHING, Move.LEFT, Move.RIGHT)
CHANNELS = 4
LUCK_OF_A_STEP, LUCK_OF_A_START = 0, 1


WALL = np.broadcast_to((ROW >= 1) & (ROW < 4), (SIDE, SIDE))


class Breakout(NamedTuple):
    """At the start of an episode the ball comes from the left or from the right."""

    x: Any
    right: Any
    last_x: Any
    y: Any = 3
    last_y: Any = 3
    down: Any = True
    paddle: Any = 4
    bricks: Any = WALL
    striking: Any = False  # the ball met a brick in the last step: it breaks the next after a step without


def begin(luck) -> Breakout:
    x = jnp.where(luck[0] < 0.5, 0, LAST)
    return started(Breakout(x, right=luck[0] < 0.5, last_x=x))


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
    bricks |= WALL & bottom & ~bricks.any()

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
