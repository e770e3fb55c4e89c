"""Environments are found by name; a wrong name, option or action raises an error of one helpful line."""

import sys

import numpy as np
import pytest

from optimist import envs
from optimist.data.transition import Spec
from optimist.envs import minatar
from optimist.envs._environment import checked_actions
from optimist.errors import UsageError

# JAX programs take seconds to compile, and emulators a quarter of a second to start. test_minatar_jax.py and
# test_atari.py play all of their games; one of Atari's is played here too.
PLAYED_ELSEWHERE = [
    name
    for name in envs.available()
    if name.startswith(("minatar_jax/", "atari/")) and name != "atari/Breakout"
]
DISCRETE = Spec((4,), "float32", actions=3)
VECTOR = Spec((4,), "float32", action_low=(-1.0, -2.0), action_high=(1.0, 2.0))


def refusal(call, *arguments, **options) -> str:
    with pytest.raises(UsageError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", [name for name in envs.available() if name not in PLAYED_ELSEWHERE])
def test_every_available_environment_plays(name):
    env = envs.make(name, lanes=2, seed=1)
    assert (env.name, env.lanes) == (name, 2)
    first = env.reset()
    assert first.shape == (2, *env.spec.frame_shape) and first.dtype == env.spec.frame_dtype
    step = env.step(np.zeros((2, *env.spec.action_shape), env.spec.action_dtype))
    for frames in (step.observation, step.next_observation):
        assert frames.shape == first.shape and frames.dtype == first.dtype
    assert [array.dtype.name for array in step[1:4]] == ["float32", "bool", "bool"]
    assert [array.shape for array in step[1:4]] == [(2,)] * 3
    assert all(env.versions().values())
    env.close()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "breakout",
            '"breakout" is not of the form family/game: did you mean atari/Breakout, minatar/breakout or '
            "minatar_jax/breakout?",
        ),
        ("cartpole", '"cartpole" is not of the form family/game: did you mean gym/CartPole-v1?'),
        ("zzz", '"zzz" is not of the form family/game: optimist environments lists them'),
        ("brekout", '"brekout" is not of the form family/game: did you mean "atari/Breakout"?'),
        ("Minatar/pong", 'there is no environment family "Minatar": did you mean "minatar"?'),
        ("minatar/Breakout", 'no environment "minatar/Breakout": did you mean "breakout"?'),
        ("minatar/x", 'no environment "minatar/x": known: ' + ", ".join(minatar.games())),
        ("gym/CartPole", 'no environment "gym/CartPole": did you mean "CartPole-v1"?'),
        ("mujoco/hopper", 'no environment "mujoco/hopper": did you mean "Hopper"?'),
        ("gym/cartpole-v1", 'no environment "gym/cartpole-v1": did you mean "CartPole-v1"?'),
        (
            "_lanes/breakout",
            f'there is no environment family "_lanes": known: {", ".join(envs.families())}, '
            "or your own as module:Name",
        ),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name, message):
    assert refusal(envs.make, name) == message


def test_unknown_options_and_senseless_numbers_are_refused():
    expected = 'no environment option "max_step": did you mean "max_steps"?'
    assert refusal(envs.make, "minatar/breakout", max_step=5) == expected
    assert "max_steps=0" in refusal(envs.make, "minatar/breakout", max_steps=0)
    assert "cannot be made" in refusal(envs.make, "gym/CartPole-v1", max_steps=0)
    assert "gravity" in refusal(envs.make, "gym/CartPole-v1", gravity=5)
    assert "lanes=0" in refusal(envs.make, "minatar/breakout", lanes=0)
    assert "seed=-1" in refusal(envs.make, "minatar/breakout", seed=-1)


@pytest.mark.parametrize(
    ("name", "module", "message"),
    [
        ("minatar/breakout", "minatar", 'minatar is not installed: pip install "optimist-rl[minatar]"'),
        ("gym/CartPole-v1", "gymnasium", 'gymnasium is not installed: pip install "optimist-rl[gym]"'),
        ("mujoco/Hopper", "mujoco", 'mujoco is not installed: pip install "optimist-rl[mujoco]"'),
        ("mujoco/Hopper", "gymnasium", 'gymnasium is not installed: pip install "optimist-rl[mujoco]"'),
    ],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, name, module, message):
    monkeypatch.setitem(sys.modules, module, None)
    assert refusal(envs.make, name) == message


@pytest.mark.parametrize(
    ("actions", "spec", "part"),
    [
        ([0], DISCRETE, "shape (1,)"),
        ([[0, 1]], DISCRETE, "shape (1, 2)"),
        ([0.0, 1.0], DISCRETE, "float64"),
        ([True, False], DISCRETE, "bool"),
        ([0, 3], DISCRETE, "action 3 in lane 1 is not one of 0 to 2"),
        ([-1, 0], DISCRETE, "action -1 in lane 0"),
        ([0.0, 0.0], VECTOR, "shape (2,)"),
        ([["a", "b"]], VECTOR, "type <U1"),
        ([[0.0, np.nan]], VECTOR, "action nan in lane 0, part 1"),
        ([[np.inf, 0.0]], VECTOR, "action inf in lane 0, part 0"),
        ([[0.0, 2.1]], VECTOR, "outside its bounds -2.0 to 2.0"),
    ],
)
def test_bad_actions_are_refused(actions, spec, part):
    assert part in refusal(checked_actions, actions, spec, 2 if spec.discrete else 1)


def test_good_actions_pass_unchanged():
    np.testing.assert_array_equal(checked_actions([2, 0], DISCRETE, 2), [2, 0])
    passed = checked_actions([[-1.0, 2.0]], VECTOR, 1)
    assert passed.dtype == np.float32
    np.testing.assert_array_equal(passed, [[-1.0, 2.0]])


@pytest.mark.parametrize(
    ("name", "game"),
    [
        ("atari/Breakout", "Breakout"),
        ("atari/Breakout?no_ops=30", "Breakout?no_ops=30"),
        ("gym/my_package:Line-v0", "my_package:Line-v0"),
        ("my_package:Corridor/short?length=4", "short?length=4"),
        ("/home/me/keen.py:Corridor/short", "short"),
        ("/home/me/keen.py:Corridor/short?length=4", "short?length=4"),
        ("breakout", ""),
    ],
)
def test_the_game_of_a_name_has_no_family(name, game):
    """The path of a file was a part of it, so that {game} in a study named no log."""
    assert envs.game_of(name) == game
