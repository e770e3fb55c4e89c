"""How rewards and observations are scaled, and the lines that say so.

Features of any size become features of size one, and rewards become values of the size that an agent learns
best.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from optimist.agents._agent import Agent
from optimist.data.dataset import Dataset
from optimist.data.disk.records import record
from optimist.data.look import FARTHEST, feature_names
from optimist.data.transition import Spec
from optimist.data.views import View, logged_values
from optimist.errors import RunError, UsageError, some_of

# A reward is an outlier if it is so many times as large as every smaller one: among purchases of 10 to 1,000
# a mistyped 1,000,000. Two of nearly one size are none: rare large rewards are the point of many logs.
APART = 1_000.0
ENOUGH, FEW = 100, 10  # rewards without which nothing is an outlier, and most outliers
BLOCK = 2**22  # bytes of frames that are read at once to measure them
SAMPLE = 50_000  # rows that tell which values are absurd
FENCE = 20  # times the width that 99 of 100 values have: a hundred deviations of a normal feature
SHOWN = 3  # absurd values in a line
SMALLEST = float(np.finfo(np.float32).tiny)  # a smaller spread would be a division by zero


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


def remarks(logs: Sequence[View], training: Any, agent: Agent) -> list[str]:
    """What to know about the rewards before a training begins."""
    logs, scale, clip = different(logs), training.reward_scale, training.clip_rewards
    odd, most, lines = outlier(logs) if clip is not None else None, math.inf, []
    if odd and math.isclose(clip, scale * odd.limit, rel_tol=1e-3):
        most = odd.limit
        lines.append(
            f"the reward {odd.reward:g} in row {odd.row:,} is more than {APART:,.0f} times as large as all "
            f"others: it counts as {most:g}; mend the row, or count it whole with --clip-rewards none"
        )
    elif clip is not None:
        low, high = (scale * each for each in extremes(logs))
        words = f"rewards {low:g} to {high:g} are clipped to +-{clip:g}; --clip-rewards none keeps them"
        return [words] * (max(-low, high) > clip)
    low, high = extremes(logs, most)
    best, why = suggested_scale(logs, training.gamma, agent, most)
    if scale == best != 1:
        words = f"rewards {low:g} to {high:g} are multiplied by {scale:g}"
        lines.append(f"{words}, because {why}; --reward-scale 1 keeps them")
    elif scale == 1 != best:
        lines.append(f"rewards {low:g} to {high:g}: {why}; try --reward-scale {best:g}")
    limit, best = getattr(agent, "huber_limit", None), suggested_limit(logs, scale, most)  # of a Huber loss
    if limit is None or limit == best == 1:
        return lines
    if limit < best:
        words = f"errors above {limit:g} count linearly, so a rare reward above it counts too little"
        return [*lines, f"{words}; try --huber-limit {best:g}"]
    why = f", because of rewards up to {scale * _largest(logs, most):g}" if limit == best else ""
    return [*lines, f"errors up to {limit:g} count squared{why}; --huber-limit 1 is the published loss"]


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


log = logging.getLogger("optimist")


@dataclass(frozen=True)
class Inputs:
    """A frame of numbers, (observation - centre) / spread; hashable, so that learners share programs."""

    centre: tuple[float, ...]
    spread: tuple[float, ...]
    limit: float = FARTHEST  # of the scaled numbers, +-

    def __call__(self, observations: Any) -> Any:
        """Scale stacked observations, (..., stack * features). A missing frame before the beginning of an
        episode is zeros in the data; after scaling it is zeros again, which is the centre."""
        frames = observations.reshape(*observations.shape[:-1], -1, len(self.centre))
        centre, spread = (jnp.array(each, jnp.float32) for each in (self.centre, self.spread))
        scaled = (frames - jnp.broadcast_to(centre, frames.shape)) / jnp.broadcast_to(spread, frames.shape)
        scaled = jnp.clip(scaled, -self.limit, self.limit)
        if frames.shape[-2] > 1:
            older, newest = scaled[..., :-1, :], scaled[..., -1:, :]
            missing = jnp.abs(frames[..., :-1, :]).max(axis=-1, keepdims=True) == 0
            scaled = jnp.concatenate([jnp.where(missing, jnp.zeros_like(older), older), newest], axis=-2)
        return scaled.reshape(observations.shape)

    def as_config(self) -> dict[str, Any]:
        return {"centre": list(self.centre), "spread": list(self.spread), "limit": self.limit}

    @staticmethod
    def from_config(table: Any, spec: Spec) -> "Inputs | None":
        """The inputs in a run's configuration, after a check of every number; None if it has none."""
        if table is None:
            return None
        try:
            inputs = record(Inputs, table)
            numbers = np.array([inputs.centre, inputs.spread])
            fits = numbers.shape == (2, *spec.frame_shape) and np.isfinite(numbers).all()
            fits = fits and min(inputs.spread) > 0 and 0 < inputs.limit < math.inf
        except ValueError:
            fits = False
        if not fits:
            raise RunError(
                "the configuration has [inputs] that do not fit its spec: restore config.toml, "
                "or start again with --restart"
            )
        return inputs


