"""Small recorded logs, and a comparison of two datasets."""

from pathlib import Path

import numpy as np

from little import PIXELS, random_play
from optimist.data import Dataset, Recorder, Spec

VECTORS = Spec((4,), "float32", actions=3)
CONTINUOUS = Spec((3,), "float32", action_low=(-1.0, -2.0), action_high=(1.0, 2.0))
SPECS = {"vectors": VECTORS, "continuous": CONTINUOUS, "images": PIXELS}


def recorded(path: Path, spec: Spec, *, rows: int = 120) -> Dataset:
    """One lane in several shards that ends with the end of an episode, after terminals and truncations."""
    random = np.random.default_rng(0)
    as_discrete = spec if spec.discrete else Spec(spec.frame_shape, spec.frame_dtype, actions=2)
    with Recorder(path, spec, lanes=1, shard_steps=50) as recorder:
        steps = list(random_play(as_discrete, rows=rows, lanes=1))
        for number, (frame, action, reward, terminal, truncated, following) in enumerate(steps):
            if not spec.discrete:
                action = random.uniform(spec.action_low, spec.action_high, (1, 2)).astype(np.float32)
            ended = truncated | (number == rows - 1) & ~terminal
            recorder.add(frame, action, reward, terminal, ended, following)
    return Dataset.open(path)


def assert_equal_steps(one: Dataset, other: Dataset, *, but_ends: bool = False) -> None:
    """All columns and all frames are equal; `but_ends` leaves out the frames after terminal steps, which no
    learner uses."""
    for column in ("action", "reward", "terminal", "truncated"):
        np.testing.assert_array_equal(getattr(one.timeline, column), getattr(other.timeline, column), column)
    used = np.ones(one.timeline.frame_count, bool)
    if but_ends:
        last = np.append(one.timeline.episode_starts[1:], len(one)) - 1
        used[(last + np.arange(len(last)) + 1)[one.timeline.terminal[last]]] = False
    np.testing.assert_array_equal(one.timeline.decoded()[used], other.timeline.decoded()[used])
