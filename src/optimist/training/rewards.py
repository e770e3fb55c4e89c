"""The rewards as training sees them: their scale, and the lines that say how they are changed."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optimist.agents._agent import Agent
from optimist.agents._table_agent import ValueAgent
from optimist.data.returns_to_go import logged_values
from optimist.data.views import View

# Measured with a choice between rewards of k and 0.8 k: REM learns it in 10,000 updates for k up to 300, not
# for 1,000; DQN and TD3 for k up to 1,000. For k up to 10 all of them learn it in 2,000 updates.
LARGE = 500.0
GOOD = 10.0
# Value agents, on six simulated logs (docs/results/reward-scale): what a network says at first, and a step of
# its optimiser, are not divided with the rewards, so small values are lost in them. DQN, CQL, REM, discrete
# BCQ and QR-DQN learn worse with values of 3 than of 30 to 300, and REM and QR-DQN learn more slowly above.
MOST = 300.0
# Discrete IQL on a narrow CartPole log whose values are about 100 (docs/results/narrow-log): five seeds play
# 326 of 500 on average. With a tenth of the rewards, or of the temperature, all five play 500: in an
# exponent, the errors of large values decide which actions are imitated.
LARGE_IN_AN_EXPONENT = 30.0


def extremes(logs: Sequence[View]) -> tuple[float, float]:
    """The lowest and the highest reward in these logs."""
    rewards = [(log.timeline.reward, log.borders()) for log in logs]
    low = min(np.minimum.reduceat(*each)[::2].min() for each in rewards)
    high = max(np.maximum.reduceat(*each)[::2].max() for each in rewards)
    return float(low), float(high)


def value_size(logs: Sequence[View], gamma: float) -> float:
    """The size of the values that have to be learned: of the discounted sums of the episodes' mean rewards,
    what 99 of 100 do not exceed, or their root mean square if a few are so large that it is larger."""
    sizes = []
    for log in logs:
        lengths = log.episodes.lengths
        horizon = lengths if gamma == 1 else (1 - gamma**lengths) / (1 - gamma)
        sizes.append(np.abs(log.episodes.returns / lengths * horizon))
    found = np.concatenate(sizes)
    return float(max(np.quantile(found, 0.99), np.sqrt((found**2).mean())))


def suggested_scale(logs: Sequence[View], gamma: float, agent: Agent) -> float:
    """The power of ten by which rewards are best multiplied: 1 unless they are too large for this agent."""
    return _suggestion(logs, gamma, agent)[0]


def suggested_limit(logs: Sequence[View], scale: float) -> float:
    """The power of ten, at least 1, up to which a Huber loss must count errors squared: there it learns the
    mean of the rewards, and above it something near their median, which overlooks a rare large reward."""
    return max(1.0, 10.0 ** math.ceil(math.log10(max(1.0, scale * _largest(logs))) - 1e-6))


def _suggestion(logs: Sequence[View], gamma: float, agent: Agent) -> tuple[float, str]:
    """The scale of rewards, and the reason for it."""
    ends = getattr(agent, "largest_value", None)
    if ends is not None:
        largest = max(logged_values(log, gamma).largest for log in logs)
        why = f"they sum to up to {largest:,.4g}, and the values of this agent end at {ends:g}"
        return (_scale(ends / largest), why) if largest > ends else (1.0, "")
    size, exponent = value_size(logs, gamma), getattr(agent, "weighs_by_exponent", False)
    most, good = (MOST, MOST) if isinstance(agent, ValueAgent) and not exponent else (LARGE, GOOD)
    if size > most:
        return _scale(good / size), f"they sum to about {size:,.0f}, which is learned slowly"
    if exponent and size > LARGE_IN_AN_EXPONENT:
        return _scale(GOOD / size), f"they sum to about {size:,.0f}, too much for its exponential weights"
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
    limits = _limit_remarks(logs, scale, agent)
    if best == 1 or asked is not None and asked.reward_scale == scale != 1:
        return limits
    rewards = f"rewards {low:g} to {high:g}"
    if scale == 1:
        return [f"{rewards}: {why}; try --reward-scale {best:g}", *limits]
    return [f"{rewards} are multiplied by {scale:g}, because {why}; --reward-scale 1 keeps them", *limits]


def _limit_remarks(logs: Sequence[View], scale: float, agent: Agent) -> list[str]:
    """What to know about the limit of a Huber loss."""
    limit, best = getattr(agent, "huber_limit", None), suggested_limit(logs, scale)
    if limit is None or limit == best == 1:
        return []
    if limit < best:
        words = f"errors above {limit:g} count linearly, so a rare reward above it counts too little"
        return [f"{words}; try --huber-limit {best:g}"]
    largest = f"because of rewards up to {scale * _largest(logs):g}"
    return [f"errors up to {limit:g} count squared, {largest}; --huber-limit 1 is the published loss"]


def _largest(logs: Sequence[View]) -> float:
    low, high = extremes(logs)
    return max(-low, high)


def _scale(most: float) -> float:
    """The largest power of ten that is at most this."""
    return 10.0 ** math.floor(math.log10(most) + 1e-9)
