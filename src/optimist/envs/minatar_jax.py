"""MinAtar's five games as JAX programs, rewritten for accelerators in `_games`.

Rules, pictures, minimal actions, sticky actions 0.1 and difficulty ramping are those of MinAtar, step by
step; the random draws are JAX's. As in `minatar`, an episode is truncated after `max_steps`. `Rules` can be
compiled into one program with the policy.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist.data.transition import Spec
from optimist.envs import _games
from optimist.envs._environment import Environment, Step, checked_actions
from optimist.envs.minatar import GAMES, LONGEST, STICKY, check, picture
from optimist.errors import UsageError

EDITION = "1"  # of the games: changes when the same random draws lead to other states


def games() -> list[str]:
    return list(GAMES)


def make(game: str, *, seeds: list[int], max_steps: int = LONGEST) -> Environment:
    check("minatar_jax", game, max_steps)
    return OnDevice(Rules(game, max_steps), seeds)


class GameState(NamedTuple):
    """The state of the games of all lanes."""

    game: Any
    frames: Any
    key: Any  # of each lane, for all its later random draws
    age: Any  # steps of this episode so far
    last: Any  # the action that was executed; kept over the end of an episode


@dataclass(frozen=True)
class Rules:
    """One game as pure functions of all lanes; a lane does not depend on the others."""

    game: str
    max_steps: int

    def begin(self, key: Any) -> GameState:
        """A new episode in every lane."""
        key, luck = _drawn(key, self._game.LUCK_OF_A_START)
        state, nothing = jax.vmap(self._game.begin)(luck), jnp.zeros(len(key), jnp.int32)
        return GameState(state, jax.vmap(self._game.picture)(state), key, nothing, nothing)

    def step(self, table: GameState, actions: Any) -> tuple[GameState, Step]:
        """One step of every lane; lanes whose episode ends begin a new one."""
        game = self._game
        key, luck = _drawn(table.key, 1 + game.LUCK_OF_A_STEP + game.LUCK_OF_A_START)
        sticky, luck, luck_of_a_start = jnp.split(luck, [1, 1 + game.LUCK_OF_A_STEP], axis=1)
        move = jnp.where(sticky[:, 0] < STICKY, table.last, jnp.array(game.ACTIONS)[actions])
        taken, reward, terminal = jax.vmap(game.step)(table.game, move, luck)
        age = table.age + 1
        truncated = ~terminal & (age >= self.max_steps)
        ended = terminal | truncated
        state = _where(ended, jax.vmap(game.begin)(luck_of_a_start), taken)
        frames = jax.vmap(game.picture)(state)
        following = GameState(state, frames, key, jnp.where(ended, 0, age), move)
        seen = jax.vmap(game.picture)(taken)
        return following, Step(frames, reward.astype(jnp.float32), terminal, truncated, seen)

    @property
    def spec(self) -> Spec:
        return Spec((_games.SIDE, _games.SIDE, self._game.CHANNELS), "bool", actions=len(self._game.ACTIONS))

    @property
    def _game(self) -> _games.Game:
        return _games.named(self.game)


def _drawn(keys: Any, count: int) -> tuple[Any, Any]:
    """The next key of every lane, and its random draws from [0, 1), (lanes, count)."""
    both = jax.vmap(jax.random.split)(keys)
    return both[:, 0], jax.vmap(lambda key: jax.random.uniform(key, (count,)))(both[:, 1])


def _where(chosen: Any, ours: Any, others: Any) -> Any:
    def of_lanes(one, other):
        return jnp.where(chosen.reshape(-1, *(1,) * (one.ndim - 1)), one, other)

    return jax.tree.map(of_lanes, ours, others)


@partial(jax.jit, static_argnames="rules")
def _begin(rules: Rules, key: Any) -> GameState:
    return rules.begin(key)


@partial(jax.jit, static_argnames="rules", donate_argnames="table")
def _step(rules: Rules, table: GameState, actions: Any) -> tuple[GameState, Step]:
    return rules.step(table, actions)


class OnDevice:
    """An `Environment` whose lanes are kept on the device; each step is copied to the host."""

    def __init__(self, rules: Rules, seeds: list[int]):
        self.name, self.spec, self.rules = f"minatar_jax/{rules.game}", rules.spec, rules
        self.lanes = len(seeds)
        self._key = jax.vmap(jax.random.PRNGKey)(np.array(seeds, np.uint32))  # in one call: there are many
        self.table: GameState | None = None

    def begin(self) -> GameState:
        """New episodes, for a program that steps `rules` on the device; random streams continue."""
        if self.table is None:
            return _begin(self.rules, self._key)
        return _begin(self.rules, self.table.key)._replace(last=self.table.last)

    def reset(self) -> np.ndarray:
        self.table = self.begin()
        return np.asarray(self.table.frames)

    def step(self, actions: Any) -> Step:
        if self.table is None:
            raise UsageError(f"{self.name}: call reset() before the first step()")
        actions = checked_actions(actions, self.spec, self.lanes)
        self.table, taken = _step(self.rules, self.table, actions)
        return Step(*jax.device_get(tuple(taken)))

    resumable = True

    def saved(self) -> dict[str, np.ndarray]:
        return {f"{place:02d}": np.array(leaf) for place, leaf in enumerate(jax.tree.leaves(self.table))}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        leaves, shape = jax.tree.flatten(self.begin())
        given = [arrays[name] for name in sorted(arrays)]
        if [(leaf.shape, leaf.dtype) for leaf in leaves] != [(leaf.shape, leaf.dtype) for leaf in given]:
            raise ValueError("the state of another game or version")
        self.table = jax.tree.unflatten(shape, map(jnp.asarray, given))

    def render(self) -> np.ndarray:
        if self.table is None:
            raise UsageError(f"{self.name}: call reset() before render()")
        return picture(np.asarray(self.table.frames[0]))

    def versions(self) -> dict[str, str]:
        return {"minatar_jax": EDITION, "jax": jax.__version__}

    def close(self) -> None:
        pass
