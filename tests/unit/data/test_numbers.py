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


WHOLE, REAL = "not a whole number", r"(share|gamma|clip) is .*, not a number"
SMALL = "is -1: it must be at least 0"


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda log: log.batch(8.5), WHOLE),
        (lambda log: log.batch("8"), WHOLE),
        (lambda log: log.batch(8, seed=None), WHOLE),
        (lambda log: log.batch(8, step=np.inf), WHOLE),
        (lambda log: log.batch(8, n_step=True), WHOLE),
        (lambda log: log.observation("first"), WHOLE),
        (lambda log: log.fraction(0.5, seed=1.5), WHOLE),
        (lambda log: log.fraction(0.5, seed=None), WHOLE),  # it was another part each time
        (lambda log: log.hold_out(0.5, seed=np.nan), WHOLE),
        (lambda log: log.first(2.5), WHOLE),
        (lambda log: log.last("3"), WHOLE),
        (lambda log: Dataset.from_arrays(**ROWS, stack="2"), WHOLE),
        (lambda log: Dataset.from_arrays(**ROWS, actions_count=2.5), WHOLE),
        (lambda log: log.fraction(0.5, seed=-1), SMALL),
        (lambda log: log.batch(8, step=-1), SMALL),
        (lambda log: log.fraction("x"), REAL),
        (lambda log: log.best(None), REAL),
        (lambda log: log.hold_out(True), REAL),
        (lambda log: log.batch(8, gamma="x"), REAL),
        (lambda log: log.batch(8, clip="x"), REAL),
    ],
)
def test_any_other_number_is_refused(ask, said):
    with pytest.raises(UsageError, match=said):
        ask(vectors())


@pytest.mark.parametrize("clip", [-1, 0, np.nan])
def test_a_limit_of_rewards_is_above_0(clip):
    with pytest.raises(DataError, match=f"clip is {clip}: .* give one above 0"):
        vectors().batch(8, clip=clip)
