"""Space Invaders: a cannon at the bottom, and waves of aliens that shoot and come down."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from optimist.envs._games import COLUMN, LAST, ROW, SIDE, Move, cell, shifted, started, ticked, walked

ACTIONS = (Move.NOTHING, Move.LEFT, Move.RIGHT, Move.FIRE)
CHANNELS = 6
LUCK_OF_A_STEP = LUCK_OF_A_START = 0
RELOAD = 5
ALIENS_MOVE = 12  # steps between their moves in the first wave
ALIENS_MOVE_AT_LEAST = 6
ALIENS_SHOOT = 10


NOTHING = np.zeros((SIDE, SIDE), bool)
WAVE = (ROW < 4) & (COLUMN >= 2) & (COLUMN < 8)


class SpaceInvaders(NamedTuple):
    x: Any = 5
    reload: Any = 0
    shots: Any = NOTHING  # the player's, a board
    bombs: Any = NOTHING  # the aliens'
    aliens: Any = WAVE
    to_left: Any = True
    pace: Any = ALIENS_MOVE  # steps between their moves in this wave; fewer if fewer aliens are left
    until_move: Any = ALIENS_MOVE
    until_bomb: Any = ALIENS_SHOOT


def begin(luck) -> SpaceInvaders:
    return started(SpaceInvaders())


def step(was: SpaceInvaders, move, luck) -> tuple[SpaceInvaders, Any, Any]:
    firing = (move == Move.FIRE) & (was.reload == 0)
    x = walked(was.x, move, Move.LEFT, Move.RIGHT)
    player = cell(x, LAST)
    shots = shifted(was.shots | (cell(was.x, LAST) & firing), rows=-1)
    bombs = shifted(was.bombs, rows=1)

    moving = was.until_move == 0
    edge = jnp.where(was.to_left, was.aliens[:, 0].any(), was.aliens[:, LAST].any())
    landed = moving & edge & was.aliens[LAST].any()
    # Aliens reappear on the other side only if the game is over, as in the authors' game.
    sideways = jnp.where(was.to_left, jnp.roll(was.aliens, -1, axis=1), jnp.roll(was.aliens, 1, axis=1))
    moved = jnp.where(edge, jnp.roll(was.aliens, 1, axis=0), sideways)
    aliens = jnp.where(moving, moved, was.aliens)
    over = landed | (player & (bombs | was.aliens | aliens)).any()

    bombing = was.until_bomb == 0
    bombs |= _nearest(aliens, x) & bombing
    killed = aliens & shots
    aliens, shots = aliens & ~killed, shots & ~killed
    cleared = ~aliens.any()
    due = jnp.where(moving, jnp.minimum(was.aliens.sum(), was.pace), was.until_move)
    following = SpaceInvaders(
        x=x,
        reload=ticked(jnp.where(firing, RELOAD, was.reload)),
        shots=shots,
        bombs=bombs,
        aliens=aliens | (WAVE & cleared),
        to_left=was.to_left ^ (moving & edge),
        pace=was.pace - (cleared & (was.pace > ALIENS_MOVE_AT_LEAST)),
        until_move=due - 1,
        until_bomb=jnp.where(bombing, ALIENS_SHOOT, was.until_bomb) - 1,
    )
    return following, killed.sum(), over


def picture(now: SpaceInvaders) -> Any:
    left, right = now.aliens & now.to_left, now.aliens & ~now.to_left
    return jnp.stack([cell(now.x, LAST), now.aliens, left, right, now.shots, now.bombs], axis=-1)


def _nearest(aliens, x) -> Any:
    """The lowest alien in the column nearest to the cannon; of two such columns the left one."""
    order = SIDE * abs(COLUMN - x) + COLUMN
    nearest = jnp.where(aliens.any(axis=0, keepdims=True), order, SIDE * SIDE).min()
    column = aliens & (order == nearest)
    return column & (jnp.where(column, ROW, -1).max() == ROW)
