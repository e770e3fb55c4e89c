"""Plain arrays become a dataset in one call; steps with an unknown successor are dropped."""

import logging

import numpy as np
import pandas as pd
import pytest

from optimist.data import Dataset, Sampler, transitions
from optimist.errors import DataError

BOXED = np.linspace(-1, 1, 6)[:, None] * np.ones((6, 2))


def log(steps=6, **changes):
    given = {
        "observations": np.arange(steps, dtype=np.float64)[:, None] + 1,
        "actions": np.arange(steps) % 3,
        "rewards": np.arange(steps),
        "terminals": np.isin(np.arange(steps), [2]),
        "truncations": False,
    }
    return {name: value for name, value in (given | changes).items() if value is not None}


def everything(dataset):
    return transitions(Sampler(dataset, gamma=0.5), np.arange(len(dataset)), dataset.timeline.frames)


def test_without_successors_the_unknown_last_step_is_dropped():
    dataset = Dataset.from_arrays(**log())
    found = everything(dataset)
    np.testing.assert_array_equal(found.observation.ravel(), [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(found.next_observation.ravel(), [2, 3, 0, 5, 6])
    np.testing.assert_array_equal(found.discount, [0.5, 0.5, 0, 0.5, 0.5])
    assert dataset.spec.actions == 3 and found.observation.dtype == np.float32
    np.testing.assert_array_equal(dataset.episodes.cut, [False, True])


def test_without_successors_a_truncated_episode_ends_one_step_early():
    truncated = np.isin(np.arange(6), [2, 3])
    dataset = Dataset.from_arrays(**log(terminals=np.zeros(6, bool), truncations=truncated))
    found = everything(dataset)
    np.testing.assert_array_equal(found.observation.ravel(), [1, 2, 5])
    np.testing.assert_array_equal(found.next_observation.ravel(), [2, 3, 6])
    np.testing.assert_array_equal(dataset.episodes.truncated, [True, False])
    np.testing.assert_array_equal(dataset.stops, [2, 3])


def test_the_rewards_of_dropped_steps_are_said(caplog):
    """A reward that is paid when the time is up would be lost without a word."""
    Dataset.from_arrays(**log(rewards=[1, 1, 1, 1, 1, 2500.0]))
    (line,) = caplog.messages
    assert line == (
        "left out: 1 last step with an unknown successor, whose rewards sum to 2,500; next_observations= "
        "keeps them"
    )


def test_an_episode_that_goes_on_after_its_end_is_said(caplog):
    """Rows that are not in the order of time."""
    data = Dataset.from_arrays(**log(truncations=None), episodes=["a"] * 4 + ["b"] * 2)
    assert len(data.episodes.lengths) == 2
    assert "episode a goes on after row 2, which is marked as an end" in caplog.text


@pytest.mark.parametrize("name", ["observations", "actions", "rewards", "terminals"])
def test_masked_values_are_refused(name):
    hidden = np.ma.masked_array(log()[name], mask=np.arange(6).reshape(log()[name].shape) == 1)
    with pytest.raises(DataError, match=f"{name} have masked values: fill them"):
        Dataset.from_arrays(**log(**{name: hidden}))


def test_with_successors_nothing_is_lost():
    successors = np.array([2, 3, 30, 5, 6, 70], float)[:, None]
    dataset = Dataset.from_arrays(**log(), next_observations=successors)
    found = everything(dataset)
    np.testing.assert_array_equal(found.observation.ravel(), [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(found.next_observation, successors)
    np.testing.assert_array_equal(found.discount, [0.5, 0.5, 0, 0.5, 0.5, 0.5])


def test_shuffled_transitions_become_episodes_of_one_step():
    order = np.array([3, 0, 5, 1, 4, 2])
    given = {name: column[order] for name, column in log(truncations=None).items()}
    successors = (order + 2.0)[:, None]
    found = everything(Dataset.from_arrays(**given, truncations=True, next_observations=successors))
    np.testing.assert_array_equal(found.observation.ravel(), order + 1)
    np.testing.assert_array_equal(found.next_observation, successors)
    np.testing.assert_array_equal(found.discount, np.where(order == 2, 0, 0.5))


def test_random_logs_with_successors_come_back_exactly():
    random = np.random.default_rng(0)
    observations = random.integers(0, 3, (500, 2)).astype(np.uint8)
    successors = np.where(random.random((500, 1)) < 0.7, np.roll(observations, -1, axis=0), 7).astype(
        np.uint8
    )
    terminals, truncated = random.random((2, 500)) < 0.1
    truncated[:-1] |= (observations[1:] != successors[:-1]).any(axis=1)
    rewards = random.normal(size=500)
    dataset = Dataset.from_arrays(
        observations, random.integers(0, 4, 500), rewards, terminals, truncated, next_observations=successors
    )
    found = everything(dataset)
    np.testing.assert_array_equal(found.observation, observations)
    np.testing.assert_array_equal(found.next_observation, successors)
    np.testing.assert_allclose(found.reward, rewards, rtol=1e-6)


def test_vector_actions_take_their_bounds_from_the_data_or_the_caller():
    actions = np.linspace(-1, 1, 12).reshape(6, 2)
    spec = Dataset.from_arrays(**log(actions=actions)).spec
    assert not spec.discrete and spec.action_low[0] == -1.0 and spec.action_high[1] == 1.0
    spec = Dataset.from_arrays(**log(actions=actions), action_low=-2, action_high=(2, 3)).spec
    assert spec.action_low == (-2.0, -2.0) and spec.action_high == (2.0, 3.0)


def test_whole_numbers_are_vectors_if_they_have_bounds_or_several_stand_in_a_row():
    assert Dataset.from_arrays(**log(), action_low=0).spec.action_high == (2.0,)
    assert Dataset.from_arrays(**log(actions=np.ones((6, 2), int))).spec.action_shape == (2,)


def test_an_action_may_leave_its_box_by_a_rounding_error():
    actions = np.full((6, 1), 0.1, np.float32)
    assert float(actions[0, 0]) > 0.1
    assert Dataset.from_arrays(**log(actions=actions), action_low=0, action_high=0.1).spec.action_high == (
        0.1,
    )


def test_stacks_count_and_contents_are_the_callers_choice():
    dataset = Dataset.from_arrays(**log(), actions_count=9, stack=3, provenance={"by": "me"})
    assert dataset.spec.actions == 9 and dataset.provenance["by"] == "me"
    np.testing.assert_array_equal(everything(dataset).observation[2], [1, 2, 3])
    assert dataset.fingerprint != Dataset.from_arrays(**log(), actions_count=9).fingerprint


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rewards": np.zeros(5)}, "rewards"),
        ({"rewards": np.array([0, 0, np.nan, 0, 0, 0])}, "row 2"),
        ({"rewards": np.array([{}] * 6)}, "object"),
        ({"actions": np.array([0, 1, 9, 0, 0, 0]), "actions_count": 4}, "0 to 3"),
        ({"actions": np.zeros(5, int)}, "actions"),
        ({"actions": np.full((6, 2), np.inf)}, "infinity"),
        ({"actions": np.array([0, 1, -1, 0, 0, 0]), "actions_count": 2}, "-1"),
        (
            {"actions": np.array(["a", "b", None, "a", "a", "a"])},
            "row 2 is None: give a whole number or a name",
        ),
        (
            {"actions": np.array(["a", "b", np.nan, "a", "a", "a"], object)},
            "row 2 is nan: give a whole number or a name",
        ),
        (
            {"episodes": [0, 0, 0, 1, 1, 1]},
            "episode 1 ends in row 5 without a terminal step, but --truncations no .truncations=False",
        ),
        ({"actions": np.array(["a", 1, "a", "a", "a", "a"], object)}, "all of them as texts"),
        ({"actions": np.full(6, 2**63, np.uint64)}, "give them as texts"),
        ({"actions": np.full(6, 1e17)}, "not exact"),
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
        ({"actions_count": 20_000}, "20,000 different actions: at most 10,000"),
        ({"observations": [[1.0], [1.0, 2.0]] * 3}, "observations have rows of different lengths"),
        ({"actions": [[1.0], [1.0, 2.0]] * 3}, "actions have rows of different lengths"),
        ({"observations": np.full((6, 2), 2**24 + 1)}, "first in row 0., which float32 cannot hold"),
        ({"observations": np.array([["a"]] * 6)}, "type <U1"),
        ({"observations": np.array([[None]] * 6)}, "hold None in row 0, which is no number"),
        (
            {"observations": np.array([[1.5, True]] * 5 + [[1, "2"]], object)},
            "hold 2 in row 5, .*get_dummies",
        ),
        (
            {"observations": np.array([[0.5, 2**24 + 1]] * 6, object)},
            "float32 cannot hold .feature 1, first in row 0.: .* subtract a constant from times",
        ),
        (
            {"observations": np.stack([np.linspace(0, 1, 6), 1.7e9 + 64 * np.arange(6)], axis=1)},
            "float32 cannot hold .feature 1, first in row 1",
        ),
        (
            {"observations": np.stack([np.linspace(0, 1, 6), 1.7e9 + 6e6 * np.arange(6) + 0.5], axis=1)},
            r"observations .feature 1. are near 1.73e\+09, .* in steps of 128",
        ),
        ({"observations": np.full((6, 1), np.nan)}, "NaN"),
        ({"observations": np.zeros((0, 1))}, "rows"),
        ({"terminals": np.full(6, 2)}, "true and false"),
        ({"truncations": np.zeros(3, bool)}, "truncations are .3,. bool: give 6"),
        ({"episodes": np.zeros(5)}, "give 6 rows"),
        ({"episodes": [0, 0, 0, 1, 0, 0]}, "episode 0 appears again near row 4, .* sort"),
        ({"episodes": [0, 0, np.nan, 1, 1, 1]}, "NaN or infinity .first in row 2"),
        ({"terminals": np.zeros(6, bool)}, "no step is terminal: give episodes"),
        ({"channels": "middle"}, 'channels="middle": give "first"'),
        ({"channels": "first"}, "channels= is for images"),
        ({"observations": np.zeros((6, 9, 9))}, 'give channels="last" if they are images of one channel'),
        ({"observations": np.zeros((6, 9, 9, 9), np.uint8)}, 'channels="first" if they are .n, c, h, w'),
        ({"observations": np.zeros((6, 3, 9, 3), np.uint8)}, 'channels="first" if they are .n, c, h, w'),
        ({"probabilities": np.array([1, 1, 0, 1, 1, 1])}, "probability in row 2 is 0: .* at most 1"),
        ({"probabilities": np.full(6, 1.5)}, "probability in row 0 is 1.5"),
        ({"probabilities": np.array([1, np.nan, 1, 1, 1, 1])}, "row 1"),
        ({"allowed_actions": np.ones((6, 2), bool)}, r"shape \(2,\) instead of \(3,\)"),
        ({"allowed_actions": np.ones((6, 2), bool)}, r"one value for each of 0, 1, 2; .*--actions-count"),
        ({"allowed_actions": np.arange(18).reshape(6, 3) > 5}, "action in row 0 is 0, which .* exclude"),
        (
            {"actions": np.array(list("badbad")), "allowed_actions": np.arange(18).reshape(6, 3) > 5},
            "action in row 0 is b, which .* exclude; .*: a mask has the order a, b, d",
        ),
        ({"actions": BOXED, "allowed_actions": np.ones((6, 2), bool)}, "these are vectors"),
        ({"next_observations": np.zeros((6, 2))}, r"shape \(2,\) instead of \(1,\)"),
        ({"stack": 0}, "stack"),
        ({"observations": np.full((6, 1), 1e39)}, "observations hold NaN or infinity"),
        ({"observations": np.full((6, 1), -np.inf)}, "observations hold NaN or infinity"),
        ({"next_observations": np.full((6, 1), np.nan)}, "next_observations hold NaN"),
        ({"rewards": np.full(6, 1e39)}, "rewards hold NaN or infinity .first in row 0"),
        ({"actions": np.full((6, 2), np.nan)}, "actions hold NaN"),
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
def test_what_does_not_fit_is_refused_in_one_line(changes, said):
    with pytest.raises(DataError, match=said) as refused:
        Dataset.from_arrays(**log(**changes))
    assert "\n" not in str(refused.value)


def test_a_log_that_leaves_no_transition_is_refused():
    with pytest.raises(DataError, match="no transition"):
        Dataset.from_arrays(**log(steps=1, terminals=[False], truncations=[False]))


TIME_LIMITED = np.array([427, 499, 499])  # the lengths of three episodes, the last two ended by a time limit


def time_limited():
    ends = np.cumsum(TIME_LIMITED)
    row = np.arange(ends[-1])
    return {
        "observations": row[:, None].astype(np.float32),
        "actions": row % 2,
        "rewards": np.ones(len(row)),
        "terminals": row == ends[0] - 1,
    }


def test_four_arrays_do_not_glue_time_limited_episodes_together():
    with pytest.raises(DataError, match="give truncations, episodes or next_observations; --truncations no"):
        Dataset.from_arrays(**time_limited())


@pytest.mark.parametrize("how", ["truncations", "episodes", "successors"])
def test_each_of_three_arguments_gives_the_true_episodes(how):
    given, ends = time_limited(), np.cumsum(TIME_LIMITED)
    flags = np.isin(np.arange(ends[-1]), ends[1:] - 1)
    options = {
        "truncations": {"truncations": flags},
        "episodes": {"episodes": np.repeat(["a", "c", "b"], TIME_LIMITED)},
        "successors": {
            "next_observations": given["observations"] + 1,
            "episodes": np.repeat([7, 9, 8], TIME_LIMITED),
        },
    }
    episodes = Dataset.from_arrays(**given, **options[how]).episodes
    lost = 0 if how == "successors" else 1  # the last step of a truncated episode has no known successor
    np.testing.assert_array_equal(episodes.lengths, TIME_LIMITED - [0, lost, lost])
    np.testing.assert_array_equal(episodes.terminal, [True, False, False])
    np.testing.assert_array_equal(episodes.truncated, [False, True, True])


def test_a_jump_that_no_end_explains_is_named_by_its_row():
    given = time_limited()
    successors = given["observations"] + 1
    successors[925] = 5000
    with pytest.raises(DataError, match="next observation of row 925 is not the observation of row 926"):
        Dataset.from_arrays(**given, next_observations=successors)
    flags = np.arange(len(successors)) == 925
    assert len(Dataset.from_arrays(**given, next_observations=successors, truncations=flags).episodes) == 3


def test_a_bandit_needs_no_other_ends():
    assert len(Dataset.from_arrays(**log(terminals=np.ones(6), truncations=None)).episodes) == 6


def images(*shape, dtype=np.uint8):
    return np.random.default_rng(0).integers(0, 2 if dtype is bool else 256, (6, *shape)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, bool])
def test_images_without_channels_are_images_and_not_vectors(dtype):
    pixels = images(84, 84, dtype=dtype)
    data = Dataset.from_arrays(**log(observations=pixels))
    assert data.spec.frame_shape == (84, 84, 1) and not data.spec.channels_first
    np.testing.assert_array_equal(data.observation(1), pixels[1, :, :, None])


def test_float_images_of_one_channel_are_asked_for():
    data = Dataset.from_arrays(**log(observations=images(9, 9) / 255), channels="last")
    assert data.spec.frame_shape == (9, 9, 1)


def test_channels_first_images_are_stored_channels_last_and_the_spec_knows():
    pixels = images(3, 84, 84)
    data = Dataset.from_arrays(**log(observations=pixels))
    assert data.spec.frame_shape == (84, 84, 3) and data.spec.channels_first
    np.testing.assert_array_equal(data.timeline.decoded()[1], np.moveaxis(pixels[1], 0, -1))
    last = Dataset.from_arrays(**log(observations=np.moveaxis(pixels, 1, -1)))
    assert not last.spec.channels_first
    np.testing.assert_array_equal(last.timeline.decoded(), data.timeline.decoded())


def test_observations_have_the_layout_that_the_caller_gave():
    """All sides of a cube are equal, so no policy could tell a turned one."""
    pixels = images(8, 8, 8)
    data = Dataset.from_arrays(**log(observations=pixels), channels="first", stack=2)
    np.testing.assert_array_equal(data.observation(1), np.concatenate(pixels[:2]))
    np.testing.assert_array_equal(data.episodes[0].frames[:3], pixels[:3])
    np.testing.assert_array_equal(data.episodes[0].observations[2], np.concatenate(pixels[1:3]))
    np.testing.assert_array_equal([*data.episodes[0]][1].next_observation, np.concatenate(pixels[1:3]))


def test_the_layout_of_ambiguous_images_is_what_the_caller_says():
    pixels = images(9, 8, 10)
    first, last = (
        Dataset.from_arrays(**log(observations=pixels), channels=c).spec for c in ("first", "last")
    )
    assert first.frame_shape == (8, 10, 9) and last.frame_shape == (9, 8, 10)


def test_whole_number_observations_keep_their_values():
    numbers = np.arange(12).reshape(6, 2) * 100_000
    data = Dataset.from_arrays(**log(observations=numbers))
    np.testing.assert_array_equal(data.observation(1), numbers[1])
    assert data.spec.frame_dtype == "float32"
    pixels = images(9, 9, 3).astype(np.int32)
    assert Dataset.from_arrays(**log(observations=pixels)).spec.frame_dtype == "uint8"


def test_a_data_frame_of_floats_and_flags_is_taken_as_numbers():
    """NumPy makes objects of it."""
    frame = pd.DataFrame({"inside": [20.5, 21.0] * 3, "open": [True, False] * 3, "hour": range(6)})
    assert np.asarray(frame).dtype == object
    found = Dataset.from_arrays(**log(observations=frame))
    assert found.spec.frame_dtype == "float32"
    np.testing.assert_array_equal(found.observation(0), [20.5, 1, 0])
    for missing in (None, pd.NA, "21"):
        frame = frame.astype(object)
        frame.iloc[3, 0] = missing
        with pytest.raises(DataError, match="in row 3, which is no number"):
            Dataset.from_arrays(**log(observations=frame))
    frame.iloc[3, 0] = np.nan
    with pytest.raises(DataError, match="NaN or infinity .first in row 3"):
        Dataset.from_arrays(**log(observations=frame))


def test_item_ids_become_few_actions_with_the_ids_as_names(caplog):
    ids = np.array([2_000_000, 17, 404, 17, 2_000_000, 404])
    data = Dataset.from_arrays(**log(actions=ids))
    assert data.spec.actions == 3 and data.spec.action_names == (17, 404, 2_000_000)
    np.testing.assert_array_equal(data.timeline.action, [2, 0, 1, 0, 2])
    assert (
        data.action_name(2) == 2_000_000
        and "the actions 17, 404, 2000000 have the numbers 0 to 2, in this order;" in caplog.text
    )
    np.testing.assert_array_equal(data.spec.named(data.timeline.action), ids[:5])
    assert "3 actions (17, 404, 2000000)" in repr(data)


@pytest.mark.parametrize(
    ("actions", "names"),
    [
        (["up", "down", "up"], ("down", "up")),
        ([b"up", b"down", b"up"], ("down", "up")),
        (np.array(["up", "down", "up"], object), ("down", "up")),
        ([-1, 1, -1], (-1, 1)),
        ([0, 63, 1], ()),
        ([0, 64, 1], (0, 1, 64)),
        ([*range(33), 64, 0], ()),
        ([*range(31), 64, 0], (*range(31), 64)),
        ([0, 9_999, 1], (0, 1, 9_999)),
        ([True, False, True], ()),
    ],
)
def test_which_actions_are_mapped(actions, names):
    spec = Dataset.from_arrays(
        **log(steps=len(actions), actions=actions, terminals=np.ones(len(actions)))
    ).spec
    assert spec.action_names == names and spec.actions == (len(names) or int(np.max(actions)) + 1)


def test_names_may_be_given_for_numbers_and_for_actions_that_never_occur():
    numbered = Dataset.from_arrays(**log(), action_names=["left", "stay", "right"])
    assert numbered.action_name(1) == "stay" and numbered.timeline.action[1] == 1
    named = Dataset.from_arrays(**log(actions=[7, 5, 7, 5, 7, 5]), action_names=[9, 7, 5])
    assert named.spec.actions == 3
    np.testing.assert_array_equal(named.timeline.action, [1, 2, 1, 2, 1])


def test_more_than_ten_thousand_actions_are_refused_with_the_reason():
    rows = 10_001
    given = log(steps=rows, actions=np.arange(rows) * 7, terminals=np.ones(rows, bool))
    with pytest.raises(
        DataError, match="10,001 different actions: at most 10,000 .* a network has an output"
    ):
        Dataset.from_arrays(**given)


@pytest.mark.parametrize("shape", [(6,), (6, 1)])
def test_whole_number_floats_are_discrete_and_it_is_said(caplog, shape):
    whole = np.array([0, 1, 2, 0, 1, 2], np.float32).reshape(shape)
    with caplog.at_level(logging.WARNING):
        data = Dataset.from_arrays(**log(actions=whole))
    assert data.spec.actions == 3 and data.timeline.action.dtype == np.int32
    assert "give their bounds, action_low and action_high (--action-low, --action-high)" in caplog.text
    assert Dataset.from_arrays(**log(actions=whole), action_low=0, action_high=2).spec.action_shape == (1,)
    assert Dataset.from_arrays(**log(actions=whole + 0.5)).spec.action_shape == (1,)


def test_probabilities_and_masks_stay_with_their_steps():
    probabilities = np.array([0.5, 0.25, 1, 0.1, 0.2, 0.3])
    masks = np.eye(3, dtype=bool)[np.arange(6) % 3] | (np.arange(6)[:, None] == 3)
    timeline = Dataset.from_arrays(**log(), probabilities=probabilities, allowed_actions=masks).timeline
    np.testing.assert_allclose(timeline.probability, probabilities[:5])
    np.testing.assert_array_equal(timeline.allowed[np.arange(5)], masks[:5])
    plain = Dataset.from_arrays(**log()).timeline
    assert plain.probability is None and plain.allowed is None


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
    made = Dataset.from_arrays(**log(actions=actions, allowed_actions=given(lists, frame)))
    np.testing.assert_array_equal(np.asarray(made.timeline.allowed), flags[: len(made)])
