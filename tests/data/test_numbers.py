"""Whole numbers for a dataset may be written as floats, 1000 as 1e3; no number is an error of one line."""

import numpy as np
import pytest

from little import vectors
from optimist.data import Dataset, Spec
from optimist.errors import DataError, UsageError

ROWS = {
    "observations": np.zeros((4, 2)),
    "actions": [0, 1, 0, 1],
    "rewards": np.zeros(4),
    "terminals": [False, True] * 2,
    "truncations": False,
}


def test_a_whole_float_is_the_number():
    """It was an error of Python's, and a batch of seed 1.0 was not that of seed 1."""
    log = vectors()
    one, other = log.batch(8, seed=1, step=1000, n_step=2), log.batch(8.0, seed=1.0, step=1e3, n_step=2.0)
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(log.observation(3), log.observation(np.float32(3)))
    assert log.fraction(0.5, seed=1).fingerprint == log.fraction(0.5, seed=1.0).fingerprint
    assert log.first(9).fingerprint == log.first(9.0).fingerprint  # they had two, and so other minibatches
    assert log.fraction(1).fingerprint == log.fraction(1.0).fingerprint
    assert log.last(9).fingerprint == log.last(9.0).fingerprint
    assert log.hold_out(0.5, seed=1)[0].fingerprint == log.hold_out(0.5, seed=1.0)[0].fingerprint
    spec = Dataset.from_arrays(**ROWS, stack=2.0, actions_count=3.0).spec
    assert spec == Spec((2,), "float32", actions=3, stack=2) and type(spec.stack) is type(spec.actions) is int


@pytest.mark.parametrize(
    "ask",
    [
        lambda log: log.batch(8.5),
        lambda log: log.batch("8"),
        lambda log: log.batch(8, seed=None),
        lambda log: log.batch(8, step=np.inf),
        lambda log: log.batch(8, n_step=True),
        lambda log: log.observation("first"),
        lambda log: log.fraction(0.5, seed=1.5),
        lambda log: log.fraction(0.5, seed=None),  # it was another part each time, under one fingerprint
        lambda log: log.hold_out(0.5, seed=np.nan),
        lambda log: log.first(2.5),
        lambda log: log.last("3"),
        lambda log: Dataset.from_arrays(**ROWS, stack="2"),
        lambda log: Dataset.from_arrays(**ROWS, actions_count=2.5),
    ],
)
def test_any_other_number_is_refused(ask):
    with pytest.raises(UsageError, match="not a whole number"):
        ask(vectors())


@pytest.mark.parametrize("ask", [lambda log: log.fraction(0.5, seed=-1), lambda log: log.batch(8, step=-1)])
def test_a_number_that_is_too_small_is_refused(ask):
    with pytest.raises(UsageError, match="is -1: it must be at least 0"):
        ask(vectors())


@pytest.mark.parametrize(
    "ask",
    [
        lambda log: log.fraction("x"),
        lambda log: log.best(None),
        lambda log: log.hold_out(True),
        lambda log: log.batch(8, gamma="x"),
        lambda log: log.batch(8, clip="x"),
    ],
)
def test_what_is_no_number_is_refused(ask):
    with pytest.raises(UsageError, match=r"(share|gamma|clip) is .*, not a number"):
        ask(vectors())


@pytest.mark.parametrize("clip", [-1, 0, np.nan])
def test_a_limit_of_rewards_is_above_0(clip):
    with pytest.raises(DataError, match=f"clip is {clip}: .* give one above 0"):
        vectors().batch(8, clip=clip)
