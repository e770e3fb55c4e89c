"""Gymnasium's v5 tasks HalfCheetah, Hopper and Walker2d on MuJoCo: the same steps, in many lanes at once.

Models and rules are Gymnasium's with its default arguments; `max_steps` is its time limit. Every lane has its
own simulation, because MuJoCo's solver starts from its last solution. `mujoco.rollout`, which steps many
states on few simulations, loses that solution; without it HalfCheetah takes another path within 100 steps.
"""

import logging
import os
import warnings
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from optimist.data.transition import Spec
from optimist.envs._environment import Environment, Step, checked_actions, first_line, package
from optimist.errors import UsageError, did_you_mean

ON_ONE_CORE = True
TASK_VERSION = "v5"
PICTURE = 480  # pixels along one side, as in Gymnasium
CAMERA = "track"  # all three models have this camera, which follows the body
Range = tuple[float, float]
log = logging.getLogger("optimist")


@dataclass(frozen=True)
class Health:
    """Outside one of these open ranges the body has fallen: the episode ends without the last `reward`."""

    height: Range
    angle: Range
    rest_of_state: Range | None = None  # every position and velocity but those along x and z
    reward: float = 1.0


@dataclass(frozen=True)
class Task:
    model: str
    frame_skip: int
    control_cost: float
    reset_noise: float
    normal_velocities: bool = False  # whether the noise of initial velocities is normal; otherwise uniform
    velocity_limit: float | None = None  # observed velocities are clipped to it
    health: Health | None = None


FALLING: dict[str, Any] = {"frame_skip": 4, "control_cost": 1e-3, "reset_noise": 5e-3, "velocity_limit": 10.0}
TASKS = {
    "HalfCheetah": Task(
        "half_cheetah.xml", frame_skip=5, control_cost=0.1, reset_noise=0.1, normal_velocities=True
    ),
    "Hopper": Task(
        "hopper.xml",
        **FALLING,
        health=Health(height=(0.7, np.inf), angle=(-0.2, 0.2), rest_of_state=(-100.0, 100.0)),
    ),
    "Walker2d": Task("walker2d_v5.xml", **FALLING, health=Health(height=(0.8, 2.0), angle=(-1.0, 1.0))),
}


def games() -> list[str]:
    return list(TASKS)


def make(game: str, *, seeds: list[int], max_steps: int = 1000) -> Environment:
    if game not in TASKS:
        word = game.partition("-")[0].replace("_", "").lower()  # halfcheetah, half_cheetah, HalfCheetah-v5
        hint = did_you_mean({known.lower(): known for known in TASKS}.get(word, game), games())
        raise UsageError(f'no environment "mujoco/{game}": {hint}')
    if max_steps < 1:
        raise UsageError(f"max_steps={max_steps}: an episode has at least one step")
    mujoco = _mujoco()
    return Mujoco(mujoco, game, _model(mujoco, TASKS[game].model), seeds, max_steps)


