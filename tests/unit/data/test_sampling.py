"""Batches are uniform and repeatable, and equal the plain-loop reference in every position."""

import itertools

import numpy as np
import pytest

from optimist.data import Sampler, from_arrays, open_dataset, transitions
from optimist.data.disk import reader as reading
from optimist.data.sampling import window
from optimist.data.timeline import decoded_stacks
from optimist.errors import DataError
from reference import SPECS, episodes_of, record, slow_transition

OPTIONS = [(1, None), (3, 1.0), (5, None), (50, 0.5)]


def reference_positions(view, episodes):
    """(episode, index, stop) of every position of a view, by counting."""
    first_of_episode = list(itertools.accumulate((len(e) for e in episodes), initial=0))
    for start, stop in zip(view.starts.tolist(), view.stops.tolist(), strict=True):
        number = max(n for n, first in enumerate(first_of_episode) if first <= start and n < len(episodes))
        first = first_of_episode[number]
        for step in range(start, stop):
            yield episodes[number], step - first, stop - first


@pytest.fixture(scope="module", params=SPECS)
def played(request, tmp_path_factory):
    """A recording of two sessions, and its episodes."""
    folder, spec = tmp_path_factory.mktemp(request.param), SPECS[request.param]
    lanes = record(folder, spec, lanes=3, rows=120, shard_steps=50)
    lanes += record(folder, spec, lanes=2, rows=60, seed=4)
    return open_dataset(folder), episodes_of(lanes)


@pytest.mark.parametrize(("n_step", "clip"), OPTIONS)
@pytest.mark.parametrize("view", ["all", "first", "last"])
def test_every_transition_equals_the_slow_reference(played, n_step, clip, view):
    dataset, episodes = played
    dataset = {"all": dataset, "first": dataset.first(300), "last": dataset.last(211)}[view]
    sampler = Sampler(dataset, gamma=0.9, n_step=n_step, clip=clip)
    expected = [
        slow_transition(e, i, stop=stop, stack=dataset.spec.stack, n_step=n_step, gamma=0.9, clip=clip)
        for e, i, stop in reference_positions(dataset, episodes)
    ]
    assert len(expected) == len(dataset)
    order = np.random.default_rng(0).permutation(len(dataset))
    found = transitions(sampler, order, dataset.timeline.frames)
    for column, values in zip(found[:5], zip(*(expected[i] for i in order), strict=True), strict=True):
        np.testing.assert_allclose(column, np.stack(values), rtol=1e-5, atol=1e-6)
    assert found.observation.shape[1:] == dataset.spec.observation_shape
    assert found.observation.dtype == dataset.spec.frame_dtype
    assert found.reward.dtype == found.discount.dtype == np.float32


def test_all_rows_are_the_rows_of_every_position(played):
    dataset, _ = played
    sampler = Sampler(dataset, n_step=3)
    positions = np.random.default_rng(1).integers(0, len(dataset), (4, 9))
    rows, every = sampler.rows(positions), sampler.all_rows()
    missing = [name for name, column in rows._asdict().items() if column is None]
    masks, next_actions = ["allowed", "next_allowed"], ["next_action", "next_logged"]
    assert missing == [*masks, *next_actions]  # none was logged, and nobody asks for next actions
    for some, column in zip(rows, every, strict=True):
        if column is not None:
            np.testing.assert_array_equal(some, column[positions])


def test_each_frame_is_asked_for_once():
    asked = []

    def frames_of(numbers):
        asked.extend(numbers.tolist())
        return np.zeros((len(numbers), 2, 1), np.uint8)

    decoded_stacks(frames_of, np.array([[5, 6], [6, 3]]), np.array([[3, 3], [3, 0]]), stack=4)
    assert sorted(asked) == [2, 3, 4, 5, 6]


