"""The five MinAtar games (Young & Tian 2019) as the `minatar` package ships them.

Sticky actions 0.1 (a reset does not clear the last action) and difficulty ramping are on. Actions are those
of `minimal_action_set()`, the set of the package's "-v1" names; its "-v0" names have 6 in every game. One
addition: MinAtar has no time limit, so a good policy would never finish its evaluation; here an episode is
truncated after `max_steps`.
"""

import json
import runpy
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from optimist.data.transition import Spec
from optimist.envs._environment import Environment, Lanes, package
from optimist.errors import UsageError, did_you_mean

ON_ONE_CORE = True
GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
LONGEST = 3_000  # steps; Freeway, the only game with a time limit, has 2,501
STICKY = 0.1  # the probability that the last action is repeated in place of the chosen one
FIXED = ("channels", "action_map", "ramping", "random")  # attributes of a game that are not its state
CELL = 16  # pixels along one side of a cell in a picture
BACKGROUND = (14, 14, 22)


def games() -> list[str]:
    return list(GAMES)


def make(game: str, *, seeds: list[int], max_steps: int = LONGEST) -> Environment:
    check("minatar", game, max_steps)
    kind = authors_game(game)
    members = [_Lane(kind(ramping=True), seed, max_steps) for seed in seeds]
    versions = {name: version(name) for name in ("minatar", "numpy")}
    return Lanes(f"minatar/{game}", members[0].spec, members, versions)


def authors_game(name: str) -> Any:
    """The class of a game. Only its own file is loaded: the package itself first imports plotting libraries
    for two seconds, and logs a warning where there are none."""
    home: Any = find_spec("minatar") or package("minatar", extra="minatar").__spec__
    return runpy.run_path(str(Path(home.origin).parent / "environments" / f"{name}.py"))["Env"]


def check(family: str, game: str, max_steps: int) -> None:
    """Raise UsageError for an unknown game or a time limit below one step."""
    if game not in GAMES:
        raise UsageError(f'no environment "{family}/{game}": {did_you_mean(game, GAMES)}')
    if max_steps < 1:
        raise UsageError(f"max_steps={max_steps}: an episode has at least one step")


class _Lane:
    """One game with its own random stream and time limit."""

    def __init__(self, game: Any, seed: int, max_steps: int):
        game.random = np.random.RandomState(seed)  # before the first reset, which draws from it
        self._game, self._random, self._max_steps = game, game.random, max_steps
        self._actions = game.minimal_action_set()
        self._age, self._last = 0, 0
        self.spec = Spec(tuple(game.state_shape()), "bool", actions=len(self._actions))

    def reset(self) -> np.ndarray:
        self._game.reset()
        self._age = 0
        return self._game.state()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        self._last = self._last if self._random.rand() < STICKY else self._actions[action]
        reward, terminal = self._game.act(self._last)
        self._age += 1
        return self._game.state(), reward, terminal, self._age >= self._max_steps

    def saved(self) -> dict:
        """The whole state as plain values; the package's games consist of numbers, lists and small arrays."""
        _, keys, *rest = self._random.get_state()
        inside = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self._game).items()
            if name not in FIXED
        }
        stream = [keys.tolist(), *rest]
        whole = {"age": self._age, "last": self._last, "random": stream, "game": inside}
        return json.loads(json.dumps(whole, default=int))  # some numbers have numpy types

    def restore(self, state: dict) -> None:
        game, inside = self._game, state["game"]
        changing = {name for name in vars(game) if name not in FIXED}
        if changing != inside.keys():
            raise ValueError("the state of another game or version")
        for name, value in inside.items():
            before = getattr(game, name)
            is_array = isinstance(before, np.ndarray)
            setattr(game, name, np.array(value, before.dtype).reshape(before.shape) if is_array else value)
        keys, *rest = state["random"]
        self._random.set_state(("MT19937", np.array(keys, np.uint32), *rest))
        self._last, self._age = int(state["last"]), int(state["age"])

    def render(self) -> np.ndarray:
        return picture(self._game.state())

    def close(self) -> None:
        pass


def picture(frame: np.ndarray) -> np.ndarray:
    """An image: each cell in the colour of its last channel that is set, (H, W, C) -> (16 H, 16 W, 3)."""
    channels = frame.shape[-1]
    topmost = (frame * np.arange(1, channels + 1)).max(axis=-1)
    colours = np.vstack([np.array([BACKGROUND], np.uint8), _cubehelix(channels)])
    pixels = colours[topmost].repeat(CELL, axis=0).repeat(CELL, axis=1)
    pixels[::CELL] = pixels[:, ::CELL] = BACKGROUND  # a thin gap, so that neighbours can be counted
    return pixels


def _cubehelix(count: int) -> np.ndarray:
    """Green (2011), eq. 2, from medium dark to nearly white, more saturated than usual; (count, 3) uint8."""
    lightness = np.linspace(0.4, 0.92, count)[:, None]
    angle = 2 * np.pi * (0.5 / 3 - 1.5 * lightness)
    amplitude = 2.0 * lightness * (1 - lightness) / 2
    cosine, sine = np.array([-0.14861, -0.29227, 1.97294]), np.array([1.78277, -0.90649, 0.0])
    colours = lightness + amplitude * (np.cos(angle) * cosine + np.sin(angle) * sine)
    return (255 * colours.clip(0, 1)).astype(np.uint8)
