"""However lanes interleave, the episodes that count are those that one player would have played."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optimist.training.evaluation import Lanes, Series

lengths = st.lists(st.integers(1, 12), min_size=1, max_size=60)


def one_after_the_other(lengths: list[int], steps: int) -> list[int]:
    """The numbers of the episodes that a single player finishes before it has done so many steps."""
    played, done = [], 0
    while done < steps:
        done += lengths[len(played) % len(lengths)]
        played.append(len(played))
    return played


def played_out(series: list[Series], lanes: int, lengths: list[list[int]]) -> None:
    """Lanes side by side; episode n of seed s takes lengths[s][n] steps and scores n."""
    who = Lanes(series, lanes)
    left = [_length(lengths, lane // lanes, who._number[lane]) for lane in range(lanes * len(series))]
    while any(each.counted() is None for each in series):
        left = [n - 1 for n in left]
        ended = np.array([n == 0 for n in left])
        reward = np.where(ended, [float(n or 0) for n in who._number], 0.0)
        who.add(reward, ended)
        left = [
            _length(lengths, lane // lanes, who._number[lane]) if over else n
            for lane, (n, over) in enumerate(zip(left, ended, strict=True))
        ]


def _length(lengths: list[list[int]], seed: int, number: int | None) -> int:
    return 10**6 if number is None else lengths[seed][number % len(lengths[seed])]


@given(lengths, lengths, st.integers(1, 200), st.integers(1, 9))
def test_the_episodes_that_count_are_those_of_one_player(first, second, steps, lanes):
    series = [Series(0, steps), Series(0, steps)]
    played_out(series, lanes, [first, second])
    for each, of_seed in zip(series, (first, second), strict=True):
        expected = one_after_the_other(of_seed, steps)
        assert each.counted() == [(float(n), of_seed[n % len(of_seed)]) for n in expected]


@given(lengths, st.integers(1, 20), st.integers(1, 9))
def test_so_many_episodes_are_the_first_so_many_to_begin(of_seed, episodes, lanes):
    series = Series(episodes, None)
    played_out([series], lanes, [of_seed])
    assert series.counted() == [(float(n), of_seed[n % len(of_seed)]) for n in range(episodes)]


def test_no_lane_begins_what_cannot_count():
    series = Series(0, steps=10)
    assert [series.begin(played) for played in (0, 0, 9, 10, 11)] == [0, 1, 2, None, None]
