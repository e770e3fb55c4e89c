"""The scaling of observations: features of any size become features of size one."""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.look import FARTHEST, feature_names
from optimist.data.transition import Spec
from optimist.errors import RunError, UsageError, did_you_mean, some_of
from optimist.training.automatic import AUTO, takes_scaling

KINDS = (AUTO, "standard", "range", "none")
BLOCK = 2**22  # bytes of frames that are read at once to measure them
SAMPLE = 50_000  # rows that tell which values are absurd
FENCE = 20  # times the width that 99 of 100 values have: a hundred deviations of a normal feature
SHOWN = 3  # absurd values in a line
SMALLEST = float(np.finfo(np.float32).tiny)  # a smaller spread would be a division by zero
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
        centre, spread = (_numbers(table, name, spec) for name in ("centre", "spread"))
        limit: Any = table.get("limit") if isinstance(table, Mapping) else None
        limited = type(limit) in (int, float) and 0 < limit < math.inf
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
    _warn(logs[0], absurd)
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


def _warn(dataset: Dataset, absurd: Mapping[int, list[str]]) -> None:
    names = feature_names(dataset)
    for feature, found in absurd.items():
        log.warning(
            "feature %s is %s, far beyond its other values: it is read as %g standard deviations and decides "
            "no scale; mend it, or leave the row out",
            names[feature] if names else feature,
            some_of(found, SHOWN),
            FARTHEST,
        )


def _blocks(logs: Sequence[Dataset]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The steps of each different log, and the frames at which they begin. Final frames are left out: in a
    log without successors they are black."""
    for view in {view.fingerprint: view for view in logs}.values():
        rows = max(1, BLOCK // (4 * view.spec.frame_shape[0]))
        for first in range(0, len(view), rows):
            steps = view.steps_at(np.arange(first, min(first + rows, len(view))))
            yield steps, view.timeline.frames(steps + view.timeline.episode_of(steps))
