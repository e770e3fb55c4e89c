"""The rewards as training sees them: the lines that say how they are clipped, and that suggest a scale."""

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


def remarks(logs: Sequence[View], training: Any, agent: Agent) -> list[str]:
    """What to know about the rewards before a training begins."""
    logs = list({log.fingerprint: log for log in logs}.values())
    scale, clip = training.reward_scale, training.clip_rewards
    low, high = (scale * extreme for extreme in extremes(logs))
    rewards, largest = f"rewards {low:g} to {high:g}", max(-low, high)
    if clip is not None:
        return [f"{rewards} are clipped to +-{clip:g}; --clip-rewards none keeps them"] * (largest > clip)
    if scale != 1:
        return []
    size, huber = value_size(logs, training.gamma), getattr(agent, "huber_loss", False)
    if size > LARGE:
        suggested = _scale(min(GOOD / size, 1 / largest if huber else math.inf))
        return [
            f"{rewards} sum to about {size:,.0f}, which is learned slowly; try --reward-scale {suggested:g}"
        ]
    if huber and largest > 1 and low != high:
        why = "in a Huber loss errors above 1 count less, so that a rare large reward counts too little"
        return [f"{rewards}: {why}; try --reward-scale {_scale(1 / largest):g}"]
    return []


def _scale(most: float) -> float:
    """The largest power of ten that is at most this."""
    return 10.0 ** math.floor(math.log10(most) + 1e-9)
