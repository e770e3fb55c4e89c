"""The rewards as training sees them: the lines that say how they are clipped, and that suggest a scale."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optimist.data.views import View

LARGE = 1_000.0  # values above this are learned slowly
GOOD = 100.0  # the suggested scale makes values at most this large


def extremes(logs: Sequence[View]) -> tuple[float, float]:
    """The lowest and the highest reward in these logs."""
    found = [part for log in logs for part in _range_extremes(log)]
    return float(min(low for low, _ in found)), float(max(high for _, high in found))


def _range_extremes(log: View) -> list[tuple[float, float]]:
    reward, borders = log.timeline.reward, log.borders()
    return [
        (np.minimum.reduceat(reward, borders)[::2].min(), np.maximum.reduceat(reward, borders)[::2].max())
    ]


def value_size(logs: Sequence[View], gamma: float) -> float:
    """The size of the values that have to be learned: the discounted sum of an episode's mean reward, larger
    than in 99 of 100 episodes."""
    sizes = []
    for log in logs:
        lengths = log.episodes.lengths
        horizon = lengths if gamma == 1 else (1 - gamma**lengths) / (1 - gamma)
        sizes.append(np.abs(log.episodes.returns / lengths * horizon))
    return float(np.quantile(np.concatenate(sizes), 0.99))


def remarks(logs: Sequence[View], training: Any) -> list[str]:
    """What to know about the rewards before a training begins."""
    logs = list({log.fingerprint: log for log in logs}.values())
    scale, clip = training.reward_scale, training.clip_rewards
    low, high = (scale * extreme for extreme in extremes(logs))
    if clip is not None:
        changed = max(-low, high) > clip
        line = f"rewards {low:g} to {high:g} are clipped to +-{clip:g}; --clip-rewards none keeps them"
        return [line] if changed else []
    size = value_size(logs, training.gamma)
    if scale != 1 or size <= LARGE:
        return []
    suggested = 10.0 ** -math.ceil(math.log10(size / GOOD))
    line = f"rewards {low:g} to {high:g} make values of about {size:,.0f}, which are learned slowly; "
    return [line + f"try --reward-scale {suggested:g}"]
