"""The rewards as training sees them: their scale, and the lines that say how they are changed."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from optimist.agents._agent import Agent
from optimist.data.returns_to_go import logged_values
from optimist.data.views import View

# A reward is an outlier if it is so many times as large as every smaller one: among purchases of 10 to 1,000
# a mistyped 1,000,000. Two of nearly one size are none: rare large rewards are the point of many logs.
APART = 1_000.0
ENOUGH, FEW = 100, 10  # rewards without which nothing is an outlier, and most outliers


class Outlier(NamedTuple):
    """A reward that is far larger than all others."""

    reward: float
    row: int
    limit: float  # the largest size of the others


def outlier(logs: Sequence[View]) -> Outlier | None:
    """The largest reward, if it is more than APART times as large as every other that is not one itself."""
    rows = np.concatenate([log.steps() for log in different(logs)])
    reward = np.concatenate([log.timeline.reward[log.steps()] for log in different(logs)])
    if len(rows) < ENOUGH:
        return None
    top = np.argpartition(-np.abs(reward), FEW)[: FEW + 1]
    top = top[np.argsort(-np.abs(reward[top]))]
    sizes, last = np.abs(reward[top]).astype(float), 0
    while last < FEW and sizes[last] > APART * sizes[last + 1] > 0:
        last += 1
    return Outlier(float(reward[top[0]]), int(rows[top[0]]), float(sizes[last])) if last else None


def different(logs: Sequence[View]) -> list[View]:
    return list({log.fingerprint: log for log in logs}.values())


def extremes(logs: Sequence[View], limit: float = math.inf) -> tuple[float, float]:
    """The lowest and the highest reward in these logs, of rewards up to the limit."""
    rewards = [(log.timeline.reward, log.borders()) for log in logs]
    low = min(np.minimum.reduceat(*each)[::2].min() for each in rewards)
    high = max(np.maximum.reduceat(*each)[::2].max() for each in rewards)
    return max(float(low), -limit), min(float(high), limit)


def value_size(logs: Sequence[View], gamma: float, limit: float = math.inf) -> float:
    """The size of the values that have to be learned: of the discounted sums of the episodes' mean rewards,
    what 99 of 100 do not exceed, or their root mean square if a few are so large that it is larger."""
    sizes = []
    for log in logs:
        lengths = log.episodes.lengths
        horizon = lengths if gamma == 1 else (1 - gamma**lengths) / (1 - gamma)
        rewards = np.clip(log.timeline.reward, -limit, limit).astype(np.float64)
        returns = np.add.reduceat(rewards, log.borders())[::2]
        sizes.append(np.abs(returns / lengths * horizon))
    found = np.concatenate(sizes)
    return float(max(np.quantile(found, 0.99), np.sqrt((found**2).mean())))


def suggested_scale(
    logs: Sequence[View], gamma: float, agent: Agent, limit: float = math.inf
) -> tuple[float, str]:
    """The round factor that gives values the size at which this agent learns best, and the reason. Rewards
    beyond the limit count as the limit."""
    ends = getattr(agent, "largest_value", None)
    if ends is not None:
        largest = max(logged_values(log, gamma, clip=limit).largest for log in logs)
        why = f"they sum to up to {largest:,.4g}, and the values of this agent end at {ends:g}"
        return (_rounded(ends / largest, down=True), why) if largest else (1.0, "")
    size, best = value_size(logs, gamma, limit), agent.best_value_size
    why = f"they sum to about {size:,.3g}, and this agent learns best from sums of about {best:g}"
    return (_rounded(best / size), why) if size else (1.0, "")


def suggested_limit(logs: Sequence[View], scale: float, limit: float = math.inf) -> float:
    """The power of ten, at least 1, up to which a Huber loss must count errors squared: there it learns the
    mean of the rewards, and above it something near their median, which overlooks a rare large reward."""
    largest = scale * _largest(logs, limit)
    return max(1.0, 10.0 ** math.ceil(math.log10(max(1.0, largest)) - 1e-6))


def remarks(logs: Sequence[View], training: Any, agent: Agent, asked: Any = None) -> list[str]:
    """What to know about the rewards before a training begins; `asked` is the training before its "auto" was
    replaced."""
    logs, scale, clip = different(logs), training.reward_scale, training.clip_rewards
    odd, limit, lines = outlier(logs) if clip is not None else None, math.inf, []
    if odd and math.isclose(clip, scale * odd.limit, rel_tol=1e-3):
        limit = odd.limit
        lines.append(
            f"the reward {odd.reward:g} in row {odd.row:,} is more than {APART:,.0f} times as large as all "
            f"others: it counts as {limit:g}; mend the row, or count it whole with --clip-rewards none"
        )
    elif clip is not None:
        low, high = (scale * each for each in extremes(logs))
        words = f"rewards {low:g} to {high:g} are clipped to +-{clip:g}; --clip-rewards none keeps them"
        return [words] * (max(-low, high) > clip)
    low, high = extremes(logs, limit)
    best, why = suggested_scale(logs, training.gamma, agent, limit)
    if scale == best != 1:
        words = f"rewards {low:g} to {high:g} are multiplied by {scale:g}"
        lines.append(f"{words}, because {why}; --reward-scale 1 keeps them")
    elif scale == 1 != best:
        lines.append(f"rewards {low:g} to {high:g}: {why}; try --reward-scale {best:g}")
    return [*lines, *_limit_remarks(logs, scale, agent, limit)]


def _limit_remarks(logs: Sequence[View], scale: float, agent: Agent, most: float) -> list[str]:
    """What to know about the limit of a Huber loss."""
    limit, best = getattr(agent, "huber_limit", None), suggested_limit(logs, scale, most)
    if limit is None or limit == best == 1:
        return []
    if limit < best:
        words = f"errors above {limit:g} count linearly, so a rare reward above it counts too little"
        return [f"{words}; try --huber-limit {best:g}"]
    why = f", because of rewards up to {scale * _largest(logs, most):g}" if limit == best else ""
    return [f"errors up to {limit:g} count squared{why}; --huber-limit 1 is the published loss"]


def _largest(logs: Sequence[View], limit: float) -> float:
    low, high = extremes(logs, limit)
    return max(-low, high)


def _rounded(number: float, down: bool = False) -> float:
    """The nearest of 1, 2, 5, 10, 20, 50 and so on, or the largest of them that is at most the number."""
    power = math.floor(math.log10(number))
    steps = [float(f"{digit}e{power}") for digit in (1, 2, 5, 10)]
    if down:
        return max(step for step in steps if step <= number * (1 + 1e-6))
    return min(steps, key=lambda step: abs(math.log(step / number)))