def takes_scaling(spec: Spec) -> bool:
    return len(spec.frame_shape) == 1 and spec.frame_dtype == "float32"


def measured(logs: Sequence[Dataset], kind: str) -> Inputs | None:
    """The scaling that the observations of these logs need, all logs together: "standard" has mean 0 and
    standard deviation 1; "range" has a minimum of -1 and a maximum of 1. Both end at +-FARTHEST. A constant
    feature becomes 0. Values far beyond all others do not count, so that they decide no scale."""
    if kind == "none":
        return None
    spec = logs[0].spec
    if not takes_scaling(spec):
        raise UsageError(
            f'observations "{kind}" needs vectors of float32; these are {spec.in_words()}: '
            "omit --observations, or choose none"
        )
    low, high, mean, spread = _moments(logs)
    if kind == "range":
        mean, spread = (low + high) / 2, (high - low) / 2
    constant = (low == high) | (spread < SMALLEST)
    mean, spread = np.where(constant, low, mean), np.where(constant, 1.0, spread)
    return Inputs(tuple(mean.tolist()), tuple(spread.tolist()))


def _moments(logs: Sequence[Dataset]) -> tuple[np.ndarray, ...]:
    """Minimum, maximum, mean and standard deviation of each feature inside its fences, in float64. Sums are
    over differences from the median, so that they stay exact where the mean is large."""
    bottom, near, top = _fences(logs)
    low, high = np.full(near.shape, np.inf), np.full(near.shape, -np.inf)
    count, total, squares = np.zeros((3, *near.shape))
    absurd: dict[int, list[str]] = {}
    for steps, block in _blocks(logs):
        inside = (block >= bottom) & (block <= top)
        for row, feature in np.argwhere(~inside):
            absurd.setdefault(feature, []).append(f"{block[row, feature]:g} in row {steps[row]:,}")
        low = np.minimum(low, block.min(axis=0, where=inside, initial=np.inf))
        high = np.maximum(high, block.max(axis=0, where=inside, initial=-np.inf))
        apart, ones = np.where(inside, block - near, 0.0), np.ones(len(block))
        count, total, squares = count + ones @ inside, total + ones @ apart, squares + ones @ apart**2
    names = feature_names(logs[0])
    for feature, values in absurd.items():
        log.warning(
            "feature %s is %s, far beyond its other values: it is read as %g standard deviations and decides "
            "no scale; mend it, or leave the row out",
            names[feature] if names else feature,
            some_of(values, SHOWN),
            FARTHEST,
        )
    mean = total / count
    return low, high, near + mean, np.sqrt(np.maximum(squares / count - mean**2, 0))


def _fences(logs: Sequence[Dataset]) -> np.ndarray:
    """The bounds beyond which the values of each feature are absurd, and between them its median, by a sample
    (3, features). A feature that is nearly always the same has no bounds: its rare values matter."""
    every = max(1, sum(map(len, logs)) // SAMPLE)
    rows = np.concatenate([block[::every] for _, block in _blocks(logs)]).astype(np.float64)
    low, median, high = np.quantile(rows, [0.005, 0.5, 0.995], axis=0)
    width = np.where(high > low, FENCE * (high - low), np.inf)
    return np.stack([low - width, median, high + width])


def _blocks(logs: Sequence[Dataset]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The steps of each different log, and the frames at which they begin. Final frames are left out: in a
    log without successors they are black."""
    for view in {view.fingerprint: view for view in logs}.values():
        rows = max(1, BLOCK // (4 * view.spec.frame_shape[0]))
        for first in range(0, len(view), rows):
            steps = view.steps_at(np.arange(first, min(first + rows, len(view))))
            yield steps, view.timeline.frames(steps + view.timeline.episode_of(steps))
