"""Discounted returns-to-go: what the logged play earned from each of its steps on."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from optimist.data.views import View

BLOCK = 2**20  # steps that are summed at once, so that a long log needs little memory
NEGLIGIBLE = 1e-9  # a weight below which further rewards are left out


class LoggedValues(NamedTuple):
    """The discounted returns-to-go of a log, in numbers."""

    mean: float
    largest: float  # in size: of -5 and 3 it is 5


def returns_to_go(view: View, gamma: float, *, clip: float | None = None) -> np.ndarray:
    """The discounted sum of rewards from each step to the end of its range, (n,)."""
    return np.concatenate([returns for returns, _ in _blocks(view, gamma, clip, 1.0)])


def logged_values(view: View, gamma: float, *, clip: float | None = None, scale: float = 1.0) -> LoggedValues:
    """The mean and the largest return-to-go, of rewards scaled and then clipped as in training.

    An episode whose end is not in the log goes on unseen: what follows counts as the mean return-to-go. That
    mean is the solution of mean = (sum of logged rewards + mean * sum of weights of what follows) / steps."""
    total, unseen, largest = 0.0, 0.0, 0.0
    for returns, following in _blocks(view, gamma, clip, scale):
        total += returns.sum()
        unseen += following.sum()
        largest = max(largest, float(np.abs(returns).max()))
    seen = len(view) - unseen
    if unseen == 0 or seen <= NEGLIGIBLE * len(view):  # without discount and without an end, nothing is known
        return LoggedValues(total / len(view), largest)
    mean = total / seen
    whole = (returns + mean * following for returns, following in _blocks(view, gamma, clip, scale))
    return LoggedValues(mean, max(float(np.abs(each).max()) for each in whole))


def _blocks(
    view: View, gamma: float, clip: float | None, scale: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Of each step the discounted sum of its range's rewards from there on, and the weight of what follows
    the range: 0 if the range ends with a terminal step."""
    first, ranges = 0, len(view.starts)
    while first < ranges:
        last = max(
            first + 1, int(np.searchsorted(view.offsets, view.offsets[first] + BLOCK, side="right")) - 1
        )
        positions = np.arange(view.offsets[first], view.offsets[last])
        number = view.ranges_at(positions)
        steps, stop = view.steps_at(positions), view.stops[number]
        rewards = scale * view.timeline.reward[steps].astype(np.float64)
        rewards = rewards if clip is None else np.clip(rewards, -clip, clip)
        left = stop - steps
        yield _sums(rewards, left, gamma), gamma**left * ~view.timeline.terminal[stop - 1]
        first = last


def _sums(rewards: np.ndarray, left: np.ndarray, gamma: float) -> np.ndarray:
    """Discounted sums over the `left` steps that a range still has, by doubling: the sum over 2n steps is the
    sum over n plus gamma^n times the sum over n that begins n steps later."""
    sums, steps, weight = rewards.copy(), 1, gamma
    while steps < left.max() and weight > NEGLIGIBLE:
        sums[:-steps] += np.where(left[:-steps] > steps, weight * sums[steps:], 0)
        steps, weight = 2 * steps, weight * weight
    return sums
