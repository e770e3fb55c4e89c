"""Where a policy acts: lanes of an environment behind one interface, found by the name "family/game"."""

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np

from optimist.data.transition import Spec
from optimist.errors import UsageError, did_you_mean


class Step(NamedTuple):
    """One step of every lane; arrays with a leading lane axis, frames single and unstacked.

    A step ends its episode as `terminal` or as `truncated`, never both. The two observations may be the
    same array where no episode ended: read them, do not write into them.
    """

    observation: np.ndarray  # what the lane acts on next: already reset where an episode ended
    reward: np.ndarray  # float32, unclipped
    terminal: np.ndarray
    truncated: np.ndarray
    next_observation: np.ndarray  # the true successor: the final observation where an episode ended


class Environment(Protocol):
    """`lanes` copies of one game that are stepped together and reset by themselves."""

    name: str
    spec: Spec
    lanes: int

    def reset(self) -> np.ndarray:
        """Begin a new episode in every lane; the random streams go on, they do not start over."""
        ...

    def step(self, actions: Any) -> Step: ...

    def render(self) -> np.ndarray:
        """A picture of lane 0, uint8 (H, W, 3)."""
        ...

    def versions(self) -> dict[str, str]:
        """The packages that decide what happens in this environment."""
        ...

    def close(self) -> None: ...


class FrameStack:
    """The last `spec.stack` frames of every lane on the last axis, oldest first, as sampling joins them."""

    def __init__(self, spec: Spec, lanes: int):
        self._depth = spec.stack
        self._channels = spec.frame_shape[-1]
        self._stacked = np.zeros((lanes, *spec.observation_shape), spec.frame_dtype)

    def reset(self, observations: np.ndarray) -> np.ndarray:
        return self.push(observations, np.ones(len(observations), bool))

    def push(self, observations: np.ndarray, ended: np.ndarray) -> np.ndarray:
        """Add the frames to act on next; a lane that `ended` begins anew with zeros before its frame."""
        if self._depth == 1:
            return observations
        self._stacked = np.concatenate([self._stacked[..., self._channels :], observations], axis=-1)
        self._stacked[ended, ..., : -self._channels] = 0
        return self._stacked


def make(name: str, *, lanes: int = 1, seed: int = 0, **options) -> Environment:
    """The environment called "family/game"; `options` are those of the family's own `make`."""
    family_name, slash, game = name.partition("/")
    if not slash:
        raise UsageError(f'"{name}" is not of the form family/game: {did_you_mean(name, available())}')
    if family_name not in _families():
        known = did_you_mean(family_name, _families())
        raise UsageError(f'no environment family "{family_name}" in "{name}": {known}')
    if lanes < 1 or seed < 0:
        raise UsageError(f"lanes={lanes}, seed={seed}: at least one lane and a seed from 0 upwards, please")
    family = _family(family_name)
    _refuse_unknown_options(family, options)
    return family.make(game, lanes=lanes, seed=seed, **options)


def available() -> list[str]:
    """Every name that is known to work once its family's package is installed."""
    return [f"{name}/{game}" for name in _families() for game in _family(name).games()]


def _families() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]


def _family(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")


def _refuse_unknown_options(family: ModuleType, options: dict) -> None:
    parameters = inspect.signature(family.make).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    known = set(parameters) - {"game", "lanes", "seed"}
    for option in options.keys() - known:
        raise UsageError(f'no environment option "{option}": {did_you_mean(option, known)}')
