"""`optimist.record`: a Gymnasium environment whose every step is recorded. This needs no JAX."""

import logging
import weakref
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate

from optimist.data.lane_recorder import Lane, LaneRecorder
from optimist.data.machine import with_home
from optimist.data.transition import Spec
from optimist.envs.gym import MASK, MaskReader, encoding_of, spec_of, versions_of
from optimist.errors import UsageError

log = logging.getLogger("optimist")
AnyEnv = TypeVar("AnyEnv")
KNOWN = ("gymnasium", "ale_py")  # packages whose environments any process can make by their id
HARMLESS = ("render_mode", "num_envs", "vectorization_mode", "vector_kwargs")  # options of gymnasium.make
NEXT_STEP, SAME_STEP, DISABLED = "NextStep", "SameStep", "Disabled"  # gymnasium.vector.AutoresetMode
_open: dict[Path, LaneRecorder] = {}  # environments of one process may share a folder, each with its lane


def record(env: AnyEnv, folder: str | Path, *, masks: bool = True) -> AnyEnv:
    """The same environment, or vector of environments; its steps are added to the dataset in `folder`.

        env = optimist.record(gymnasium.make("CartPole-v1"), "log")

    A folder with steps of the same kind gets new lanes. Several environments of one process may share a
    folder. `env.close()` writes the last steps; so does the end of the process. If it is killed, the log is
    valid and lacks the last minute at most.

    An environment's masks of allowed actions, its `action_mask`, are recorded; then each action has to be an
    allowed one. `masks=False` leaves them out."""
    if isinstance(env, VectorEnv):
        return RecordedVector(env, folder, masks)  # type: ignore[return-value]
    if isinstance(env, gymnasium.Env):
        return Recorded(env, folder, masks)  # type: ignore[return-value]
    raise UsageError(
        f"{type(env).__name__} is not a Gymnasium environment: record the environments inside it, each where "
        "it is made"
    )


class Recorded(gymnasium.Wrapper):
    """A single environment whose steps are recorded."""

    def __init__(self, env: gymnasium.Env, folder: str | Path, masks: bool):
        super().__init__(env)
        self._log = _Log(env, env.observation_space, env.action_space, folder, lanes=1, masks=masks)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        observation, info = self.env.reset(seed=seed, options=options)
        self._log.begin(0, observation, info)
        return observation, info

    def step(self, action):
        observation, reward, terminal, truncated, info = self.env.step(action)
        self._log.add(0, action, reward, terminal, truncated, observation, info)
        return observation, reward, terminal, truncated, info

    def close(self) -> None:
        self.env.close()
        self._log.close()


class RecordedVector(VectorWrapper):
    """Parallel environments whose steps are recorded, each in its own lane."""

    def __init__(self, env: VectorEnv, folder: str | Path, masks: bool):
        super().__init__(env)
        mode = env.metadata.get("autoreset_mode")
        self._mode = getattr(mode, "value", mode)
        if self._mode not in (NEXT_STEP, SAME_STEP, DISABLED):
            raise UsageError(f"the vector environment's autoreset_mode is {mode}: use Gymnasium 1.1 or newer")
        spaces = env.single_observation_space, env.single_action_space
        self._log = _Log(env, *spaces, folder, lanes=env.num_envs, masks=masks)
        self._resets = np.zeros(env.num_envs, bool)  # lanes that the next step resets

    def reset(self, *, seed=None, options: dict[str, Any] | None = None):
        mask = np.array((options or {}).get("reset_mask", np.ones(self.num_envs, bool)))  # reset removes it
        observations, infos = self.env.reset(seed=seed, options=options)
        rows = list(iterate(self.env.observation_space, observations))
        for lane in np.flatnonzero(mask).tolist():
            self._log.begin(lane, rows[lane], _info_of(lane, infos))
        self._resets[mask] = False
        return observations, infos

    def step(self, actions):
        taken = list(iterate(self.env.action_space, actions))
        observations, rewards, terminals, truncations, infos = self.env.step(actions)
        rows = list(iterate(self.env.observation_space, observations))
        ended = np.asarray(terminals) | np.asarray(truncations)
        for lane, row in enumerate(rows):
            if self._resets[lane]:  # its action was ignored: this row is a reset, not a step
                self._log.begin(lane, row, _info_of(lane, infos))
                continue
            restarted = self._mode == SAME_STEP and ended[lane]
            seen = (infos["final_obs"][lane], infos.get("final_info", {})) if restarted else (row, infos)
            last = seen[0], _info_of(lane, seen[1])
            self._log.add(lane, taken[lane], rewards[lane], terminals[lane], truncations[lane], *last)
            if restarted:
                self._log.begin(lane, row, _info_of(lane, infos))
        self._resets = ended & (self._mode == NEXT_STEP)
        return observations, rewards, terminals, truncations, infos

    def close(self, **options: Any) -> None:
        self.env.close(**options)
        self._log.close()