def test_stack_is_black_before_the_episode_starts():
    frames = np.arange(1, 7, dtype=np.uint8).reshape(6, 1)
    found = decoded_stacks(frames.__getitem__, np.array([3, 3, 3]), np.array([0, 1, 2]), stack=3)
    np.testing.assert_array_equal(found, [[0, 0, 4], [0, 3, 4], [2, 3, 4]])


def dataset_of(steps):
    zeros = np.zeros(steps, int)
    return from_arrays(zeros[:, None] > 0, zeros, zeros, zeros == 0)


def test_positions_do_not_depend_on_how_they_are_asked_for():
    sampler = Sampler(dataset_of(1000), batch=7, seed=3)
    whole = sampler.positions(0, 1500)
    assert whole.shape == (1500, 7) and whole.dtype == np.int64
    borders = np.sort(np.random.default_rng(0).integers(0, 1500, 20))
    parts = [sampler.positions(a, b - a) for a, b in itertools.pairwise([0, *borders.tolist(), 1500])]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert sampler.positions(4, 0).shape == (0, 7)


def test_positions_differ_by_seed_and_by_dataset():
    data, other = dataset_of(1000), dataset_of(1001)
    drawn = [Sampler(data, seed=s).positions(0, 9) for s in (0, 1)] + [Sampler(other).positions(0, 9)]
    for one, two in itertools.combinations(drawn, 2):
        assert (one == two).mean() < 0.05
    np.testing.assert_array_equal(Sampler(dataset_of(1000)).positions(0, 9), drawn[0])


@pytest.mark.parametrize("steps", [2, 37, 1000])
def test_positions_are_uniform_and_reach_both_ends(steps):
    drawn = Sampler(dataset_of(steps)).positions(0, 20_000).ravel()
    counts = np.bincount(drawn, minlength=steps)
    assert len(counts) == steps and counts[0] and counts[-1]
    expected = drawn.size / steps
    chi_square = ((counts - expected) ** 2 / expected).sum()
    degrees = steps - 1
    assert abs(chi_square - degrees) < 5 * np.sqrt(2 * degrees)


def test_the_first_positions_are_pinned():
    """A changed generator would silently change every resumed run."""
    data = dataset_of(100)
    pinned = [[76, 20, 92, 46, 18, 18], [92, 23, 65, 17, 8, 93]]
    assert Sampler(data, batch=6).positions(255, 2).tolist() == pinned


def test_the_number_of_threads_changes_no_frame(played, monkeypatch):
    found = []
    monkeypatch.setattr(reading, "BYTES_WORTH_THREADS", 0)
    for threads in (1, 2, 4):
        monkeypatch.setattr(reading, "THREADS", threads)
        dataset = open_dataset(played[0].path)
        sampler = Sampler(dataset)
        found.append(transitions(sampler, sampler.positions(0, 40), dataset.timeline.frames))
    for other in found[1:]:
        for here, there in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("n_step", [1, 2, 3, 9])
def test_a_window_holds_the_stack_and_its_successor(played, n_step):
    dataset, _ = played
    sampler, stack = Sampler(dataset, n_step=n_step), dataset.spec.stack
    rows = sampler.all_rows()
    numbers = window(rows, stack, n_step)
    assert numbers.shape == (len(dataset), stack + 1 if n_step == 1 else 2 * stack)
    back = np.arange(stack - 1, -1, -1)
    for held, frame, age in (
        (numbers[:, :stack], rows.frame, rows.age),
        (numbers[:, -stack:], rows.next_frame, rows.next_age),
    ):
        exists = back <= age[:, None]
        np.testing.assert_array_equal(held[exists], (frame[:, None] - back)[exists])
    assert numbers.min() >= 0 and numbers.max() < dataset.timeline.frame_count


@pytest.mark.parametrize("options", [{"batch": 0}, {"n_step": 0}, {"gamma": 1.5}])
def test_senseless_options_are_refused(options):
    with pytest.raises(DataError):
        Sampler(dataset_of(3), **options)
