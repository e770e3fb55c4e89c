"""Plain arrays become a dataset in one call; steps with an unknown successor are dropped."""

import numpy as np
import pytest

from optimist.data import Dataset, Sampler, transitions
from optimist.errors import DataError


def log(steps=6, **changes):
    given = {
        "observations": np.arange(steps, dtype=np.float64)[:, None] + 1,
        "actions": np.arange(steps) % 3,
        "rewards": np.arange(steps),
        "terminals": np.isin(np.arange(steps), [2]),
    }
    return given | changes


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
    dataset = Dataset.from_arrays(**log(terminals=np.zeros(6, bool), truncated=truncated))
    found = everything(dataset)
    np.testing.assert_array_equal(found.observation.ravel(), [1, 2, 5])
    np.testing.assert_array_equal(found.next_observation.ravel(), [2, 3, 6])
    np.testing.assert_array_equal(dataset.episodes.truncated, [True, False])
    np.testing.assert_array_equal(dataset.stops, [2, 3])


def test_with_successors_nothing_is_lost():
    successors = np.array([2, 3, 30, 5, 6, 70], float)[:, None]
    dataset = Dataset.from_arrays(**log(), next_observations=successors)
    found = everything(dataset)
    np.testing.assert_array_equal(found.observation.ravel(), [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(found.next_observation, successors)
    np.testing.assert_array_equal(found.discount, [0.5, 0.5, 0, 0.5, 0.5, 0.5])


def test_shuffled_transitions_become_episodes_of_one_step():
    order = np.array([3, 0, 5, 1, 4, 2])
    given = {name: column[order] for name, column in log().items()}
    successors = (order + 2.0)[:, None]
    found = everything(Dataset.from_arrays(**given, next_observations=successors))
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


def test_an_action_may_leave_its_box_by_a_rounding_error():
    actions = np.full((6, 1), 0.1, np.float32)
    assert float(actions[0, 0]) > 0.1
    assert Dataset.from_arrays(**log(actions=actions), action_low=0, action_high=0.1).spec.action_high == (
        0.1,
    )


def test_stacks_count_and_contents_are_the_callers_choice():
    dataset = Dataset.from_arrays(**log(), actions_count=9, stack=3, provenance={"by": "me"})
    assert dataset.spec.actions == 9 and dataset.provenance == {"by": "me"}
    np.testing.assert_array_equal(everything(dataset).observation[2], [1, 2, 3])
    assert dataset.fingerprint != Dataset.from_arrays(**log(), actions_count=9).fingerprint


BOXED = np.linspace(-1, 1, 6)[:, None] * np.ones((6, 2))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rewards": np.zeros(5)}, "rewards"),
        ({"rewards": np.array([0, 0, np.nan, 0, 0, 0])}, "row 2"),
        ({"rewards": np.array([{}] * 6)}, "object"),
        ({"actions": np.array([0, 1, -1, 0, 0, 0])}, "-1"),
        ({"actions": np.array([0, 1, 9, 0, 0, 0]), "actions_count": 4}, "0 to 3"),
        ({"actions": np.zeros(5, int)}, "actions"),
        ({"actions": np.full((6, 2), np.inf)}, "infinity"),
        ({"actions": np.array(["left"] * 6)}, "whole numbers"),
        ({"observations": np.zeros(6)}, "shape"),
        ({"observations": np.zeros((6, 2), np.int64)}, "int64"),
        ({"observations": np.array([[None]] * 6)}, "object"),
        ({"observations": np.full((6, 1), np.nan)}, "NaN"),
        ({"observations": np.zeros((0, 1))}, "shape"),
        ({"terminals": np.full(6, 2)}, "true and false"),
        ({"truncated": np.zeros(3, bool)}, "truncated"),
        ({"next_observations": np.zeros((6, 2))}, "alike"),
        ({"stack": 0}, "stack"),
        ({"observations": np.full((6, 1), 1e39)}, "observations hold NaN or infinity"),
        ({"observations": np.full((6, 1), -np.inf)}, "observations hold NaN or infinity"),
        ({"next_observations": np.full((6, 1), np.nan)}, "next_observations hold NaN"),
        ({"rewards": np.full(6, 1e39)}, "rewards hold NaN or infinity .first in row 0"),
        ({"actions": np.full((6, 2), np.nan)}, "actions hold NaN"),
        ({"actions": BOXED, "action_low": -1, "action_high": 0.5}, r"in row 4 is .*, outside \(-1.0, -1.0\)"),
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
        Dataset.from_arrays(**log(steps=1, terminals=[False]))
