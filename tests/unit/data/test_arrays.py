"""Arrays of Python, NumPy and pandas become a dataset in one call; tests of the rules are in rules."""

import numpy as np
import pandas as pd
import pytest

from doors import log
from optimist.data import Dataset
from optimist.errors import DataError


def made(**changes) -> Dataset:
    return Dataset.from_arrays(**log(**changes))


def test_the_rewards_of_dropped_steps_are_said(caplog):
    """A reward that is paid when the time is up would be lost without a word."""
    made(rewards=[1, 1, 1, 1, 1, 2500.0])
    (line,) = caplog.messages
    assert line == (
        "left out: 1 last step with an unknown successor, whose rewards sum to 2,500; next_observations= "
        "keeps them"
    )


@pytest.mark.parametrize("name", ["observations", "actions", "rewards", "terminals"])
def test_masked_values_are_refused(name):
    hidden = np.ma.masked_array(log()[name], mask=np.arange(6).reshape(log()[name].shape) == 1)
    with pytest.raises(DataError, match=f"{name} have masked values: fill them"):
        made(**{name: hidden})


def test_stacks_count_and_contents_are_the_callers_choice():
    dataset = made(actions_count=9, stack=3, provenance={"by": "me"})
    assert dataset.spec.actions == 9 and dataset.provenance["by"] == "me"
    np.testing.assert_array_equal(dataset.observation(2), [1, 2, 3])
    assert dataset.fingerprint != made(actions_count=9).fingerprint


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rewards": np.zeros(5)}, "rewards"),
        ({"actions": np.zeros(5, int)}, "actions"),
        ({"truncations": np.zeros(3, bool)}, "truncations are .3,. bool: give 6"),
        ({"episodes": np.zeros(5)}, "give 6 rows"),
        ({"observations": np.zeros((0, 1))}, "rows"),
        ({"observations": [[1.0], [1.0, 2.0]] * 3}, "observations have rows of different lengths"),
        ({"actions": [[1.0], [1.0, 2.0]] * 3}, "actions have rows of different lengths"),
        ({"rewards": np.array([{}] * 6)}, "object"),
        ({"actions": np.array(["a", 1, "a", "a", "a", "a"], object)}, "all of them as texts"),
        ({"actions": ["a", "b", None, "a", "a", "a"]}, "row 2 is None: give a whole number or a name"),
        ({"actions": np.array(["a", "b", np.nan, "a", "a", "a"], object)}, "row 2 is nan: give a whole"),
        ({"observations": np.array([[None]] * 6)}, "hold None in row 0, which is no number"),
        (
            {"observations": np.array([[1.5, True]] * 5 + [[1, "2"]], object)},
            "hold 2 in row 5, .*get_dummies",
        ),
        (
            {"observations": np.array([[0.5, 2**24 + 1]] * 6, object)},
            "float32 cannot hold .feature 1, first in row 0.: .* subtract a constant from times",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused_in_one_line(changes, said):
    with pytest.raises(DataError, match=said) as refused:
        made(**changes)
    assert "\n" not in str(refused.value)


def test_names_may_be_objects():
    assert made(actions=np.array(["up", "down", "up"] * 2, object)).spec.action_names == ("down", "up")


def test_a_data_frame_of_floats_and_flags_is_taken_as_numbers():
    """NumPy makes objects of it."""
    frame = pd.DataFrame({"inside": [20.5, 21.0] * 3, "open": [True, False] * 3, "hour": range(6)})
    assert np.asarray(frame).dtype == object
    found = made(observations=frame)
    assert found.spec.frame_dtype == "float32"
    np.testing.assert_array_equal(found.observation(0), [20.5, 1, 0])
    said = "in row 3, which is no number"
    for missing, line in ((None, said), (pd.NA, said), ("21", said), (np.nan, "NaN .*first in row 3")):
        frame = frame.astype(object)
        frame.iloc[3, 0] = missing
        with pytest.raises(DataError, match=line):
            made(observations=frame)


@pytest.mark.parametrize(
    "given",
    [
        lambda lists, frame: lists,
        lambda lists, frame: pd.Series(lists),
        lambda lists, frame: frame,
        lambda lists, frame: frame[["can_stay", "can_right", "can_left"]],
        lambda lists, frame: frame.to_numpy().tolist(),
        lambda lists, frame: pd.Series(frame.to_numpy().tolist()),
    ],
    ids=["names", "series of names", "frame", "frame in another order", "flags", "series of flags"],
)
def test_masks_may_be_names_or_columns_with_names(given):
    names = ["left", "right", "stay"]
    lists = [["left", "stay"], ["right"], ["left", "right", "stay"], ["right"], ["left"], ["stay", "right"]]
    flags = np.array([[name in row for name in names] for row in lists])
    frame = pd.DataFrame(flags.astype(int), columns=[f"can_{name}" for name in names])
    actions = ["left", "right", "stay", "right", "left", "right"]
    data = made(actions=actions, allowed_actions=given(lists, frame))
    np.testing.assert_array_equal(np.asarray(data.timeline.allowed), flags[: len(data)])
