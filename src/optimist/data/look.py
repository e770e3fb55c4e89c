"""A look at a log before training: facts about it."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from optimist.data.appending import ACTION_COLUMNS, FEATURES
from optimist.data.dataset import Dataset
from optimist.data.predictability import predictability
from optimist.data.stacking import decoded_stacks
from optimist.errors import in_one_line

SAMPLE, SAMPLE_BYTES, FEWEST = 6000, 2**24, 500  # observations to read: as many as their bytes allow
# Standardised features end at +- this: one that is 1 in 9 of 20,000 rows and else 0 would be 47, and DQN
# overrates such states (results/reward-scale). In no log are more than 1% of the rows farther away.
FARTHEST = 10.0
MUCH, RUNS = 2**27, 32  # a file is hashed when it is opened: of more bytes of frames, a few runs are read


class Rewards(NamedTuple):
    """The rewards of all steps; `usual` is the most frequent one."""

    low: float
    high: float
    usual: float
    unusual_steps: int
    unusual_episodes: int


@dataclass(frozen=True, eq=False)
class Features:
    """The features of vector observations in a sample, (d,) each; `repeats` maps a feature to an equal one
    before it. `alike` are those with different values that standardising makes equal."""

    mean: np.ndarray
    spread: np.ndarray
    low: np.ndarray
    high: np.ndarray
    constant: np.ndarray
    repeats: dict[int, int]
    alike: list[int]


class BestTenth(NamedTuple):
    """The tenth of the complete episodes with the highest returns."""

    episodes: int
    steps: int
    mean_return: float


class Sample(NamedTuple):
    """Some steps: their observations, actions, and the numbers of their episodes."""

    observations: np.ndarray
    actions: np.ndarray
    episodes: np.ndarray


class Look:
    """Facts about a dataset or a view. Rewards, actions and ends are those of all steps; observations are
    those of a sample, so that a look at a million steps takes less than a second."""

    def __init__(self, dataset: Dataset):
        self.dataset, self.spec, self.episodes = dataset, dataset.spec, dataset.episodes

    @cached_property
    def reward(self) -> np.ndarray:
        return self._column(self.dataset.timeline.reward)

    @cached_property
    def action(self) -> np.ndarray:
        return self._column(self.dataset.timeline.action)

    def _column(self, column: np.ndarray) -> np.ndarray:
        whole = len(self.dataset) == len(self.dataset.timeline)
        return column if whole else column[self.dataset.steps()]

    @cached_property
    def rewards(self) -> Rewards:
        values, counts = np.unique(self.reward, return_counts=True)
        usual = values[counts.argmax()]
        differs = np.concatenate([[0], np.cumsum(self.reward != usual)])
        per_episode = np.diff(differs[self.dataset.offsets])
        low, high = float(values[0]), float(values[-1])
        return Rewards(low, high, float(usual), int(differs[-1]), int((per_episode > 0).sum()))

    @cached_property
    def action_counts(self) -> np.ndarray:
        """How often each discrete action was taken."""
        return np.bincount(self.action, minlength=self.spec.actions)

    @cached_property
    def action_entropy(self) -> float:
        """In nats; ln(actions) means uniformly random."""
        share = self.action_counts[self.action_counts > 0] / len(self.action)
        return float(-(share * np.log(share)).sum() + 0.0)

    @property
    def most_common(self) -> float:
        """The share of the most common action."""
        return float(self.action_counts.max() / len(self.action))

    def name_of(self, action: int) -> str:
        """The user's own name of an action, or its number."""
        names = getattr(self.spec, "action_names", ())
        return str(names[action] if names else action)

    def action_column(self, number: int) -> str:
        """The name of a number of an action vector, or which it is."""
        names = action_columns(self.dataset)
        return names[number] if names else str(number)

    def feature(self, number: int) -> str:
        """The name of a feature in the table that it comes from, or its number."""
        names = feature_names(self.dataset)
        return names[number] if names else str(number)

    @cached_property
    def predicted(self) -> float | None:
        return predictability(*self.sample, self.spec)

    @cached_property
    def best_tenth(self) -> BestTenth | None:
        episodes = self.episodes
        complete = np.flatnonzero(episodes.complete)
        if not len(complete):
            return None
        count = max(1, len(complete) // 10)
        best = complete[np.argsort(-episodes.returns[complete], kind="stable")[:count]]
        return BestTenth(count, int(episodes.lengths[best].sum()), float(episodes.returns[best].mean()))

    @cached_property
    def sample(self) -> Sample:
        dataset, timeline = self.dataset, self.dataset.timeline
        positions = self._positions()
        ranges = dataset.ranges_at(positions)
        steps = dataset.starts[ranges] + positions - dataset.offsets[ranges]
        episode = timeline.episode_of(steps)
        age = np.minimum(steps - timeline.episode_starts[episode], self.spec.stack - 1)
        seen = decoded_stacks(timeline.frames, steps + episode, age, self.spec.stack)
        return Sample(seen, timeline.action[steps], episode)

    def _positions(self) -> np.ndarray:
        """Positions in the view to read, in order."""
        each = prod(self.spec.observation_shape) * np.dtype(self.spec.frame_dtype).itemsize
        count, steps = int(np.clip(SAMPLE_BYTES // each, FEWEST, SAMPLE)), len(self.dataset)
        if steps <= count:
            return np.arange(steps)
        random = np.random.default_rng(0)
        if self.dataset.timeline.source.frame_bytes <= MUCH:
            return np.sort(random.choice(steps, count, replace=False))
        begins = random.integers(0, steps - count // RUNS, RUNS)
        return np.unique(begins[:, None] + np.arange(count // RUNS))

    @cached_property
    def features(self) -> Features | None:
        """None for images."""
        if len(self.spec.frame_shape) > 1:
            return None
        rows = self.sample.observations[:, -self.spec.frame_shape[0] :].astype(np.float64)
        low, high = rows.min(axis=0), rows.max(axis=0)
        constant = low == high
        first: dict[bytes, int] = {}
        repeats = {}
        for number in np.flatnonzero(~constant).tolist():
            before = first.setdefault(rows[:, number].tobytes(), number)
            if before != number:
                repeats[number] = before
        mean, spread = rows.mean(axis=0), rows.std(axis=0)
        far = np.where(np.abs(rows - mean) > FARTHEST * spread, rows, np.nan)
        alike = [number for number in range(rows.shape[1]) if _differ(far[:, number], mean[number])]
        return Features(mean, spread, low, high, constant, repeats, alike)


def feature_names(dataset: Dataset) -> list[str]:
    """The names of the features in the table that they come from, in the order in which an agent reads them;
    empty if they are not known."""
    return _columns(dataset, FEATURES, dataset.spec.frame_shape)


def action_columns(dataset: Dataset) -> list[str]:
    """The same of the numbers of an action vector."""
    return _columns(dataset, ACTION_COLUMNS, dataset.spec.action_shape)


def _columns(dataset: Dataset, kind: str, shape: tuple[int, ...]) -> list[str]:
    names = dataset.provenance.get(kind)
    if not isinstance(names, list) or shape != (len(names),):
        return []
    return [in_one_line(name) for name in names]


def _differ(values: np.ndarray, middle: float) -> bool:
    """Do the values above the middle differ, or those below? NaN is neither."""
    return any(len(np.unique(side)) > 1 for side in (values[values > middle], values[values < middle]))
