"""The scaling of observations: features of any size become features of size one."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from optimist.data.look import FARTHEST
from optimist.data.transition import Spec
from optimist.data.views import View
from optimist.errors import RunError, UsageError, did_you_mean
from optimist.training.automatic import AUTO, takes_scaling

KINDS = (AUTO, "standard", "range", "none")
BLOCK = 2**22  # bytes of frames that are read at once to measure them
SMALLEST = float(np.finfo(np.float32).tiny)  # a smaller spread would be a division by zero


@dataclass(frozen=True)
class Inputs:
    """A frame of numbers, (observation - centre) / spread; hashable, so that learners share programs."""

    centre: tuple[float, ...]
    spread: tuple[float, ...]
    limit: float | None = None  # of the scaled numbers, +-; runs of older versions have none

    def __call__(self, observations: Any) -> Any:
        """Scale stacked observations, (..., stack * features). A missing frame before the beginning of an
        episode is zeros in the data; after scaling it is zeros again, which is the centre."""
        frames = observations.reshape(*observations.shape[:-1], -1, len(self.centre))
        centre, spread = (jnp.array(each, jnp.float32) for each in (self.centre, self.spread))
        scaled = (frames - jnp.broadcast_to(centre, frames.shape)) / jnp.broadcast_to(spread, frames.shape)
        if self.limit is not None:
            scaled = jnp.clip(scaled, -self.limit, self.limit)
        if frames.shape[-2] > 1:
            older, newest = scaled[..., :-1, :], scaled[..., -1:, :]
            missing = jnp.abs(frames[..., :-1, :]).max(axis=-1, keepdims=True) == 0
            scaled = jnp.concatenate([jnp.where(missing, jnp.zeros_like(older), older), newest], axis=-2)
        return scaled.reshape(observations.shape)

    def as_config(self) -> dict[str, Any]:
        limit = {} if self.limit is None else {"limit": self.limit}
        return {"centre": list(self.centre), "spread": list(self.spread), **limit}

    @staticmethod
    def from_config(table: Any, spec: Spec) -> "Inputs | None":
        """The inputs in a run's configuration, after a check of every number; None if it has none."""
        if table is None:
            return None
        centre, spread = (_numbers(table, name, spec) for name in ("centre", "spread"))
        limit = table.get("limit") if isinstance(table, Mapping) else None
        limited = limit is None or (type(limit) in (int, float) and 0 < limit < math.inf)
        if not centre or not spread or min(spread) <= 0 or not limited:
            raise RunError(
                "the configuration has [inputs] that do not fit its spec: restore config.toml, "
                "or start again with --restart"
            )
        return Inputs(centre, spread, limit)


def _numbers(table: Any, name: str, spec: Spec) -> tuple[float, ...]:
    """A list of finite numbers, one for each feature; empty if the table has something else."""
    part = table.get(name) if isinstance(table, Mapping) else None
    if not isinstance(part, list) or not all(type(number) in (int, float) for number in part):
        return ()
    fits = (len(part),) == spec.frame_shape and all(map(math.isfinite, part))
    return tuple(map(float, part)) if fits else ()


def check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise UsageError(f'no observations "{kind}": {did_you_mean(str(kind), KINDS)}')


def measured(logs: Sequence[View], kind: str) -> Inputs | None:
    """The scaling that the observations of these logs need, all logs together: "standard" has mean 0 and
    standard deviation 1, and ends at +-FARTHEST; "range" has a minimum of -1 and a maximum of 1. A constant
    feature becomes 0."""
    if kind == "none":
        return None
    spec = logs[0].spec
    if not takes_scaling(spec):
        raise UsageError(
            f'observations "{kind}" needs vectors of float32; these are {spec.in_words()}: '
            "omit --observations, or choose none"
        )
    low, high, mean, spread = _moments(_blocks(logs), spec.frame_shape)
    if kind == "range":
        mean, spread = (low + high) / 2, (high - low) / 2
    constant = (low == high) | (spread < SMALLEST)
    mean, spread = np.where(constant, low, mean), np.where(constant, 1.0, spread)
    return Inputs(tuple(mean.tolist()), tuple(spread.tolist()), FARTHEST if kind == "standard" else None)


def _moments(blocks: Iterator[np.ndarray], shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Minimum, maximum, mean and standard deviation of each feature, in float64. Sums are over differences
    from the mean of the first block, so that they stay exact where the mean is large."""
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    count, total, squares, near = 0, np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for block in blocks:
        low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
        near = near if count else block.mean(axis=0, dtype=np.float64)
        apart, ones = block - near, np.ones(len(block))
        count, total, squares = count + len(block), total + ones @ apart, squares + ones @ apart**2
    mean = total / count
    return low, high, near + mean, np.sqrt(np.maximum(squares / count - mean**2, 0))


def _blocks(logs: Sequence[View]) -> Iterator[np.ndarray]:
    """The frames at which the steps of each different log begin. Final frames are left out: in a log without
    successors they are black."""
    for log in {log.fingerprint: log for log in logs}.values():
        rows = max(1, BLOCK // (4 * log.spec.frame_shape[0]))
        for first in range(0, len(log), rows):
            steps = log.steps_at(np.arange(first, min(first + rows, len(log))))
            yield log.timeline.frames(steps + log.timeline.episode_of(steps))
