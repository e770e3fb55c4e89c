"""Gymnasium environments become lanes with typed frames; ends, seeds and actions stay Gymnasium's."""

import contextlib
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import optimist
from little import small
from optimist import envs
from optimist.data.transition import Spec
from optimist.envs._environment import checked_actions
from optimist.errors import RunError, UsageError
from optimist.training.evaluation import evaluate
from optimist.training.learner import Learner


class Probe(gymnasium.Env):
    """Shows its last action in every cell; terminal after `length` steps."""

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, observations, actions, length=4, render_mode=None):
        self.observation_space, self.action_space = observations, actions
        self.length, self.render_mode = length, render_mode

    def _filled(self, value):
        return np.full(self.observation_space.shape, value, self.observation_space.dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.age = 0
        return self._filled(0), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.age += 1
        return self._filled(np.max(action)), 1.0, self.age == self.length, False, {}

    def render(self):
        return np.full((6, 8, 3), self.age, np.uint8)


class Blind(Probe):
    """A probe that cannot be rendered."""

    metadata = {"render_modes": []}


class Counted(Probe):
    """A probe of two numbers; the class knows how many are open."""

    number = 0

    def __init__(self, render_mode=None):
        super().__init__(box((2,), np.float32), spaces.Discrete(3), render_mode=render_mode)
        Counted.number += 1

    def close(self):
        Counted.number -= 1


class Failing(Counted):
    def step(self, action):
        raise ValueError("no")


def probe(observations, actions=None, *, kind=Probe, lanes=1, **options):
    gymnasium.register("Probe-v0", entry_point=kind)
    try:
        actions = actions or spaces.Discrete(3)
        return envs.make("gym/Probe-v0", lanes=lanes, observations=observations, actions=actions, **options)
    finally:
        del gymnasium.registry["Probe-v0"]


def box(shape, dtype, low=0, high=1):
    return spaces.Box(low, high, shape, dtype)


def refusal(call, *arguments, **options) -> str:
    with pytest.raises(UsageError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def played_alone(seed, actions):
    """The first observation and rows (next to act on, reward, terminal, truncated, successor) of CartPole."""
    env = gymnasium.make("CartPole-v1", max_episode_steps=15)
    first, _ = env.reset(seed=seed)
    rows = []
    for action in actions:
        successor, reward, terminal, truncated, _ = env.step(int(action))
        acted_on = env.reset()[0] if terminal or truncated else successor
        rows.append((acted_on, reward, terminal, truncated and not terminal, successor))
    return first, rows


def test_cartpole_lanes_equal_gymnasium_alone():
    lanes, actions = 3, np.random.default_rng(0).integers(0, 2, (300, 3))
    env = envs.make("gym/CartPole-v1", lanes=lanes, seed=9, max_steps=15)
    assert (env.spec.frame_shape, env.spec.frame_dtype, env.spec.actions) == ((4,), "float32", 2)
    first, steps = env.reset(), [env.step(row) for row in actions]
    for lane, child in enumerate(np.random.SeedSequence(9).spawn(lanes)):
        alone_first, rows = played_alone(int(child.generate_state(1)[0]), actions[:, lane])
        np.testing.assert_array_equal(first[lane], alone_first)
        for step, row in zip(steps, rows, strict=True):
            for ours, alone in zip(step[:5], row, strict=True):
                np.testing.assert_array_equal(ours[lane], alone)
            assert step.next_allowed is None
    assert any(step.terminal.any() for step in steps) and any(step.truncated.any() for step in steps)
    assert env.encoding == "" and env.versions()["gymnasium"] == gymnasium.__version__


def test_an_action_outside_by_a_rounding_error_is_the_bound_itself():
    """The lowest action plus the width of the box may exceed the highest action by rounding."""
    spec = Spec((1,), "float32", action_low=(0.1,), action_high=(0.7,))
    beyond = np.nextafter(np.full((1, 1), 0.7, np.float32), np.float32(1))
    assert beyond > np.float32(0.7)
    np.testing.assert_array_equal(checked_actions(beyond, spec, lanes=1), np.full((1, 1), 0.7, np.float32))
    assert "outside its bounds" in refusal(checked_actions, beyond + np.float32(1e-4), spec, 1)


def test_a_robot_has_bounds_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo logs there that HalfCheetah's model has an outdated attribute
    env = envs.make("gym/HalfCheetah-v5", lanes=2)
    assert (env.spec.frame_shape, env.spec.frame_dtype) == ((17,), "float32")
    assert (env.spec.action_low, env.spec.action_high) == ((-1.0,) * 6, (1.0,) * 6)
    env.reset()
    assert "outside its bounds -1.0 to 1.0" in refusal(env.step, np.full((2, 6), 1.5))
    step = env.step(np.ones((2, 6), np.float32))
    assert step.reward.shape == (2,) and np.isfinite(step.observation).all()
    assert set(env.versions()) >= {"gymnasium", "mujoco", "numpy"}


def test_actions_are_shifted_to_the_start_of_the_set():
    env = probe(box((1,), np.float32, 0, 9), spaces.Discrete(3, start=5), lanes=3)
    env.reset()
    np.testing.assert_array_equal(env.step([0, 1, 2]).observation, [[5], [6], [7]])
    assert env.spec.named(np.array([0, 1, 2])).tolist() == [5, 6, 7]


def test_vector_actions_reach_the_environment_in_its_own_shape_and_type():
    env = probe(box((1,), np.float32), spaces.Box(-1, 1, (2, 2), np.float64))
    assert env.spec.action_low == (-1.0,) * 4
    env.reset()
    np.testing.assert_array_equal(env.step([[0.0, 0.5, 0.25, -1.0]]).observation, [[0.5]])


@pytest.mark.parametrize(
    ("observations", "actions", "part"),
    [
        (spaces.Text(5), spaces.Discrete(2), "has Text observations: supported are Box, Disc"),
        (
            spaces.Dict({"x": spaces.Tuple([spaces.Text(5)])}),
            spaces.Discrete(2),
            "has Text observations: supported are Box, Disc",
        ),
        (
            spaces.Dict({"x": box((1,), np.float32), "y": box((8, 8, 3), np.uint8)}),
            spaces.Discrete(2),
            "has an image inside its Dict observations: wrap the environment so that it shows the image",
        ),
        (box((1,), np.float32), spaces.MultiDiscrete([2, 2]), "has actions MultiDiscrete([2 2]): supp"),
        (box((1,), np.float32), spaces.MultiBinary(2), "has actions MultiBinary(2): supp"),
        (box((1,), np.float32), box((1,), np.float32, -np.inf, np.inf), "has actions Box(-inf"),
        (box((1,), np.float32), box((1,), np.int64), "has actions Box(0"),
    ],
)
def test_other_spaces_are_refused(observations, actions, part):
    assert part in refusal(probe, observations, actions)


TAXI = next(name for name in gymnasium.registry if name.startswith("Taxi-"))


class Shows(Probe):
    """A probe that shows what it is told to show."""

    def __init__(self, observations, actions, shown=None, **options):
        super().__init__(observations, actions, **options)
        self.shown = shown

    def _filled(self, value):
        return self.shown


@pytest.mark.parametrize(
    ("space", "shown", "frame", "dtype"),
    [
        (box((5, 4, 3), np.uint8), np.ones((5, 4, 3)), np.ones((5, 4, 3)), "uint8"),
        (box((5, 4), np.uint8), np.ones((5, 4)), np.ones((5, 4, 1)), "uint8"),
        (box((5, 4, 2), np.bool_), np.ones((5, 4, 2)), np.ones((5, 4, 2)), "bool"),
        (box((6,), np.bool_), np.ones(6), np.ones(6), "bool"),
        (box((6,), np.uint8), np.ones(6), np.ones(6), "float32"),
        (box((2, 3), np.float64), np.arange(6).reshape(2, 3), np.arange(6), "float32"),
        (box((), np.float32), np.array(0.5), [0.5], "float32"),
        (box((2,), np.int64), np.array([0, 1]), [0, 1], "float32"),
        (spaces.Discrete(4), 2, [0, 0, 1, 0], "bool"),
        (spaces.Discrete(3, start=5), 5, [1, 0, 0], "bool"),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 0]), [0, 1, 1, 0, 0], "bool"),
        (spaces.MultiBinary(3), np.array([1, 0, 1]), [1, 0, 1], "bool"),
        (spaces.Tuple([spaces.Discrete(2), spaces.MultiBinary(1)]), (1, np.array([1])), [0, 1, 1], "bool"),
        (
            spaces.Dict({"near": box((2,), np.float32, 0, 9), "level": spaces.Discrete(2)}),
            {"near": np.array([7.5, 3], np.float32), "level": 1},
            [0, 1, 7.5, 3],  # gymnasium sorts a Dict by its keys
            "float32",
        ),
        (
            spaces.Dict({"a": spaces.Tuple([box((1, 2), np.int64, 0, 99)]), "b": box((1,), np.uint8, 0, 9)}),
            {"a": (np.array([[40, 2]]),), "b": np.array([9], np.uint8)},
            [40, 2, 9],
            "float32",
        ),
    ],
)
def test_images_stay_and_other_spaces_become_flat_vectors_in_gymnasiums_order(space, shown, frame, dtype):
    env, frame = probe(space, kind=Shows, shown=shown), np.array([frame], dtype)
    assert (env.spec.frame_shape, env.spec.frame_dtype) == (frame.shape[1:], dtype)
    for seen in (env.reset(), env.step([0]).next_observation):
        assert seen.dtype == dtype
        np.testing.assert_array_equal(seen, frame)
    if isinstance(space, spaces.Box):
        assert env.encoding == ""
        return
    np.testing.assert_array_equal(frame[0], spaces.flatten(space, shown).astype(dtype))
    assert env.encoding.startswith("one-hot vectors of" if dtype == "bool" else "flat vectors of")