def _info_of(lane: int, infos: dict[str, Any]) -> dict[str, Any]:
    """What the infos of a vector say of the mask of one lane."""
    said = MASK in infos and infos.get(f"_{MASK}", np.ones(lane + 1, bool))[lane]
    return {MASK: infos[MASK][lane]} if said else {}


class _Log:
    """The lanes of one environment in a dataset folder. They are closed with it, at the latest when it is
    garbage or the process ends. An environment that is used again gets new lanes."""

    def __init__(
        self, env: Any, observations: Any, actions: Any, folder: str | Path, *, lanes: int, masks: bool
    ):
        # One of the environments in a vector, where it can be reached; any other environment itself.
        single = next(iter(getattr(env.unwrapped, "envs", ())), env)
        made = single.spec or env.spec
        name = made.id if made else type(single.unwrapped).__name__
        self._frame = encoding_of(gymnasium, observations, name, actions)
        self._spec = spec_of(gymnasium, actions, self._frame, name)
        self._masks = [MaskReader(self._spec.actions if masks else 0, name) for _ in range(lanes)]
        self._actions, self._count, self._folder = actions, lanes, Path(with_home(folder)).absolute()
        found: dict[str, Any] = {"recorded": {"id": name, "wrapped": str(single)}}
        found |= {"versions": versions_of(single)}
        found |= {"observations": self._frame.words} if self._frame.words else {}
        self._provenance = found | ({"environment": f"gym/{name}"} if _makes(made, self._spec) else {})
        self._clipped = False
        self._open_lanes()

    def _open_lanes(self) -> None:
        """New lanes in the folder, which other environments of this process may be recording into."""
        recorder = _open.get(self._folder)
        if recorder is None or recorder.closed:
            recorder = LaneRecorder(self._folder, self._spec, provenance=self._provenance)
            _open[self._folder] = recorder
        elif recorder.spec != self._spec:
            raise UsageError(
                f"{self._folder} is being recorded with {recorder.spec.in_words()}, and this environment has "
                f"{self._spec.in_words()}: choose another folder"
            )
        self._lanes = [recorder.lane() for _ in range(self._count)]
        self._closing = weakref.finalize(self, _close, self._lanes)

    def begin(self, lane: int, observation: Any, info: Any) -> None:
        if not self._closing.alive:
            self._open_lanes()
        self._lanes[lane].begin(self._frame(observation), self._masks[lane](observation, info))

    def add(
        self, lane: int, action: Any, reward: Any, terminal: Any, truncated: Any, observation: Any, info: Any
    ) -> None:
        seen = self._frame(observation), self._masks[lane](observation, info)
        self._lanes[lane].add(self._action(action), float(reward), bool(terminal), bool(truncated), *seen)

    def close(self) -> None:
        """If writing fails, the end of the process tries again."""
        _close(self._lanes)
        self._closing.detach()

    def _action(self, action: Any) -> Any:
        if self._spec.discrete:
            return int(action) - int(self._actions.start)
        vector = np.asarray(action, np.float32).reshape(self._spec.action_shape)
        if self._spec.outside(vector[None])[0] and np.isfinite(vector).all():
            if not self._clipped:
                log.warning("some actions are outside the action space; they are recorded clipped to it")
            self._clipped = True
            return np.clip(vector, self._spec.action_low, self._spec.action_high)
        return vector


def _close(lanes: list[Lane]) -> None:
    for lane in lanes:
        lane.close()


def _makes(made: Any, spec: Spec) -> bool:
    """Whether `gym/<id>` is the same environment: not if it has options, another time limit, or wrappers that
    change its spaces."""
    if made is None or str(made.entry_point).partition(".")[0] not in KNOWN:
        return False
    usual = gymnasium.registry.get(made.id)
    options = {name: value for name, value in made.kwargs.items() if name not in HARMLESS}
    if usual is None or (usual.kwargs, usual.max_episode_steps) != (options, made.max_episode_steps):
        return False
    with closing(gymnasium.make(made.id)) as plain:
        encoding = encoding_of(gymnasium, plain.observation_space, made.id, plain.action_space)
        return spec_of(gymnasium, plain.action_space, encoding, made.id) == spec
