"""What every family of environments promises: seeds, lanes, resets, ends and refusals."""

import numpy as np
import pytest

from optimist import envs
from optimist.envs import make_lanes
from optimist.errors import UsageError

GAMES = ("minatar/breakout", "minatar_jax/breakout", "mujoco/Hopper", "gym/CartPole-v1", "atari/Breakout")
every_game = pytest.mark.parametrize("name", GAMES)


def any_actions(play: envs.Environment, steps: int, seed: int = 5) -> np.ndarray:
    """(steps, lanes, ...)."""
    random, spec = np.random.default_rng(seed), play.spec
    if spec.discrete:
        return random.integers(0, spec.actions, (steps, play.lanes))
    size = (steps, play.lanes, *spec.action_shape)
    return random.uniform(spec.action_low, spec.action_high, size).astype(np.float32)


def played(play: envs.Environment, actions: np.ndarray) -> list[np.ndarray]:
    """Every array from a reset on."""
    arrays = [play.reset()]
    for row in actions:
        arrays += play.step(row)[:5]
    return arrays


def same(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True))


@every_game
def test_the_seed_decides_lanes_differ_and_streams_go_on_after_a_reset(name):
    first, again, other = (envs.make(name, lanes=2, seed=seed) for seed in (1, 1, 2))
    actions = np.repeat(any_actions(first, 60)[:, :1], 2, axis=1)
    arrays = played(first, actions)
    assert same(arrays, played(again, actions)) and not same(arrays, played(other, actions))
    assert any((array[0] != array[1]).any() for array in arrays)
    assert not same(arrays, played(first, actions))


@every_game
def test_a_lane_plays_the_same_in_any_company(name):
    together, alone = make_lanes(name, [7, 8, 9]), make_lanes(name, [8])
    actions = any_actions(together, 60)
    ours = [array[1:2] for array in played(together, actions)]
    assert same(ours, played(alone, actions[:, 1:2]))


@every_game
def test_a_step_stays_what_it_was_when_the_next_is_played(name):
    play = envs.make(name, lanes=2)
    actions = any_actions(play, 40)
    arrays = [play.reset(), *play.step(actions[0])[:5]]
    copies = [array.copy() for array in arrays]
    for row in actions[1:]:
        play.step(row)
    assert same(arrays, copies)


@every_game
def test_a_time_limit_truncates_and_an_episode_that_ends_just_then_is_terminal_only(name):
    def ends(max_steps: int) -> list[tuple[bool, bool]]:
        play = envs.make(name, seed=3, max_steps=max_steps)
        play.reset()
        steps = [play.step(row) for row in any_actions(play, min(max_steps, 1_000))]
        return [(bool(step.terminal[0]), bool(step.truncated[0])) for step in steps]

    length = ends(max_steps=1_500).index((True, False)) + 1
    assert ends(max_steps=length)[-1] == (True, False)
    *before, last = ends(max_steps=length - 1)
    assert last == (False, True) and not any(map(any, before))


@every_game
def test_mistakes_are_refused_in_one_line(name):
    play = envs.make(name, lanes=2)
    right = any_actions(play, 1)[0]
    with pytest.raises(UsageError, match=r"call reset\(\) before the first step\(\)"):
        play.step(right)
    play.reset()
    with pytest.raises(UsageError, match=r"actions have shape \(1,.*this environment takes \(2,"):
        play.step(right[:1])
    with pytest.raises(UsageError, match="in lane 1.* is (not one of|outside its bounds)"):
        play.step(np.stack([right[0], right[1] + 9]))
    with pytest.raises(UsageError, match="max_(episode_)?steps"):
        envs.make(name, max_steps=0)