@pytest.mark.parametrize(("game", "features"), [("FrozenLake-v1", 16), (TAXI, 500), ("Blackjack-v1", 45)])
def test_games_with_numbers_for_observations_play(game, features):
    env = envs.make(f"gym/{game}", lanes=2)
    assert (env.spec.frame_shape, env.spec.frame_dtype) == ((features,), "bool")
    assert env.reset().sum() == (6 if game == "Blackjack-v1" else 2)
    assert env.step([0, 0]).reward.shape == (2,)


def test_an_old_version_warns_but_plays():
    with pytest.warns(DeprecationWarning, match="out of date"):
        env = envs.make("gym/CartPole-v0")
    assert env.reset().shape == (1, 4)


def test_a_module_that_does_not_exist_is_one_line():
    assert "No module named 'no_such_module'" in refusal(envs.make, "gym/no_such_module:Game-v0")


def test_pictures_are_of_lane_zero():
    env = probe(box((1,), np.float32), lanes=2)
    env.reset()
    env.step([0, 0])
    pixels = env.render()
    assert pixels.shape == (6, 8, 3) and pixels.dtype == np.uint8 and (pixels == 1).all()


def test_an_environment_without_pictures_says_so():
    env = probe(box((1,), np.float32), kind=Blind)
    env.reset()
    assert refusal(env.render) == "Probe-v0 cannot be rendered: it has no rgb_array mode"


def test_a_renderer_without_its_package_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    env = envs.make("gym/CartPole-v1")
    env.reset()
    assert "CartPole-v1 cannot be rendered: pygame is not installed" in refusal(env.render)


@pytest.mark.parametrize("kind", [Counted, Failing])
def test_nothing_stays_open_after_play(kind, tmp_path):
    gymnasium.register("Counted-v0", entry_point=kind)
    try:
        with contextlib.suppress(RunError):
            optimist.collect("gym/Counted-v0", out=tmp_path, agent=small("dqn"), steps=8, lanes=2, warm_up=4)
        assert Counted.number == 0
        learner = Learner(small("dqn"), envs.spec_of("gym/Counted-v0"))
        with contextlib.suppress(RunError):
            evaluate(learner, learner.init((0,)).params, "gym/Counted-v0", seeds=(0,), episodes=1)
        assert Counted.number == 0
    finally:
        del gymnasium.registry["Counted-v0"]
        Counted.number = 0
