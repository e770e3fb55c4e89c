"""Any Gymnasium environment with Discrete or bounded Box actions, as `gym/<id>`.

Images (uint8 or bool, rank 2 or 3) stay frames; every other observation becomes a flat vector. A number of a
Discrete space becomes a one-hot vector; a Dict or Tuple is flattened in Gymnasium's own order.
`max_steps` replaces the environment's own time limit; other options go to the environment itself.
"""

import sys
import warnings
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from optimist.data.transition import Spec
from optimist.envs._environment import Environment
from optimist.envs._lanes import Lanes, first_line, package
from optimist.envs._spaces import Encoding, MaskReader, encoding_of
from optimist.errors import UsageError, did_you_mean

# these need only gymnasium
CLASSIC_CONTROL = ("Acrobot-v1", "CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1")
SIMULATORS = ("mujoco", "Box2D", "ale_py")  # their versions determine what happens in an environment
ACTIONS = "supported are Discrete and bounded float Box actions; wrap the environment to have one of these"


def games() -> list[str]:
    return list(CLASSIC_CONTROL)


def modules(game: str) -> list[str]:
    """The modules of an environment: the one that its id names, and the one of its class."""
    named, _, id = game.rpartition(":")
    spec = getattr(sys.modules.get("gymnasium"), "registry", {}).get(id)
    entry = getattr(spec, "entry_point", None) or ""
    of_class = entry.partition(":")[0] if isinstance(entry, str) else getattr(entry, "__module__", "")
    return [named, of_class]


def make(game: str, *, seeds: list[int], max_steps: int | None = None, **options) -> Environment:
    gymnasium = package("gymnasium", extra="gym")
    # an id with ":" names the module that will register it
    if ":" not in game and game not in gymnasium.registry:
        raise UsageError(f'no environment "gym/{game}": {did_you_mean(game, gymnasium.registry)}')
    if max_steps is not None:
        options["max_episode_steps"] = max_steps
    first = _single(gymnasium, game, options)
    encoding = encoding_of(gymnasium, first.observation_space, f"gym/{game}", first.action_space)
    spec = spec_of(gymnasium, first.action_space, encoding, f"gym/{game}")
    if "rgb_array" in (first.metadata.get("render_modes") or ()):
        first.close()
        first = _single(gymnasium, game, {"render_mode": "rgb_array", **options})
    others = [_single(gymnasium, game, options) for _ in seeds[1:]]
    name = f"gym/{game}"
    members = [
        _Lane(env, spec, encoding, seed, name) for env, seed in zip([first, *others], seeds, strict=True)
    ]
    return Lanes(name, spec, members, versions_of(first), encoding.words)


class _Lane:
    """One Gymnasium environment whose frames and actions have the types of the spec."""

    def __init__(self, env, spec: Spec, encoding: Encoding, seed: int, name: str):
        self._env = env
        self._spec, self._frame, self._mask = spec, encoding, MaskReader(spec.actions, name)
        self._seed: int | None = seed
        self.allowed: np.ndarray | None = None

    def reset(self) -> np.ndarray:
        observation, info = self._env.reset(seed=self._seed)
        self._seed = None  # with the same seed again, every episode would be the first one
        self.allowed = self._mask(observation, info)
        return self._frame(observation)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool]:
        observation, reward, terminal, truncated, info = self._env.step(self._native(action))
        self.allowed = self._mask(observation, info)
        return self._frame(observation), float(reward), bool(terminal), bool(truncated)

    def render(self) -> np.ndarray:
        if self._env.render_mode != "rgb_array":
            raise UsageError(f"{self._env.spec.id} cannot be rendered: it has no rgb_array mode")
        try:
            return np.asarray(self._env.render(), np.uint8)
        except Exception as error:  # the renderer may lack a package, a display or a reset
            raise UsageError(f"{self._env.spec.id} cannot be rendered: {first_line(error)}") from error

    def close(self) -> None:
        self._env.close()

    def _native(self, action: Any) -> Any:
        space = self._env.action_space
        if self._spec.discrete:
            return action + int(space.start)
        return action.reshape(space.shape).astype(space.dtype)


def _single(gymnasium, game: str, options: dict):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("once")  # an old version is a warning, never an error
            return gymnasium.make(game, disable_env_checker=True, **options)
    except (gymnasium.error.Error, ImportError, TypeError, ValueError, AssertionError) as error:
        raise UsageError(f"gym/{game} cannot be made: {first_line(error)}") from error


def spec_of(gymnasium: Any, actions: Any, encoding: Encoding, owner: str) -> Spec:
    """The spec of encoded observations and an action space; UsageError, which begins with the `owner`, for
    actions that are neither numbered nor bounded vectors."""
    spaces = gymnasium.spaces
    frame = (encoding.frame_shape, encoding.frame_dtype)
    if isinstance(actions, spaces.Discrete):
        count, start = int(actions.n), int(actions.start)
        names = tuple(range(start, start + count)) if start else ()  # a policy answers with these
        return Spec(*frame, actions=count, action_names=names)
    if not isinstance(actions, spaces.Box) or actions.dtype.kind != "f" or not actions.is_bounded():
        raise UsageError(f"{owner} has actions {actions}: {ACTIONS}")
    low, high = (tuple(bound.ravel().tolist()) for bound in (actions.low, actions.high))
    return Spec(*frame, action_low=low, action_high=high)


def versions_of(env) -> dict[str, str]:
    """The versions of the loaded simulators and of the package that defines the environment."""
    author = type(env.unwrapped).__module__.partition(".")[0]
    loaded = [name for name in SIMULATORS if name in sys.modules]
    versions = {}
    for name in dict.fromkeys(["gymnasium", "numpy", author, *loaded]):
        with suppress(PackageNotFoundError):  # a module beside the user's own script has no version
            versions[name] = version(name)
    return versions
