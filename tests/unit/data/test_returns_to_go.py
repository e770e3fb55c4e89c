"""The returns-to-go of a log are those of a loop that walks each episode backwards."""

import numpy as np
import pytest

from little import vectors
from optimist.data import from_arrays, views
from optimist.data.views import logged_values


def by_loops(data, gamma, clip=None, scale=1.0):
    """Every return-to-go, and the weight of what follows the log; rewards as they are trained."""
    timeline, returns, weights = data.timeline, [], []
    for start, stop in zip(data.starts, data.stops, strict=True):
        total, weight = 0.0, float(not timeline.terminal[stop - 1])
        for step in reversed(range(start, stop)):
            reward = scale * float(timeline.reward[step])
            reward = reward if clip is None else max(-clip, min(clip, reward))
            total, weight = reward + gamma * total, gamma * weight
            returns.append(total)
            weights.append(weight)
    return np.array(returns), np.array(weights)


@pytest.mark.parametrize(("gamma", "clip", "scale"), [(0.99, None, 1.0), (0.9, 0.5, 2.0), (1.0, None, 0.1)])
@pytest.mark.parametrize("block", [7, 2**20])
def test_of_episodes_with_an_end_they_are_the_loops(gamma, clip, scale, block, monkeypatch):
    monkeypatch.setattr(views, "RETURNS_AT_ONCE", block)
    data = vectors()
    returns, _ = by_loops(data, gamma, clip, scale)
    found = logged_values(data, gamma, clip=clip, scale=scale)
    np.testing.assert_allclose(found, (returns.mean(), np.abs(returns).max()))


@pytest.mark.parametrize("block", [7, 2**20])
def test_what_follows_a_log_without_an_end_counts_as_the_mean(block, monkeypatch):
    monkeypatch.setattr(views, "RETURNS_AT_ONCE", block)
    data = vectors().first(150)
    returns, weights = by_loops(data, 0.95)
    assert 0 < (weights > 0).sum() < len(weights)
    found = logged_values(data, 0.95)
    assert np.mean(returns + weights * found.mean) == pytest.approx(found.mean)
    assert np.abs(returns + weights * found.mean).max() == pytest.approx(found.largest)


def one_reward(steps, truncations):
    """Play without an end, in which every step pays 1."""
    never = np.zeros(steps, bool)
    return from_arrays(
        np.zeros((steps, 2)), np.zeros(steps, int), np.ones(steps), never, truncations=truncations
    )


def test_windows_of_endless_play_are_worth_the_endless_sum():
    """Ten steps of reward 1 at a time, never an end: each state is worth 1 / (1 - gamma), not the 9.6 that a
    window shows. A bound of 9.6 would take a correct agent for a diverged one."""
    data = one_reward(200, np.arange(200) % 10 == 9)
    np.testing.assert_allclose(logged_values(data, 0.99), (100, 100))


def test_without_discount_and_without_an_end_only_the_logged_rewards_count():
    data = one_reward(8, np.zeros(8, bool))  # the last row has no successor and is no step
    assert logged_values(data, 1.0) == (4.0, 7.0)


def test_negative_returns_count_by_their_size():
    ends = np.array([False, False, True])
    data = from_arrays(np.zeros((3, 2)), np.zeros(3, int), np.array([1.0, -1, -2]), ends, truncations=False)
    assert logged_values(data, 1.0) == (-7 / 3, 3.0)
    assert logged_values(data, 1.0, clip=0.5).largest == 1.0
    assert logged_values(data, 0.0) == (-2 / 3, 2.0)
