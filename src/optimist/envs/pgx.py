"""MinAtar's five games as programs of the accelerator, from the `pgx-minatar` package (Koyamada et al. 2023).

The rules, pictures and minimal actions are MinAtar's, with sticky actions 0.1 and difficulty ramping; the
random draws are not, and a new episode forgets the last action. As in `minatar`, an episode is truncated
after `max_steps`. Whoever plays can become a part of the same program: see `Rules`.
"""

from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist.data.transition import Spec
from optimist.envs import Environment, Step
from optimist.envs._lanes import checked_actions, package
from optimist.envs.minatar import GAMES, check, picture
from optimist.errors import UsageError


def games() -> list[str]:
    return list(GAMES)


def make(game: str, *, seeds: list[int], max_steps: int = 10_000) -> Environment:
    check("pgx", game, max_steps)
    package("pgx_minatar", extra="pgx")
    return OnDevice(Rules(game, max_steps), seeds)


class Table(NamedTuple):
    """Where the games of all lanes stand."""

    game: Any
    key: Any  # of each lane, for all that is random in it from here on
    age: Any  # steps of this episode so far

    @property
    def frames(self) -> Any:
        return self.game.observation


@dataclass(frozen=True)
class Rules:
    """One game as pure functions of all lanes: the lanes of a seed play the same in any company."""

    game: str
    max_steps: int

    def begin(self, key: Any) -> Table:
        """A new episode in every lane."""
        key, first = _split(key)
        return Table(jax.vmap(self._game.init)(first), key, jnp.zeros(len(key), jnp.int32))

    def step(self, table: Table, actions: Any) -> tuple[Table, Step]:
        """One step of every lane; an episode that ends is followed by the next one."""
        key, draw = _split(table.key)
        taken = jax.vmap(self._game.step)(table.game, actions, draw)
        age = table.age + 1
        terminal = taken.terminated
        truncated = ~terminal & (age >= self.max_steps)
        going_on = Table(taken, key, age)
        following = _where(terminal | truncated, self.begin(key), going_on)
        reward = taken.rewards[:, 0].astype(jnp.float32)
        return following, Step(following.frames, reward, terminal, truncated, taken.observation)

    @property
    def spec(self) -> Spec:
        frame = jax.eval_shape(self._game.init, jax.random.PRNGKey(0)).observation
        return Spec(frame.shape, "bool", actions=self._game.num_actions)

    @property
    def _game(self) -> Any:
        return _loaded(self.game)


@cache
def _loaded(game: str) -> Any:
    import pgx

    return pgx.make(f"minatar-{game}")  # type: ignore[arg-type]


def _split(keys: Any) -> tuple[Any, Any]:
    """What every lane keeps, and what it draws from now."""
    both = jax.vmap(jax.random.split)(keys)
    return both[:, 0], both[:, 1]


def _where(chosen: Any, ours: Table, others: Table) -> Table:
    def of_lanes(one, other):
        return jnp.where(chosen.reshape(-1, *(1,) * (one.ndim - 1)), one, other)

    return jax.tree.map(of_lanes, ours, others)


@partial(jax.jit, static_argnames="rules")
def _begin(rules: Rules, key: Any) -> Table:
    return rules.begin(key)


@partial(jax.jit, static_argnames="rules", donate_argnames="table")
def _step(rules: Rules, table: Table, actions: Any) -> tuple[Table, Step]:
    return rules.step(table, actions)


class OnDevice:
    """An `Environment` that keeps its lanes on the device, and tells the host what happens there."""

    def __init__(self, rules: Rules, seeds: list[int]):
        self.name, self.spec, self.rules = f"pgx/{rules.game}", rules.spec, rules
        self.lanes = len(seeds)
        self._key = jnp.stack([jax.random.PRNGKey(seed) for seed in seeds])
        self.table: Table | None = None

    def begin(self) -> Table:
        """New episodes for whoever plays by the `rules` on the device; the random streams go on."""
        before = self._key if self.table is None else self.table.key
        return _begin(self.rules, before)

    def reset(self) -> np.ndarray:
        self.table = self.begin()
        return np.asarray(self.table.frames)

    def step(self, actions: Any) -> Step:
        if self.table is None:
            raise UsageError(f"{self.name}: call reset() before the first step()")
        actions = checked_actions(actions, self.spec, self.lanes)
        self.table, taken = _step(self.rules, self.table, actions)
        return Step(*jax.device_get(tuple(taken)))

    def render(self) -> np.ndarray:
        if self.table is None:
            raise UsageError(f"{self.name}: call reset() before render()")
        return picture(np.asarray(self.table.frames[0]))

    def versions(self) -> dict[str, str]:
        return {name: version(name) for name in ("pgx", "pgx-minatar", "jax")}

    def close(self) -> None:
        pass
