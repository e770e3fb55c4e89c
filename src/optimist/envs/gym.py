"""Any Gymnasium environment with Discrete or bounded Box actions, as `gym/<id>`.

Images (uint8 or bool, rank 2 or 3) stay frames; every other observation becomes a flat vector. A number of a
Discrete space becomes a one-hot vector; a Dict or Tuple is flattened in Gymnasium's own order.
`max_steps` replaces the environment's own time limit; other options go to the environment itself.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from optimist.data.transition import Spec
from optimist.envs._environment import Environment, Lanes, first_line, package
from optimist.errors import UsageError, did_you_mean, in_one_line

# these need only gymnasium
CLASSIC_CONTROL = ("Acrobot-v1", "CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1")
SIMULATORS = ("mujoco", "Box2D", "ale_py")  # their versions determine what happens in an environment
ACTIONS = "supported are Discrete and bounded float Box actions; wrap the environment to have one of these"
SUPPORTED = "supported are Box, Discrete, MultiDiscrete, MultiBinary, and Dict or Tuple of these"
IMAGE_RANKS = (2, 3)
LONGEST = 300  # letters of a space in a description
MASK = "action_mask"  # in the infos, as in Gymnasium, or in a Dict observation, as in PettingZoo


@dataclass(frozen=True)
class Encoding:
    """How one observation becomes a frame; `encoding(observation)` is the frame."""

    space: Any
    frame_shape: tuple[int, ...]
    frame_dtype: str
    flatten: Any  # gymnasium's function; None: the space is a Box, which only changes its shape and type
    part: str = ""  # of a Dict observation, if the frame is made of this part alone

    def __call__(self, observation: Any) -> np.ndarray:
        if self.part:
            observation = observation[self.part]
        if self.flatten is not None:
            observation = self.flatten(self.space, observation)
        return np.asarray(observation, self.frame_dtype).reshape(self.frame_shape)

    @property
    def words(self) -> str:
        """The encoding in words, for a dataset's provenance; "" for a Box."""
        if self.flatten is None:
            return ""
        what = in_one_line(self.space, LONGEST)
        return f"one-hot vectors of {what}" if self.frame_dtype == "bool" else f"flat vectors of {what}"


class MaskReader:
    """Reads the masks of one environment. Its first observation tells whether it has masks; where one is
    missing later, every action can be chosen."""

    def __init__(self, actions: int, owner: str):
        self._actions, self._owner = actions, owner
        self._masked: bool | None = None

    def __call__(self, observation: Any, info: Any) -> np.ndarray | None:
        """The actions that can be chosen after this observation, (actions,); None without masks."""
        inside = isinstance(observation, dict) and MASK in observation
        given = observation[MASK] if inside else info.get(MASK)
        if not self._actions:  # action vectors have no mask
            return None
        if self._masked is None:
            self._masked = given is not None
        if given is None:
            return np.ones(self._actions, bool) if self._masked else None
        if not self._masked or np.shape(given) != (self._actions,):
            late = "" if self._masked else ", and none at its first reset"
            raise UsageError(
                f"{self._owner} gives an {MASK} of {np.shape(given)} for {self._actions} actions{late}: "
                "wrap the environment to correct it"
            )
        return np.asarray(given).astype(bool)


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
    gymnasium, name = package("gymnasium", extra="gym"), f"gym/{game}"
    # an id with ":" names the module that will register it
    if ":" not in game and game not in gymnasium.registry:
        raise UsageError(f'no environment "{name}": {did_you_mean(game, gymnasium.registry)}')
    if max_steps is not None:
        options["max_episode_steps"] = max_steps
    first = _single(gymnasium, game, options)
    encoding = encoding_of(gymnasium, first.observation_space, name, first.action_space)
    spec = spec_of(gymnasium, first.action_space, encoding, name)
    if "rgb_array" in (first.metadata.get("render_modes") or ()):
        first.close()
        first = _single(gymnasium, game, {"render_mode": "rgb_array", **options})
    made = [first, *(_single(gymnasium, game, options) for _ in seeds[1:])]
    members = [_Lane(env, spec, encoding, seed, name) for env, seed in zip(made, seeds, strict=True)]
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
        space = self._env.action_space
        if self._spec.discrete:
            action += int(space.start)
        else:
            action = action.reshape(space.shape).astype(space.dtype)
        observation, reward, terminal, truncated, info = self._env.step(action)
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


def encoding_of(gymnasium: Any, space: Any, owner: str, actions: Any) -> Encoding:
    """The encoding of a space; UsageError, which begins with the `owner`, for a space that is no frame.
    A mask of discrete `actions` inside it is no part of the frame."""
    spaces = gymnasium.spaces
    inside = space.spaces if isinstance(space, spaces.Dict) and isinstance(actions, spaces.Discrete) else {}
    if len(inside) > 1 and MASK in inside and inside[MASK].shape == (actions.n,):
        rest = {name: part for name, part in inside.items() if name != MASK}
        if len(rest) > 1:
            return encoding_of(gymnasium, spaces.Dict(rest), owner, actions)
        ((name, part),) = rest.items()
        return replace(encoding_of(gymnasium, part, owner, None), part=name)
    if isinstance(space, spaces.Box):
        rank, kind = len(space.shape), space.dtype.name
        if kind in ("uint8", "bool") and rank in IMAGE_RANKS:
            return Encoding(space, (*space.shape, 1)[:3], kind, flatten=None)
        size = int(np.prod(space.shape, dtype=int))
        return Encoding(space, (size,), "bool" if kind == "bool" else "float32", flatten=None)
    parts = list(_parts(spaces, space))
    for part in parts:
        if not isinstance(part, (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)):
            raise UsageError(f"{owner} has {type(part).__name__} observations: {SUPPORTED}")
        if isinstance(part, spaces.Box) and part.dtype == np.uint8 and len(part.shape) in IMAGE_RANKS:
            raise UsageError(
                f"{owner} has an image inside its {type(space).__name__} observations: wrap the environment "
                "so that it shows the image alone, or leaves it out (gymnasium.wrappers.FilterObservation)"
            )
    size = int(spaces.flatdim(space))
    numbers = any(isinstance(part, spaces.Box) and part.dtype != np.bool_ for part in parts)
    return Encoding(space, (size,), "float32" if numbers else "bool", flatten=spaces.flatten)


def _parts(spaces: Any, space: Any) -> Iterator[Any]:
    """The spaces inside a Dict or Tuple, however deep; any other space is its own part."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        inside = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        for part in inside:
            yield from _parts(spaces, part)
    else:
        yield space
