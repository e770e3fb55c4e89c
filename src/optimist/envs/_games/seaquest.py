"""Seaquest: a submarine saves divers from fish and enemy submarines, and must surface for air.

If two objects could be struck or saved at once, their age decides, as in the authors' lists; `born` is the
step at which an object appeared. Enemy torpedoes are one board per direction: they affect only the player.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from optimist.envs._games import (
    COLUMN,
    LAST,
    ROW,
    SIDE,
    Move,
    ahead,
    cell,
    cells,
    one_of,
    outside,
    shifted,
    started,
    ticked,
    walked,
)

ACTIONS = (Move.NOTHING, Move.LEFT, Move.UP, Move.RIGHT, Move.DOWN, Move.FIRE)
CHANNELS = 10
LUCK_OF_A_STEP, LUCK_OF_A_START = 5, 0
AIR = 200
CREW = 6  # divers on board at most
RELOAD, ENEMY_RELOAD = 5, 10
ENEMY_EVERY, DIVER_EVERY = 20, 30
ENEMY_WAITS, DIVER_WAITS = 5, 5  # steps between two moves
FASTEST_ENEMY = 2
# The most at once. Enemies: the fastest cross in 10 x (2 + 1) steps, with a new one in each step. Divers:
# they cross in 60 steps, with a new one every 30. Shots: they fly for 9 steps, with a new one every 5.
ENEMIES, DIVERS, SHOTS = 32, 3, 2


class Shoal(NamedTuple):
    """Enemies, or divers."""

    there: Any
    x: Any
    y: Any
    right: Any
    wait: Any
    born: Any


class Shots(NamedTuple):
    """The player's shots, the older one first."""

    there: Any
    x: Any
    y: Any
    right: Any


def nobody(slots: int, kind: Any = Shoal) -> Any:
    """Empty slots."""
    booleans = {"there", "right"}
    return kind(*(np.zeros(slots, bool if field in booleans else np.int32) for field in kind._fields))


class Seaquest(NamedTuple):
    time: Any = 0
    x: Any = 5
    y: Any = 0
    right: Any = False
    reload: Any = 0
    air: Any = AIR
    crew: Any = 0
    at_surface: Any = True  # and has had its reward or new air there
    shots: Shots = nobody(SHOTS, Shots)
    divers: Shoal = nobody(DIVERS)
    enemies: Shoal = nobody(ENEMIES)
    armed: Any = np.zeros(ENEMIES, bool)  # which enemies are submarines
    enemy_reload: Any = np.zeros(ENEMIES, np.int32)
    torpedoes: Any = np.zeros((2, SIDE, SIDE), bool)  # to the left, to the right
    enemy_every: Any = ENEMY_EVERY
    until_enemy: Any = ENEMY_EVERY
    until_diver: Any = DIVER_EVERY
    enemy_waits: Any = ENEMY_WAITS
    ramps: Any = 0


def begin(luck) -> Seaquest:
    return started(Seaquest())


def step(was: Seaquest, move, luck) -> tuple[Seaquest, Any, Any]:
    now = _steered(_with_newcomers(was, luck), move)
    now, shot = _shots_fly(now)
    now = _divers_swim(now)
    submarines = now.enemies.there & now.armed
    now, sunk, rammed = _enemies_swim(now, submarines)
    now = _fired_at(now, submarines)  # also by submarines that were just struck
    torpedoes = now.torpedoes
    flown = jnp.stack([shifted(torpedoes[0], columns=-1), shifted(torpedoes[1], columns=1)])
    torpedoed = ((torpedoes | flown) & cell(now.x, now.y)[None]).any()
    now, caught, bitten = _enemies_swim(now, now.enemies.there & ~now.armed)
    now = now._replace(
        time=was.time + 1,
        reload=ticked(now.reload),
        torpedoes=flown,
        until_enemy=ticked(now.until_enemy),
        until_diver=ticked(now.until_diver),
    )
    suffocated = now.air <= 0
    now, reward, drowned = _surfaced(now)
    return now, reward + shot + sunk + caught, rammed | torpedoed | bitten | suffocated | drowned


