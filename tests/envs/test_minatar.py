"""Each lane of MinAtar plays exactly like the package alone with the same seed."""

import logging
import subprocess
import sys

import numpy as np
import pytest

from optimist import envs
from optimist.envs import minatar

SIZES = {  # channels and minimal actions
    "asterix": (4, 5),
    "breakout": (4, 3),
    "freeway": (7, 3),
    "seaquest": (10, 6),
    "space_invaders": (6, 4),
}


def lane_seed(seed, lanes, lane):
    return int(np.random.SeedSequence(seed).spawn(lanes)[lane].generate_state(1)[0])


def recorded(name, *, lanes, seed, actions, **options):
    env = envs.make(name, lanes=lanes, seed=seed, **options)
    return env.reset(), [env.step(row) for row in actions]


def random_actions(game, steps, lanes, seed=0):
    return np.random.default_rng(seed).integers(0, SIZES[game][1], (steps, lanes))


def played_alone(game, seed, actions, max_steps):
    """The first frame and rows (next observation to act on, reward, terminal, truncated, successor) of the
    package."""
    from minatar import Environment

    env, age, rows = Environment(game), 0, []
    env.seed(seed)
    env.reset()
    first = env.state()
    for action in actions:
        reward, terminal = env.act(env.minimal_action_set()[action])
        successor, age = env.state(), age + 1
        truncated = age == max_steps and not terminal
        if terminal or truncated:
            env.reset()
            age = 0
        rows.append((env.state(), reward, terminal, truncated, successor))
    return first, rows


@pytest.mark.parametrize("game", sorted(SIZES))
def test_lanes_equal_the_package_alone(game):
    lanes, max_steps, actions = 3, 60, random_actions(game, 400, 3)
    first, steps = recorded(f"minatar/{game}", lanes=lanes, seed=5, actions=actions, max_steps=max_steps)
    for lane in range(lanes):
        seed = lane_seed(5, lanes, lane)
        alone_first, rows = played_alone(game, seed, actions[:, lane], max_steps)
        np.testing.assert_array_equal(first[lane], alone_first)
        for step, row in zip(steps, rows, strict=True):
            assert step.next_allowed is None
            for ours, alone in zip(step[:-1], row, strict=True):
                np.testing.assert_array_equal(ours[lane], alone)
    assert sum((step.terminal | step.truncated).sum() for step in steps) > 5


@pytest.mark.parametrize("game", sorted(SIZES))
def test_specs_have_the_games_channels_and_minimal_actions(game):
    channels, actions = SIZES[game]
    spec = envs.make(f"minatar/{game}").spec
    assert (spec.frame_shape, spec.frame_dtype, spec.actions) == ((10, 10, channels), "bool", actions)


def test_all_five_games_are_listed():
    assert minatar.games() == sorted(SIZES)


def test_a_picture_shows_the_last_channel_on_top():
    frame = np.zeros((10, 10, 4), bool)
    frame[0, 0, 0] = frame[0, 1, 3] = True
    frame[0, 2, [0, 3]] = True
    pixels = minatar.picture(frame)
    assert pixels.shape == (160, 160, 3) and pixels.dtype == np.uint8
    centres = pixels[8::16, 8::16]
    np.testing.assert_array_equal(centres[0, 1], centres[0, 2])
    assert (centres[0, 0] != centres[0, 1]).any()
    np.testing.assert_array_equal(centres[5, 5], minatar.BACKGROUND)


@pytest.mark.parametrize("channels", [4, 6, 7, 10])
def test_colours_are_apart_and_stand_out_from_the_background(channels):
    colours = np.vstack([minatar.BACKGROUND, minatar._cubehelix(channels)]).astype(float)
    distances = np.linalg.norm(colours[:, None] - colours[None], axis=-1)
    distances[np.diag_indices(len(colours))] = np.inf
    assert distances.min() > 20
    assert distances[0].min() > 100


def test_render_shows_lane_zero():
    env = envs.make("minatar/asterix", lanes=2, seed=3)
    env.reset()
    for _ in range(30):
        step = env.step([0, 0])
    np.testing.assert_array_equal(env.render(), minatar.picture(step.observation[0]))


def test_importing_the_package_is_silent_and_leaves_logging_alone():
    script = (
        "import logging; from optimist import envs; envs.make('minatar/breakout');"
        "root = logging.getLogger(); assert not root.handlers and root.manager.disable == 0"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert logging.root.manager.disable == 0