class Mujoco:
    """Lanes of one task; states, rewards and ends are arrays over the lanes."""

    def __init__(self, mujoco, game: str, model, seeds: list[int], max_steps: int):
        self.name, self.lanes = f"mujoco/{game}", len(seeds)
        self._mujoco, self._task, self._model = mujoco, TASKS[game], model
        low, high = (tuple(bound.tolist()) for bound in model.actuator_ctrlrange.astype(np.float32).T)
        self.spec = Spec((model.nq + model.nv - 1,), "float32", action_low=low, action_high=high)
        self._max_steps = max_steps
        self._seconds = model.opt.timestep * self._task.frame_skip
        self._randoms = [np.random.default_rng(seed) for seed in seeds]
        self._simulations = [mujoco.MjData(model) for _ in seeds]
        # Looking up an array of a simulation takes longer than reading it, so this is done once.
        self._controls = [each.ctrl for each in self._simulations]
        self._parts = [part for each in self._simulations for part in (each.qpos, each.qvel)]
        self._ages, self._started = np.zeros(self.lanes, int), False
        self._renderer: Any = None

    def reset(self) -> np.ndarray:
        self._started = True
        for lane in range(self.lanes):
            self._begin(lane)
        self._states = self._read_states()
        return self._observed()

    def step(self, actions: Any) -> Step:
        if not self._started:
            raise UsageError(f"{self.name}: call reset() before the first step()")
        actions = checked_actions(actions, self.spec, self.lanes)
        for control, action in zip(self._controls, actions, strict=True):
            control[:] = action
        for simulation in self._simulations:
            self._mujoco.mj_step(self._model, simulation, nstep=self._task.frame_skip)
        before, self._states = self._states, self._read_states()
        self._ages += 1
        healthy = self._healthy()
        terminal, truncated = ~healthy, healthy & (self._ages >= self._max_steps)
        reward = (self._states[:, 0] - before[:, 0]) / self._seconds
        if self._task.health is not None:
            reward = reward + healthy * self._task.health.reward
        reward = reward - self._task.control_cost * np.square(actions).sum(axis=1)
        observation = following = self._observed()
        ended = terminal | truncated
        if ended.any():
            for lane in np.flatnonzero(ended).tolist():
                self._begin(lane)
            self._states = self._read_states()
            observation = self._observed()
        return Step(observation, reward.astype(np.float32), terminal, truncated, following)

    def _begin(self, lane: int) -> None:
        """Begin a new episode; noise is drawn in Gymnasium's order, positions before velocities."""
        simulation, random, noise = self._simulations[lane], self._randoms[lane], self._task.reset_noise
        self._mujoco.mj_resetData(self._model, simulation)
        simulation.qpos[:] += random.uniform(-noise, noise, self._model.nq)
        if self._task.normal_velocities:
            simulation.qvel[:] += noise * random.standard_normal(self._model.nv)
        else:
            simulation.qvel[:] += random.uniform(-noise, noise, self._model.nv)
        self._mujoco.mj_forward(self._model, simulation)
        self._ages[lane] = 0

    def _read_states(self) -> np.ndarray:
        """The state of every lane: positions (x, z, angle of the body, joints), then their velocities."""
        return np.concatenate(self._parts).reshape(self.lanes, -1)

    def _observed(self) -> np.ndarray:
        """The observations: the states without x."""
        frames, limit = self._states[:, 1:].astype(np.float32), self._task.velocity_limit
        if limit is not None:
            velocities = frames[:, self._model.nq - 1 :]
            np.clip(velocities, -limit, limit, out=velocities)
        return frames

    def _healthy(self) -> np.ndarray:
        health, states = self._task.health, self._states
        if health is None:
            return np.ones(self.lanes, bool)
        healthy = _between(states[:, 1], health.height) & _between(states[:, 2], health.angle)
        if health.rest_of_state is not None:
            healthy &= _between(states[:, 2:], health.rest_of_state).all(axis=1)
        return healthy

    def render(self) -> np.ndarray:
        try:
            if self._renderer is None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the error below names what is missing
                    self._renderer = self._mujoco.Renderer(self._model, PICTURE, PICTURE)
            self._renderer.update_scene(self._simulations[0], camera=CAMERA)
            return self._renderer.render()
        except Exception as error:  # the graphics driver may raise anything
            raise UsageError(
                f"{self.name} cannot be rendered here ({first_line(error)}): "
                "set MUJOCO_GL=egl to draw without a display"
            ) from error

    def versions(self) -> dict[str, str]:
        return {"task": TASK_VERSION, **{name: version(name) for name in ("mujoco", "gymnasium", "numpy")}}

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None


def _mujoco() -> Any:
    try:
        return package("mujoco", extra="mujoco")
    except (ImportError, AttributeError, RuntimeError) as error:
        graphics = os.environ.get("MUJOCO_GL")
        if not graphics:
            raise
        # The package loads the graphics driver when it is imported.
        raise UsageError(
            f"mujoco cannot be loaded with MUJOCO_GL={graphics} ({first_line(error)}): unset MUJOCO_GL"
        ) from error


def _model(mujoco, file: str) -> Any:
    gymnasium: Any = package("gymnasium", extra="mujoco")
    assets = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    handler = mujoco.get_mju_user_warning()
    # HalfCheetah's model has an outdated attribute; MuJoCo would log that to a file in the working folder.
    mujoco.set_mju_user_warning(log.debug)
    try:
        return mujoco.MjModel.from_xml_path(str(assets / file))
    finally:
        mujoco.set_mju_user_warning(handler)


def _between(values: np.ndarray, limits: Range) -> np.ndarray:
    low, high = limits
    return (low < values) & (values < high)  # false for NaN