def picture(now: Seaquest) -> Any:
    air = now.air.clip(0) * SIDE // AIR > COLUMN
    crew = (LAST - now.crew <= COLUMN) & (COLUMN < LAST)
    submarines, fish = now.enemies.there & now.armed, now.enemies.there & ~now.armed
    channels = [
        cell(now.x, now.y),
        cell(now.x - ahead(now.right), now.y),
        cells(now.shots.x, now.shots.y, now.shots.there),
        trails(now.enemies) | trails(now.divers),
        now.torpedoes.any(axis=0),
        cells(now.enemies.x, now.enemies.y, fish),
        cells(now.enemies.x, now.enemies.y, submarines),
        (ROW == LAST) & air,
        (ROW == LAST) & crew,
        cells(now.divers.x, now.divers.y, now.divers.there),
    ]
    return jnp.stack(channels, axis=-1)


def _with_newcomers(was: Seaquest, luck) -> Seaquest:
    """An enemy and a diver where it is time for one; no enemy meets another one head-on."""
    to_right, is_armed, row, diver_to_right, diver_row = luck
    right, y, enemies = to_right < 1 / 2, 1 + one_of(row, LAST - 1), was.enemies
    blocked = (enemies.there & (enemies.y == y) & (enemies.right != right)).any()
    due, diver_due = was.until_enemy == 0, was.until_diver == 0
    enemies, new = joined(enemies, due & ~blocked, y, right, was.enemy_waits, was.time)
    diver = 1 + one_of(diver_row, LAST - 1), diver_to_right < 1 / 2
    divers, _ = joined(was.divers, diver_due, *diver, DIVER_WAITS, was.time)
    return was._replace(
        enemies=enemies,
        divers=divers,
        armed=jnp.where(new, is_armed < 1 / 3, was.armed),
        enemy_reload=jnp.where(new, ENEMY_RELOAD, was.enemy_reload),
        until_enemy=jnp.where(due, was.enemy_every, was.until_enemy),
        until_diver=jnp.where(diver_due, DIVER_EVERY, was.until_diver),
    )


def _steered(now: Seaquest, move) -> Seaquest:
    fired = (move == Move.FIRE) & (now.reload == 0)
    newest = now.shots.there[1] & fired  # becomes the older one
    shot = Shots(True, now.x, now.y, now.right)
    shots = Shots(
        *(
            jnp.stack([jnp.where(newest, before[1], before[0]), jnp.where(fired, new, before[1])])
            for before, new in zip(now.shots, shot, strict=True)
        )
    )
    turned = jnp.where(move == Move.LEFT, False, jnp.where(move == Move.RIGHT, True, now.right))
    x, y = walked(now.x, move, Move.LEFT, Move.RIGHT), walked(now.y, move, Move.UP, Move.DOWN, 0, LAST - 1)
    reload = jnp.where(fired, RELOAD, now.reload)
    return now._replace(x=x, y=y, right=turned, reload=reload, shots=shots)


def _shots_fly(now: Seaquest) -> tuple[Seaquest, Any]:
    """Move the shots, newer first; each strikes the oldest fish in its cell, or else the oldest submarine."""
    shots, enemies = now.shots, now.enemies
    x = shots.x + ahead(shots.right)
    flying, there, reward = shots.there & ~outside(x), enemies.there, jnp.int32(0)
    for one in reversed(range(SHOTS)):
        near = there & flying[one] & (enemies.x == x[one]) & (enemies.y == shots.y[one])
        fish, submarines = near & ~now.armed, near & now.armed
        struck = oldest(jnp.where(fish.any(), fish, submarines), enemies.born)
        there &= ~struck
        flying = _spent(flying, one, struck.any())
        reward += struck.any()
    shots, enemies = shots._replace(there=flying, x=x), enemies._replace(there=there)
    return now._replace(shots=shots, enemies=enemies), reward


def _divers_swim(now: Seaquest) -> Seaquest:
    """Move the divers and save those that meet the player, the youngest first, while there is room."""
    divers = now.divers
    same_row = divers.there & (divers.y == now.y)
    swimming = divers.there & (divers.wait == 0)
    x = jnp.where(swimming, divers.x + ahead(divers.right), divers.x)
    meeting = same_row & ((divers.x == now.x) | (x == now.x))
    younger = (divers.born[:, None] < divers.born[None]) & meeting[None]
    saved = meeting & (now.crew + younger.sum(axis=1) < CREW)
    left = divers._replace(
        there=divers.there & ~saved & ~outside(x),
        x=x,
        wait=jnp.where(swimming, DIVER_WAITS, divers.wait - 1),
    )
    return now._replace(divers=left, crew=now.crew + saved.sum())


