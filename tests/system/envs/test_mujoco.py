"""Lanes of MuJoCo equal Gymnasium's v5 tasks bit by bit at every step, for any number of lanes."""

import os
import subprocess
import sys
from inspect import signature

import gymnasium
import mujoco
import numpy as np
import pytest

from optimist import envs
from optimist.envs import lane_seeds
from optimist.envs import mujoco as family
from optimist.errors import UsageError

TASKS = family.games()
FALLING = ["Hopper", "Walker2d"]
DRAW = """
from optimist import envs
from optimist.errors import UsageError
try:
    play = envs.make("mujoco/Hopper", lanes=2)
    play.reset()
    pixels = play.render()
    print(pixels.shape, pixels.dtype, len(set(pixels.ravel().tolist())) > 20)
except UsageError as error:
    print(error)
"""


@pytest.fixture(autouse=True)
def _logs_elsewhere(tmp_path, monkeypatch):
    """Gymnasium's HalfCheetah makes MuJoCo write a warning into the working folder."""
    monkeypatch.chdir(tmp_path)


def random_actions(task: str, steps: int, lanes: int, seed: int = 0) -> np.ndarray:
    size = {"HalfCheetah": 6, "Hopper": 3, "Walker2d": 6}[task]
    return np.random.default_rng(seed).uniform(-1, 1, (steps, lanes, size)).astype(np.float32)


def refusal(call, *arguments, **options) -> str:
    with pytest.raises(UsageError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("task", "max_steps", "steps"), [("HalfCheetah", 150, 400), ("Hopper", 20, 400), ("Walker2d", 20, 400)]
)
def test_every_step_is_gymnasiums_to_the_bit(task, max_steps, steps):
    lanes, actions = 3, random_actions(task, steps, lanes=3)
    play = envs.make(f"mujoco/{task}", lanes=lanes, seed=7, max_steps=max_steps, processes=2)
    alone = [gymnasium.make(f"{task}-v5", max_episode_steps=max_steps) for _ in range(lanes)]
    first = [env.reset(seed=seed)[0] for env, seed in zip(alone, lane_seeds(7, lanes), strict=True)]
    np.testing.assert_array_equal(play.reset(), np.array(first, np.float32))
    terminals = truncations = 0
    for row in actions:
        step = play.step(row)
        assert not (step.terminal & step.truncated).any()
        for lane, env in enumerate(alone):
            successor, reward, terminal, truncated, _ = env.step(row[lane])
            np.testing.assert_array_equal(step.next_observation[lane], successor.astype(np.float32))
            assert step.reward[lane] == np.float32(reward)
            assert (step.terminal[lane], step.truncated[lane]) == (terminal, truncated and not terminal)
            acted_on = env.reset()[0] if terminal or truncated else successor
            np.testing.assert_array_equal(step.observation[lane], acted_on.astype(np.float32))
        terminals += step.terminal.sum()
        truncations += step.truncated.sum()
    assert truncations > 0 and (terminals > 0) == (task in FALLING)


@pytest.mark.parametrize("task", TASKS)
def test_the_spaces_are_gymnasiums(task):
    spec, env = envs.make(f"mujoco/{task}").spec, gymnasium.make(f"{task}-v5")
    assert spec.frame_shape == env.observation_space.shape and spec.frame_dtype == "float32"
    assert spec.action_low == tuple(env.action_space.low.tolist())
    assert spec.action_high == tuple(env.action_space.high.tolist())
    limit = signature(family.make).parameters["max_steps"].default
    assert limit == gymnasium.spec(f"{task}-v5").max_episode_steps


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("HalfCheetah-v5", 'did you mean "HalfCheetah"?'),
        ("half_cheetah", 'did you mean "HalfCheetah"?'),
        ("Walker2D", 'did you mean "Walker2d"?'),
        ("Ant-v5", "known: HalfCheetah, Hopper, Walker2d"),
    ],
)
def test_another_task_is_answered_with_the_right_one(written, meant):
    assert refusal(envs.make, f"mujoco/{written}") == f'no environment "mujoco/{written}": {meant}'


def test_versions_name_the_task_and_the_simulator():
    assert envs.make("mujoco/Hopper").versions() == {
        "task": "v5",
        "mujoco": mujoco.__version__,
        "gymnasium": gymnasium.__version__,
        "numpy": np.__version__,
    }


def test_nothing_is_said_or_written_about_an_outdated_model(capfd, tmp_path):
    envs.make("mujoco/HalfCheetah")
    assert capfd.readouterr() == ("", "") and not list(tmp_path.iterdir())


def drawn(graphics: str) -> str:
    settings = {**os.environ, "MUJOCO_GL": graphics}
    settings.pop("DISPLAY", None)
    settings.pop("WAYLAND_DISPLAY", None)
    done = subprocess.run([sys.executable, "-c", DRAW], env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_picture_or_one_line_about_it():
    said = drawn("egl")
    without_egl = ("mujoco cannot be loaded with MUJOCO_GL=egl (", "mujoco/Hopper cannot be rendered here (")
    assert said == "(480, 480, 3) uint8 True" or (said.startswith(without_egl) and "\n" not in said)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a window needs no DISPLAY")
@pytest.mark.parametrize(
    ("graphics", "begin", "end"),
    [
        ("glfw", "mujoco/Hopper cannot be rendered here (", "set MUJOCO_GL=egl to draw without a display"),
        ("none-such", "mujoco cannot be loaded with MUJOCO_GL=none-such (", "): unset MUJOCO_GL"),
    ],
)
def test_without_a_display_or_a_driver_the_way_to_draw_is_told(graphics, begin, end):
    said = drawn(graphics)
    assert said.startswith(begin) and said.endswith(end) and "\n" not in said
