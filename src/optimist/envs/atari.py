"""The paper's 60 Atari games on the Arcade Learning Environment, preprocessed as in the paper.

A step is four emulator frames; its observation is the pixelwise maximum of the last two, in grey, 84 x 84.
Actions are sticky on every emulator frame, and are the game's minimal set. There are no no-ops. An episode is
a whole game, truncated after 27,000 steps. The released code does not crop and resizes by area; so does
`ale_py` with the settings below.
"""

import csv
import hashlib
import logging
import os
import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from optimist.data.transition import Spec
from optimist.envs._environment import Environment, Step, checked_actions, free_cores, package
from optimist.errors import UsageError, did_you_mean

FRAME_SKIP = 4
ROMS = "OPTIMIST_ROMS"  # the environment variable with the folder of the user's ROMs
HEIGHT = {"AirRaid": 250, "Carnival": 214, "JourneyEscape": 230, "Pooyan": 220}  # of screens; else 210
log = logging.getLogger("optimist")


@dataclass(frozen=True)
class Options:
    """Options of a game; the defaults are the paper's."""

    sticky: Annotated[float, "probability that an emulator frame repeats the last action"] = 0.25
    episodic_life: Annotated[bool, "whether a lost life ends the episode"] = False
    no_ops: Annotated[int, "an episode begins with up to this many random no-ops"] = 0
    full_action_set: Annotated[bool, "all 18 actions instead of the game's minimal set"] = False
    max_steps: Annotated[int, "an episode is truncated after this many steps"] = 27_000

    def __post_init__(self):
        if not 0 <= self.sticky < 1 or self.no_ops < 0 or self.max_steps < 1:
            raise UsageError(
                f"sticky={self.sticky}, no_ops={self.no_ops}, max_steps={self.max_steps}: sticky must be at "
                "least 0 and below 1, no_ops at least 0, and max_steps at least 1"
            )


def games() -> list[str]:
    return list(_public_roms())


def make(game: str, *, seeds: list[int], threads: int | None = None, **options) -> Environment:
    if game not in games():  # perhaps ms_pacman, MSPACMAN, MsPacmanNoFrameskip-v4
        word = (
            re.sub(r"(NoFrameskip|Deterministic)?-v\d+$", "", game).replace("_", "").replace("-", "").lower()
        )
        hint = did_you_mean({known.lower(): known for known in games()}.get(word, game), games())
        raise UsageError(f'no environment "atari/{game}": {hint}')
    ale_py = package("ale_py", extra="atari")
    return Atari(ale_py, game, Options(**options), seeds, threads or free_cores())