def _enemies_swim(now: Seaquest, alive) -> tuple[Seaquest, Any, Any]:
    """Move these enemies; the reward for those that swim into a shot, and whether one meets the player. The
    older shot strikes first, and it strikes the youngest enemy that meets it."""
    enemies = now.enemies
    swimming = alive & (enemies.wait == 0)
    x = jnp.where(swimming, enemies.x + ahead(enemies.right), enemies.x)
    same_row = alive & (enemies.y == now.y)
    rammed = same_row & ((enemies.x == now.x) | (x == now.x))
    exposed = swimming & ~outside(x) & ~(same_row & (x == now.x))
    flying, struck = now.shots.there, jnp.zeros(ENEMIES, bool)
    for one in range(SHOTS):
        near = exposed & ~struck & (x == now.shots.x[one]) & (enemies.y == now.shots.y[one]) & flying[one]
        target = youngest(near, enemies.born)
        struck |= target
        flying = _spent(flying, one, target.any())
    wait = jnp.where(swimming, now.enemy_waits, enemies.wait - 1)
    following = now._replace(
        enemies=enemies._replace(
            there=enemies.there & ~struck & ~(alive & outside(x)),
            x=x,
            wait=jnp.where(alive, wait, enemies.wait),
        ),
        shots=now.shots._replace(there=flying),
    )
    return following, struck.sum(), rammed.any()


def _fired_at(now: Seaquest, submarines) -> Seaquest:
    """Launch a torpedo from each of these submarines that has reloaded."""
    enemies, firing = now.enemies, submarines & (now.enemy_reload == 0)
    launched = [cells(enemies.x, enemies.y, firing & side) for side in (~enemies.right, enemies.right)]
    reload = jnp.where(firing, ENEMY_RELOAD, now.enemy_reload - 1)
    return now._replace(torpedoes=now.torpedoes | jnp.stack(launched), enemy_reload=reload)


def _surfaced(now: Seaquest) -> tuple[Seaquest, Any, Any]:
    """Use up air below the surface. Coming up exchanges one diver for new air, or all six also for a reward;
    without divers the player drowns."""
    below = now.y > 0
    arriving = ~below & ~now.at_surface
    welcome = arriving & (now.crew != 0)
    full = welcome & (now.crew == CREW)
    faster = welcome & ((now.enemy_every > 1) | (now.enemy_waits > FASTEST_ENEMY))
    quicker = faster & (now.enemy_waits > FASTEST_ENEMY) & (now.ramps % 2 == 1)
    following = now._replace(
        air=jnp.where(welcome, AIR, now.air - below),
        crew=jnp.where(full, 0, now.crew) - welcome,
        at_surface=~below & (now.at_surface | welcome),
        enemy_every=now.enemy_every - (faster & (now.enemy_every > 1)),
        enemy_waits=now.enemy_waits - quicker,
        ramps=now.ramps + faster,
    )
    return following, jnp.where(full, now.air * SIDE // AIR, 0), arriving & ~welcome


def _spent(flying, one: int, hit) -> Any:
    """The shots without this one, if it hit."""
    return flying & ~((np.arange(SHOTS) == one) & hit)


def joined(shoal: Shoal, due, y, right, wait, born) -> tuple[Shoal, Any]:
    """The shoal with one more in its first free slot, and which one that is."""
    free, index = ~shoal.there, np.arange(len(shoal.there))
    new = free & due & (index == jnp.where(free, index, len(index)).min())
    one = Shoal(True, jnp.where(right, 0, LAST), y, right, wait, born)
    return Shoal(*(jnp.where(new, now, before) for now, before in zip(one, shoal, strict=True))), new


def trails(shoal: Shoal) -> Any:
    return cells(shoal.x - ahead(shoal.right), shoal.y, shoal.there)


def oldest(marked, born) -> Any:
    """Only the mark that was born first."""
    return marked & (born == jnp.where(marked, born, jnp.iinfo(jnp.int32).max).min())


def youngest(marked, born) -> Any:
    return oldest(marked, -born)
