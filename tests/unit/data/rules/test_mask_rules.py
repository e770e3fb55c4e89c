"""Probabilities and masks of actions stay with their steps, alike by every door."""

import numpy as np
import pytest

from doors import assert_refused, log

pytestmark = pytest.mark.usefixtures("quick_disk")


def test_probabilities_and_masks_stay_with_their_steps(door):
    probabilities = np.array([0.5, 0.25, 1, 0.1, 0.2, 0.3])
    masks = np.eye(3, dtype=bool)[np.arange(6) % 3] | (np.arange(6)[:, None] == 3)
    timeline = door(**log(), probabilities=probabilities, allowed_actions=masks).timeline
    np.testing.assert_allclose(timeline.probability, probabilities[:5])
    np.testing.assert_array_equal(timeline.allowed[np.arange(5)], masks[:5])
    plain = door(**log()).timeline
    assert plain.probability is None and plain.allowed is None


ALL = np.ones((6, 3), bool)
LATE = np.arange(18).reshape(6, 3) > 5  # the first two rows allow nothing
AFTER = {"allowed_actions": ALL, "next_observations": np.arange(6.0)[:, None] + 2}
ROW = np.arange(6)
TERMINAL = (ROW == 2)[:, None]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"allowed_actions": ALL[:, :2]}, r"shape \(2,\) instead of \(3,\)"),
        ({"allowed_actions": ALL[:, :2]}, r"one value for each of 0, 1, 2; .*--actions-count"),
        ({"allowed_actions": LATE}, "action in row 0 is 0, which .* exclude"),
        (
            {"actions": list("badbad"), "allowed_actions": LATE},
            "action in row 0 is b, which .* exclude; .*: a mask has the order a, b, d",
        ),
        ({"actions": np.eye(6)[:, :2], "allowed_actions": ALL[:, :2]}, "these are vectors"),
        ({"next_allowed_actions": ALL}, "belong to allowed_actions: give both, or leave"),
        (
            {"allowed_actions": ALL, "next_allowed_actions": ALL},
            "next_allowed_actions belong to next_observations: .*; leave them out",
        ),
        (
            {**AFTER, "next_allowed_actions": ALL[:, :2]},
            r"next_allowed_actions have rows of shape \(2,\) instead of \(3,\), one value for each of",
        ),
        ({**AFTER, "next_allowed_actions": ALL[:, 0]}, "next_allowed_actions"),
        ({**AFTER, "next_allowed_actions": np.full((6, 3), 2)}, "hold other values than true"),
        (
            {**AFTER, "truncations": ROW == 3, "next_allowed_actions": ALL & ~TERMINAL & (ROW != 3)[:, None]},
            "the next_allowed_actions in row 3 allow nothing, and the row is not terminal: mark it",
        ),
        (
            {**AFTER, "next_allowed_actions": ALL & ~TERMINAL & (np.arange(18).reshape(6, 3) != 12)},
            "the next_allowed_actions of row 4 are not the allowed_actions of row 5, and row 4 is not marked",
        ),
        (
            {**AFTER, "actions": np.eye(6)[:, :3], "next_allowed_actions": ALL},
            "these are vectors; leave them out",
        ),
    ],
)
def test_masks_that_do_not_fit_are_refused_in_one_line(door, changes, said):
    assert_refused(door, log(**changes), said)