class Atari:
    """Lanes of one game, stepped by the threads of the emulator."""

    def __init__(self, ale_py, game: str, options: Options, seeds: list[int], threads: int):
        self.name, self.lanes = f"atari/{game}", len(seeds)
        self._ale_py, self._game, self._options, self._threads = ale_py, game, options, threads
        self._rom = _rom(ale_py, game)
        self._md5 = hashlib.md5(self._rom.read_bytes()).hexdigest()
        _warn_of_another_rom(game, self._md5)
        self._ale = self._interface(self.lanes)
        self.spec = Spec((84, 84, 1), "uint8", actions=len(self._ale.get_action_set()), stack=4)
        self._seeds = np.array(seeds) >> 1  # the emulator's seeds have 31 bits
        self._full_strength = np.ones(self.lanes, np.float32)
        self._resets, self._steps = 0, 0
        self._screen: Any = None

    def _interface(self, lanes: int, **changes):
        settings = {
            "rom_path": self._rom,
            "num_envs": lanes,
            "num_threads": min(lanes, self._threads),
            "frame_skip": FRAME_SKIP,
            "stack_num": 1,  # frames are recorded singly and stacked when they are read
            "grayscale": True,
            "maxpool": True,
            "noop_max": self._options.no_ops,
            "use_fire_reset": False,
            "episodic_life": self._options.episodic_life,
            "reward_clipping": False,
            "max_episode_steps": FRAME_SKIP * self._options.max_steps,  # counted in emulator frames
            "repeat_action_probability": self._options.sticky,
            "full_action_space": self._options.full_action_set,
            "autoreset_mode": "SameStep",
        }
        return self._ale_py.ALEVectorInterface(**{**settings, **changes})

    def reset(self) -> np.ndarray:
        # With a negative seed the emulator continues its random stream.
        seeds = np.full(self.lanes, -1) if self._resets else self._seeds
        self._resets += 1
        if self._screen is not None:
            self._picture = self._screen.reset(np.arange(1), np.full(1, -1))[0]
        frames, _ = self._ale.reset(np.arange(self.lanes), seeds)
        return self._shaped(frames)

    def step(self, actions: Any) -> Step:
        if not self._resets:
            raise UsageError(f"{self.name}: call reset() before the first step()")
        # The emulator hangs on an unknown action.
        actions = checked_actions(actions, self.spec, self.lanes).astype(np.int32)
        self._ale.send(actions, self._full_strength)
        frames, reward, terminal, truncated, info = self._ale.recv()
        self._steps += 1
        if self._screen is not None:
            self._screen.send(actions[:1], self._full_strength[:1])
            self._picture = self._screen.recv()[0]
        observation = following = self._shaped(frames)
        ended = terminal | truncated
        if ended.any():
            following = observation.copy()
            following[ended] = self._shaped(info["final_obs"])[ended]
        return Step(observation, reward.astype(np.float32), terminal, truncated & ~terminal, following)

    def _shaped(self, frames: np.ndarray) -> np.ndarray:
        return frames.reshape(-1, *self.spec.frame_shape)

    def render(self) -> np.ndarray:
        """Lane 0 in colour. The lanes have grey frames only, so a second emulator repeats every action of
        lane 0; therefore the first call must come before the first step."""
        if self._screen is None and self._steps == 0 and self._resets:
            self._screen = self._interface(
                1, grayscale=False, img_height=HEIGHT.get(self._game, 210), img_width=160
            )
            for number in range(self._resets):
                seed = -1 if number else self._seeds[0]
                self._picture = self._screen.reset(np.arange(1), np.array([seed]))[0]
        if self._screen is None:
            raise UsageError(f"{self.name}: call render() after reset() and before the first step()")
        return self._picture[0, 0]

    def versions(self) -> dict[str, str]:
        return {"ale_py": version("ale-py"), "numpy": version("numpy"), "rom_md5": self._md5}

    def close(self) -> None:
        self._screen = None


@cache
def _public_roms() -> dict[str, str]:
    """The MD5 of the ROM of each game's public dataset (the ROMs of atari-py 0.2.5)."""
    text = files("optimist.envs").joinpath("atari_games.csv").read_text()
    return {row["game"]: row["rom_md5_of_public_data"] for row in csv.DictReader(text.splitlines())}


def _rom(ale_py, game: str) -> Path:
    snake_case = re.sub(r"(?<!^)(?=[A-Z])", "_", game).lower()
    folder = os.environ.get(ROMS)
    if not folder:
        package("ale_py.roms", extra="atari")
        return Path(ale_py.roms.get_rom_path(snake_case))
    rom = Path(folder) / f"{snake_case}.bin"
    if not rom.is_file() or not rom.stat().st_size:
        raise UsageError(f"{rom} is missing or empty: put the game's ROM there, or unset {ROMS}")
    return rom


@cache  # warn once
def _warn_of_another_rom(game: str, md5: str) -> None:
    if md5 != _public_roms()[game]:
        log.warning(
            "atari/%s: this ROM differs from that of the public DQN Replay Dataset, so scores of agents "
            "trained on that data are not comparable; --roms FOLDER uses another",
            game,
        )
