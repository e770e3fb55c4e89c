"""Each lane of MinAtar plays exactly like the package alone with the same seed."""

import sys

import numpy as np
import pytest

from optimist import envs
from optimist.data import Spec
from optimist.envs import minatar

SIZES = {  # channels and minimal actions
    "asterix": (4, 5),
    "breakout": (4, 3),
    "freeway": (7, 3),
    "seaquest": (10, 6),
    "space_invaders": (6, 4),
}


@pytest.fixture
def package(monkeypatch):
    """MinAtar's own class of a game, without the plotting libraries, which take long to import."""
    for name in ("matplotlib", "seaborn"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("logging.warning", lambda _: None)  # that they are missing
    from minatar import Environment

    return Environment


@pytest.mark.parametrize("game", minatar.games())
def test_a_lane_is_the_package_alone(game, package):
    """Beside another one, through resets and truncations."""
    play = envs.make(f"minatar/{game}", lanes=2, seed=5, max_steps=60)
    channels, count = SIZES[game]
    assert play.spec == Spec((10, 10, channels), "bool", actions=count)
    alone, age, ends = package(game), 0, 0
    alone.seed(envs.lane_seeds(5, 2)[1])
    alone.reset()
    np.testing.assert_array_equal(play.reset()[1], alone.state())
    for action in np.random.default_rng(0).integers(0, count, 400):
        step, age = play.step([0, action]), age + 1
        reward, terminal = alone.act(alone.minimal_action_set()[action])
        ended = (reward, terminal, age == 60 and not terminal)
        assert (step.reward[1], step.terminal[1], step.truncated[1]) == ended and step.next_allowed is None
        np.testing.assert_array_equal(step.next_observation[1], alone.state())
        if any(ended[1:]):
            alone.reset()
            age, ends = 0, ends + 1
        np.testing.assert_array_equal(step.observation[1], alone.state())
    assert ends > 3


def test_a_game_is_made_without_the_imports_of_its_package(monkeypatch):
    monkeypatch.delitem(sys.modules, "minatar", raising=False)
    minatar.authors_game("breakout")
    assert "minatar" not in sys.modules


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
