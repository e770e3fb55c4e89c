"""A number of a log that float32 cannot hold is refused with its row by every door; it was rounded without a
word. What is no number is refused too."""

import numpy as np
import pytest

from doors import assert_refused, log

pytestmark = pytest.mark.usefixtures("quick_disk")
STEPS = 400
NOISE = np.random.default_rng(0).normal(size=STEPS)
PLAY = {"steps": STEPS, "observations": NOISE[:, None], "terminals": np.arange(STEPS) % 10 == 9}
CLOCK = 1_700_000_000 + 60 * np.arange(STEPS)
YEAR = 525_600.25 * np.arange(STEPS)
WHOLE = "hold whole numbers that float32 cannot hold"
ROUNDED = {  # a column, and what is said of it
    "2**24 + 1": (2**24 + np.arange(STEPS) % 8.0, f"{WHOLE} .*first in row 1"),
    "int32": ((2**24 + np.arange(STEPS) % 8).astype(np.int32), f"{WHOLE} .*first in row 1"),
    "nanoseconds": (1_700_000_000_000_000_001 + np.arange(STEPS), f"{WHOLE} .*first in row 0"),
    "seconds": (CLOCK, WHOLE),
    "seconds as floats": (CLOCK.astype(float), WHOLE),
    "1e9 + noise": (
        1e9 + NOISE,
        "are near 1e.09, and float32 holds them in steps of 64: subtract a constant",
    ),
    "fractions of seconds": (CLOCK + 0.25 * np.arange(STEPS), "are near 1.7.* in steps of 128: subtract"),
    "a year": (1.7e9 + YEAR, "are near 1.* in steps of 128: subtract"),  # taken while it was as long as that
}
KEPT = {
    "tenths": 0.1 * np.arange(STEPS),
    "one penalty": np.where(np.arange(STEPS) == 7, -1e9, NOISE),
    "even numbers": 2**24 + 2 * np.arange(STEPS),
    "many zeros": 2.0**28 * np.arange(STEPS),
    "always the same": np.full(STEPS, 1e9),
    "no offset": 2.0e7 + 1_100_000.25 * np.arange(STEPS),
    "a year without an offset": YEAR,
    "very large, and not called whole": 1e30 * NOISE,
}


@pytest.mark.parametrize("kind", ROUNDED)
def test_what_float32_would_round_is_refused(door, kind):
    numbers, said = ROUNDED[kind]
    assert_refused(door, log(**PLAY, rewards=numbers), f"rewards {said}")
    if "first in row" in said:
        assert_refused(door, log(**PLAY, rewards=numbers), "give them in a larger unit")
    features = np.stack([NOISE, numbers], axis=1)
    assert_refused(
        door, log(**{**PLAY, "observations": features}), "observations .*feature 1.*subtract a constant"
    )


def test_action_vectors_are_judged_alike(door):
    vectors = np.stack([NOISE, 1e9 + NOISE], axis=1)
    assert_refused(door, log(**PLAY, actions=vectors), "actions .feature 1. are near 1e.09")


@pytest.mark.parametrize("kind", KEPT)
def test_what_loses_no_difference_is_taken(door, kind):
    numbers = KEPT[kind]
    data = door(**log(**PLAY, rewards=numbers))
    np.testing.assert_array_equal(data.timeline.reward, numbers[: len(data)].astype(np.float32))
    door(**log(**{**PLAY, "observations": numbers[:, None].astype(float)}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rewards": np.array([0, 0, np.nan, 0, 0, 0])}, r"rewards hold NaN or infinity \(first in row 2\)"),
        ({"rewards": np.full(6, 1e39)}, r"rewards hold NaN or infinity \(first in row 0\)"),
        ({"rewards": np.array([0, 1, 2, 3, np.inf, 5])}, r"rewards hold NaN or infinity \(first in row 4\)"),
        ({"observations": np.full((6, 1), np.nan)}, "observations hold NaN"),
        ({"observations": np.full((6, 1), 1e39)}, "observations hold NaN or infinity"),
        ({"observations": np.full((6, 1), -np.inf)}, "observations hold NaN or infinity"),
        ({"observations": np.full((6, 1), 1e300)}, "NaN or infinity|beyond"),
        ({"next_observations": np.full((6, 1), np.nan)}, "next_observations hold NaN"),
        ({"next_observations": np.zeros((6, 2))}, r"shape \(2,\) instead of \(1,\)"),
        ({"rewards": np.zeros((6, 0))}, r"rewards have rows of shape \(0,\) instead of \(\)"),
        ({"rewards": np.array(list("abcdef"))}, "rewards have type <U1 instead of float32; convert them"),
        ({"terminals": np.full(6, 2)}, r"true and false \(first in row 0\)"),
        ({"terminals": np.zeros((6, 2))}, r"terminals have rows of shape \(2,\) instead of \(\)"),
        ({"probabilities": np.array([1, 1, 0, 1, 1, 1])}, "probability in row 2 is 0: .* at most 1"),
        ({"probabilities": np.full(6, 1.5)}, "probability in row 0 is 1.5"),
        ({"probabilities": np.array([1, np.nan, 1, 1, 1, 1])}, "row 1"),
    ],
)
def test_numbers_that_cannot_be_stored_are_refused_in_one_line(door, changes, said):
    assert_refused(door, log(**changes), said)
