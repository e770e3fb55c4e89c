"""What an exported policy is asked: observations of the log, and masks of allowed actions if it has them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optimist.data.dataset import Dataset
from optimist.data.look import action_columns, feature_names
from optimist.data.sampling import Sampler, transitions
from optimist.data.transition import Spec
from optimist.errors import DataError, UsageError
from optimist.training.run import Run


@dataclass(frozen=True)
class Asked:
    """The arguments of each call as arrays, (n, ...): observations in the user's layout, and masks (n, A)."""

    arguments: tuple[np.ndarray, ...]
    whose: str
    features: tuple[str, ...] = ()  # their names in order, if they are known
    action_columns: tuple[str, ...] = ()  # the same of the numbers of an action vector

    @property
    def has_masks(self) -> bool:
        return len(self.arguments) > 1

    @property
    def types(self) -> list[tuple[tuple[int, ...], str]]:
        """The shape and the type of each argument of one call."""
        return [(array.shape[1:], array.dtype.name) for array in self.arguments]


def asked(run: Run, data: Dataset | str | Path | None, count: int) -> Asked:
    """Up to `count` logged questions; random observations if the run's data cannot be opened."""
    spec = run.learner.spec
    try:
        dataset = run.log() if data is None else data if isinstance(data, Dataset) else Dataset.open(data)
    except DataError:
        if data is not None:
            raise
        return _random(run, count)
    if _alike(dataset.spec, spec):
        return _logged(spec, dataset, min(count, len(dataset)), run.masked)
    if data is not None:
        raise UsageError(
            f"the data has {dataset.spec.in_words()}, and this policy learned from {spec.in_words()}: name a "
            "log like the one that it learned from"
        )
    return _random(run, count)


def _alike(one: Spec, other: Spec) -> bool:
    """Do both have the same observations, so that one policy reads them alike, and as many actions?"""
    kinds = [(spec.observation_shape, spec.frame_dtype, spec.actions) for spec in (one, other)]
    return kinds[0] == kinds[1]


def _logged(spec: Spec, dataset: Dataset, count: int, masked: bool) -> Asked:
    sampler = Sampler(dataset, count)
    positions = sampler.positions(0, 1)[0]
    seen = transitions(sampler, positions, dataset.timeline.frames).observation
    masks = dataset.timeline.allowed
    others = _random_masks(spec, len(seen)) if masked else ()
    if masks is not None:
        others = (masks[dataset.steps()[positions]],)
    names = tuple(feature_names(dataset)), tuple(action_columns(dataset))
    return Asked((spec.in_users_layout(seen), *others), "logged observations", *names)


def _random(run: Run, count: int) -> Asked:
    spec = run.learner.spec
    random, shape = np.random.default_rng(0), (count // 10, *spec.observation_shape)
    drawn: Any = random.integers(0, 256, shape) if spec.frame_dtype == "uint8" else random.normal(size=shape)
    drawn = (drawn > 0 if spec.frame_dtype == "bool" else drawn).astype(spec.frame_dtype)
    masks = _random_masks(spec, len(drawn)) if run.masked else ()
    beside = " and masks" if masks else ""
    whose = f"random observations{beside}, because the log of {run.path} cannot be opened"
    return Asked((spec.in_users_layout(drawn), *masks), whose)


def _random_masks(spec: Spec, count: int) -> tuple[np.ndarray, ...]:
    """Masks that each allow at least one action."""
    random = np.random.default_rng(1)
    masks = random.random((count, spec.actions)) < 0.5
    masks[np.arange(count), random.integers(spec.actions, size=count)] = True
    return (masks,)
