"""Where episodes end must be known, and steps with an unknown successor are dropped, alike by every door."""

import numpy as np
import pytest

from doors import assert_refused, everything, log

pytestmark = pytest.mark.usefixtures("quick_disk")
LENGTHS = np.array([427, 499, 499])  # of three episodes, the last two ended by a time limit
ENDS = np.cumsum(LENGTHS)
ROW = np.arange(ENDS[-1])
LIMITED = log(
    steps=len(ROW),
    observations=ROW[:, None].astype(np.float32),
    terminals=ENDS[0] - 1 == ROW,
    truncations=None,
)
SUCCESSORS = LIMITED["observations"] + 1


def test_without_successors_the_unknown_last_step_is_dropped(door):
    data = door(**log())
    found = everything(data)
    np.testing.assert_array_equal(found.observation.ravel(), [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(found.next_observation.ravel(), [2, 3, 0, 5, 6])
    np.testing.assert_array_equal(found.discount, [0.5, 0.5, 0, 0.5, 0.5])
    assert data.spec.actions == 3 and found.observation.dtype == np.float32
    np.testing.assert_array_equal(data.episodes.cut, [False, True])


def test_without_successors_a_truncated_episode_ends_one_step_early(door):
    data = door(**log(terminals=np.zeros(6, bool), truncations=np.isin(np.arange(6), [2, 3])))
    found = everything(data)
    np.testing.assert_array_equal(found.observation.ravel(), [1, 2, 5])
    np.testing.assert_array_equal(found.next_observation.ravel(), [2, 3, 6])
    np.testing.assert_array_equal(data.episodes.truncated, [True, False])
    np.testing.assert_array_equal(data.stops, [2, 3])


def test_with_successors_nothing_is_lost(door):
    successors = np.array([2, 3, 30, 5, 6, 70], float)[:, None]
    found = everything(door(**log(), next_observations=successors))
    np.testing.assert_array_equal(found.observation.ravel(), [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(found.next_observation, successors)
    np.testing.assert_array_equal(found.discount, [0.5, 0.5, 0, 0.5, 0.5, 0.5])


def test_shuffled_transitions_become_episodes_of_one_step(door):
    order = np.array([3, 0, 5, 1, 4, 2])
    given = {name: column[order] for name, column in log(truncations=None).items()}
    successors = (order + 2.0)[:, None]
    found = everything(door(**given, truncations=np.ones(6, bool), next_observations=successors))
    np.testing.assert_array_equal(found.observation.ravel(), order + 1)
    np.testing.assert_array_equal(found.next_observation, successors)
    np.testing.assert_array_equal(found.discount, np.where(order == 2, 0, 0.5))


def test_random_logs_with_successors_come_back_exactly(door):
    random = np.random.default_rng(0)
    observations = random.integers(0, 3, (500, 2)).astype(np.uint8)
    successors = np.where(random.random((500, 1)) < 0.7, np.roll(observations, -1, axis=0), 7)
    terminals, truncations = random.random((2, 500)) < 0.1
    truncations[:-1] |= (observations[1:] != successors[:-1]).any(axis=1)
    given = log(500, observations=observations, terminals=terminals, truncations=truncations)
    found = everything(door(**given, next_observations=successors.astype(np.uint8)))
    np.testing.assert_array_equal(found.observation, observations)
    np.testing.assert_array_equal(found.next_observation, successors)
    np.testing.assert_array_equal(found.reward, given["rewards"])


@pytest.mark.parametrize(
    ("more", "lost"),
    [
        ({"truncations": np.isin(ROW, ENDS[1:] - 1)}, 1),
        ({"episodes": np.repeat(["a", "c", "b"], LENGTHS)}, 1),
        ({"next_observations": SUCCESSORS, "episodes": np.repeat([7, 9, 8], LENGTHS)}, 0),
    ],
)
def test_each_of_three_arguments_gives_the_true_episodes(door, more, lost):
    """The last step of a truncated episode has a known successor only if it is given."""
    episodes = door(**LIMITED, **more).episodes
    np.testing.assert_array_equal(episodes.lengths, LENGTHS - [0, lost, lost])
    np.testing.assert_array_equal(episodes.terminal, [True, False, False])
    np.testing.assert_array_equal(episodes.truncated, [False, True, True])


def test_a_jump_is_refused_by_its_row_unless_an_end_explains_it(door):
    jumping, flags = np.where(ROW == 925, 5000, ROW + 1.0)[:, None], ROW == 925
    said = "next observation of row 925 is not the observation of row 926"
    assert_refused(door, {**LIMITED, "next_observations": jumping}, said)
    assert len(door(**LIMITED, next_observations=jumping, truncations=flags).episodes) == 3


def test_a_bandit_needs_no_other_ends(door):
    assert len(door(**log(terminals=np.ones(6), truncations=None)).episodes) == 6


@pytest.mark.parametrize("labels", [["a"] * 4 + ["b"] * 2, [7] * 4 + [3] * 2])
def test_an_episode_that_goes_on_after_its_end_is_said(door, caplog, labels):
    """Rows that are not in the order of time."""
    data = door(**log(truncations=None), episodes=labels)
    assert len(data.episodes.lengths) == 2
    said = f"episode {labels[0]} goes on after row 2, which is marked as an end"
    assert len([line for line in caplog.messages if said in line]) == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"truncations": None},
            "terminals do not show where time limits .*give truncations, episodes or next_observations; "
            "--truncations no",
        ),
        (
            {"episodes": [0, 0, 0, 1, 1, 1]},
            "episode 1 ends in row 5 without a terminal step, but --truncations no .truncations=False",
        ),
        ({"episodes": [0, 0, 0, 1, 0, 0]}, "episode 0 appears again near row 4, .* sort"),
        # "Omit --truncations no" would have hidden that the rows are not together.
        ({"episodes": [0, 1, 0, 1, 0, 1]}, "episode 0 appears again near row 2, .* sort the rows by episode"),
        ({"episodes": list("aabbaa")}, "episode a appears again near row 4, .* sort"),
        ({"episodes": [0, 0, np.nan, 1, 1, 1]}, "NaN or infinity .first in row 2"),
        ({"terminals": np.zeros(6, bool)}, "no step is terminal: give episodes"),
        ({"steps": 1, "terminals": [False], "truncations": [False]}, "no transition"),
        ({"steps": 0, "truncations": None}, "no rows"),
    ],
)
def test_ends_that_do_not_fit_are_refused_in_one_line(door, changes, said):
    assert_refused(door, log(**changes), said)
