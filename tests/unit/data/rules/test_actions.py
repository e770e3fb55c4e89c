"""Actions are numbers, names or vectors, alike by every door."""

import numpy as np
import pytest

from doors import assert_refused, log

pytestmark = pytest.mark.usefixtures("quick_disk")
BOXED = np.linspace(-1, 1, 6)[:, None] * np.ones((6, 2))
LEAST = -(2**63)


@pytest.mark.parametrize(
    ("actions", "names"),
    [
        (["up", "down", "up"], ("down", "up")),
        ([b"up", b"down", b"up"], ("down", "up")),
        ([-1, 1, -1], (-1, 1)),
        ([LEAST, 5, LEAST], (LEAST, 5)),  # its dataset could not be opened again
        ([0, 63, 1], ()),
        ([0, 64, 1], (0, 1, 64)),
        ([*range(33), 64, 0], ()),
        ([*range(31), 64, 0], (*range(31), 64)),
        ([0, 9_999, 1], (0, 1, 9_999)),
        ([True, False, True], ()),
    ],
)
def test_which_actions_are_mapped(door, actions, names):
    spec = door(**log(steps=len(actions), actions=actions, terminals=np.ones(len(actions)))).spec
    assert spec.action_names == names and spec.actions == (len(names) or int(np.max(actions)) + 1)


def test_item_ids_become_few_actions_with_the_ids_as_names(door, caplog):
    ids = np.array([2_000_000, 17, 404, 17, 2_000_000, 404])
    data = door(**log(actions=ids))
    assert data.spec.actions == 3 and data.spec.action_names == (17, 404, 2_000_000)
    np.testing.assert_array_equal(data.timeline.action, [2, 0, 1, 0, 2])
    np.testing.assert_array_equal(data.spec.named(data.timeline.action), ids[:5])
    assert "the actions 17, 404, 2000000 have the numbers 0 to 2, in this order;" in caplog.text
    assert data.action_name(2) == 2_000_000 and "3 actions (17, 404, 2000000)" in repr(data)


def test_names_may_be_given_for_numbers_and_for_actions_that_never_occur(door):
    numbered = door(**log(), action_names=["left", "stay", "right"])
    assert numbered.action_name(1) == "stay" and numbered.timeline.action[1] == 1
    named = door(**log(actions=[7, 5, 7, 5, 7, 5]), action_names=[9, 7, 5])
    assert named.spec.actions == 3
    np.testing.assert_array_equal(named.timeline.action, [1, 2, 1, 2, 1])


@pytest.mark.parametrize("shape", [(6,), (6, 1)])
def test_whole_number_floats_are_discrete_and_it_is_said(door, caplog, shape):
    whole = np.array([0, 1, 2, 0, 1, 2], np.float32).reshape(shape)
    data = door(**log(actions=whole))
    assert data.spec.actions == 3 and data.timeline.action.dtype == np.int32
    assert "give their bounds, action_low and action_high (--action-low, --action-high)" in caplog.text
    assert door(**log(actions=whole), action_low=0, action_high=2).spec.action_shape == (1,)
    assert door(**log(actions=whole + 0.5)).spec.action_shape == (1,)


@pytest.mark.parametrize(
    ("given", "low", "high"),
    [
        ({"actions": BOXED}, (-1.0, -1.0), (1.0, 1.0)),
        ({"actions": BOXED, "action_low": -2, "action_high": (2, 3)}, (-2.0, -2.0), (2.0, 3.0)),
        ({"action_low": 0}, (0.0,), (2.0,)),  # whole numbers that have a bound
        ({"actions": np.ones((6, 2), int)}, (1.0, 1.0), (1.0, 1.0)),  # or of which several stand in a row
        # An action may leave its box by a rounding error: this is 0.10000000149.
        ({"actions": np.full((6, 1), 0.1, np.float32), "action_low": 0, "action_high": 0.1}, (0.0,), (0.1,)),
    ],
)
def test_vectors_take_their_bounds_from_the_data_or_the_caller(door, given, low, high):
    spec = door(**log(**given)).spec
    assert not spec.discrete and (spec.action_low, spec.action_high) == (low, high)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"actions": np.array([0, 1, 9, 0, 0, 0]), "actions_count": 4}, "0 to 3"),
        ({"actions": np.array([0, 1, -1, 0, 0, 0]), "actions_count": 2}, "-1"),
        ({"actions": np.full(6, 2**63, np.uint64)}, "give them as texts"),
        ({"actions": np.full(6, 1e17)}, "not exact"),
        ({"actions": np.full((6, 2), np.inf)}, "infinity"),
        ({"actions": np.full((6, 2), np.nan)}, "actions hold NaN"),
        ({"actions": np.full(6, np.nan)}, r"actions hold NaN or infinity \(first in row 0\)"),
        (
            {"actions": ["a", "b", "c"] * 2, "action_names": ["a", "b"]},
            'the action "c" is not among the action_names',
        ),
        ({"action_names": ["a", "b"]}, "they must be from 0 to 1"),
        ({"action_names": ["a", "b", "b"]}, "different texts"),
        ({"actions": ["7", "8"] * 3, "action_names": ["7", "8", 7]}, "different texts"),
        ({"action_names": ["a", "b", "c"], "actions_count": 4}, "give one of them"),
        ({"actions": BOXED, "action_names": ["a", "b"]}, "action_names and actions_count belong to discrete"),
        ({"actions": ["a", "b", "c"] * 2, "actions_count": 4}, "give the names of all, also of those"),
        ({"actions_count": 20_000}, "20,000 different actions: at most 10,000 .* a network has an output"),
        (
            {"actions": BOXED, "action_low": -1, "action_high": 0.5},
            r"in row 4 is .*, not from \(-1.0, -1.0\)",
        ),
        ({"actions": BOXED, "action_low": (-1, -0.5), "action_high": 1}, "row 0 .* clip the actions"),
        ({"actions": BOXED, "action_low": (-1, -1, -1)}, "action_low is .* one number, or 2"),
        ({"actions": BOXED, "action_high": "all"}, "action_high is 'all': give one number"),
        ({"actions": BOXED, "action_low": np.nan}, "finite, none above its high one"),
        ({"actions": BOXED, "action_low": 2, "action_high": -2}, "none above its high one"),
    ],
)
def test_actions_that_do_not_fit_are_refused_in_one_line(door, changes, said):
    assert_refused(door, log(**changes), said)


def test_more_than_ten_thousand_actions_are_refused(door):
    rows = 10_001
    given = log(steps=rows, actions=np.arange(rows) * 7, terminals=np.ones(rows, bool))
    assert_refused(door, given, "10,001 different actions: at most 10,000")
