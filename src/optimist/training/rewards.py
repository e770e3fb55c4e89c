"""The rewards as training sees them: their scale, and the lines that say how they are changed."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optimist.agents._agent import Agent
from optimist.data.views import View

# Measured with a choice between rewards of k and 0.8 k: REM learns it in 10,000 updates for k up to 300, not
# for 1,000; DQN and TD3 for k up to 1,000. For k up to 10 all of them learn it in 2,000 updates.
LARGE = 500.0
GOOD = 10.0
# Discrete IQL on a narrow CartPole log whose values are about 100 (docs/results/narrow-log): five seeds play
# 326 of 500 on average. With a tenth of the rewards, or of the temperature, all five play 500: in an
# exponent, the errors of large values decide which actions are imitated.
LARGE_IN_AN_EXPONENT = 30.0
# A Huber loss counts what a reward has above 1 too little, but rewards of a hundredth are lost in what a
# network says at first. Measured with one simulated log of a shop, one seed: 20,000 steps, one reward of
# 2,030 and a mean of 300 where something was paid. With 0.0001, by which the largest reward is below 1, DQN
# and BCQ gained a tenth of what there was to gain in 4,000 updates; with 0.001, which leaves 3% of the
# rewards' sum above 1, half of it.
UNCOUNTED = 0.05


def extremes(logs: Sequence[View]) -> tuple[float, float]:
    """The lowest and the highest reward in these logs."""
    rewards = [(log.timeline.reward, log.borders()) for log in logs]
    low = min(np.minimum.reduceat(*each)[::2].min() for each in rewards)
    high = max(np.maximum.reduceat(*each)[::2].max() for each in rewards)
    return float(low), float(high)


def value_size(logs: Sequence[View], gamma: float) -> float:
    """The size of the values that have to be learned: the discounted sum of an episode's mean reward, larger
    than in 99 of 100 episodes."""
    sizes = []
    for log in logs:
        lengths = log.episodes.lengths
        horizon = lengths if gamma == 1 else (1 - gamma**lengths) / (1 - gamma)
        sizes.append(np.abs(log.episodes.returns / lengths * horizon))
    return float(np.quantile(np.concatenate(sizes), 0.99))


def suggested_scale(logs: Sequence[View], gamma: float, agent: Agent) -> float:
    """The power of ten by which rewards are best multiplied: 1 unless they are too large for this agent."""
    return _suggestion(logs, gamma, agent)[0]


def _suggestion(logs: Sequence[View], gamma: float, agent: Agent) -> tuple[float, str]:
    """The scale of rewards, and the reason for it."""
    (low, high), size = extremes(logs), value_size(logs, gamma)
    largest, huber = max(-low, high), getattr(agent, "huber_loss", False)
    if size > LARGE:
        most = min(GOOD / size, _counted_scale(logs, largest) if huber else math.inf)
        return _scale(most), f"they sum to about {size:,.0f}, which is learned slowly"
    if getattr(agent, "weighs_by_exponent", False) and size > LARGE_IN_AN_EXPONENT:
        return _scale(GOOD / size), f"they sum to about {size:,.0f}, too much for its exponential weights"
    if huber and largest > 1 and low != high:
        return _counted_scale(logs, largest), "in a Huber loss a rare reward above 1 counts too little"
    return 1.0, ""


def remarks(logs: Sequence[View], training: Any, agent: Agent, asked: Any = None) -> list[str]:
    """What to know about the rewards before a training begins; `asked` is the training before its "auto" was
    replaced."""
    logs = list({log.fingerprint: log for log in logs}.values())
    scale, clip = training.reward_scale, training.clip_rewards
    low, high = extremes(logs)
    if clip is not None:
        changes = max(-low, high) * scale > clip
        rewards = f"rewards {scale * low:g} to {scale * high:g}"
        return [f"{rewards} are clipped to +-{clip:g}; --clip-rewards none keeps them"] * changes
    best, why = _suggestion(logs, training.gamma, agent)
    if best == 1 or asked is not None and asked.reward_scale == scale != 1:
        return []
    rewards = f"rewards {low:g} to {high:g}"
    if scale == 1:
        return [f"{rewards}: {why}; try --reward-scale {best:g}"]
    return [f"{rewards} are multiplied by {scale:g}, because {why}; --reward-scale 1 keeps them"]


def _counted_scale(logs: Sequence[View], largest: float) -> float:
    """The largest power of ten, at most 1, at which a Huber loss counts the rewards almost whole."""
    scale = _scale(1 / largest)
    while scale < 1 and _share_above(logs, 1 / _scale(10 * scale)) <= UNCOUNTED:
        scale = _scale(10 * scale)
    return scale


def _share_above(logs: Sequence[View], limit: float) -> float:
    """The share of the sum of the rewards, in absolute value, by which they exceed the limit."""
    above = total = 0.0
    for log in logs:
        sizes = np.abs(log.timeline.reward, dtype=np.float64)
        total += np.add.reduceat(sizes, log.borders())[::2].sum()
        above += np.add.reduceat(np.maximum(sizes - limit, 0), log.borders())[::2].sum()
    return above / total


def _scale(most: float) -> float:
    """The largest power of ten that is at most this."""
    return 10.0 ** math.floor(math.log10(most) + 1e-9)
