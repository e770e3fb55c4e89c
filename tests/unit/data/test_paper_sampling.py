"""The released code's sampling: five buffers of consecutive transitions for each iteration."""

import numpy as np
import pytest

from optimist.data import Dataset, Recorder, Sampler, Spec
from optimist.data.sampling import FiveBuffers

SIZE, LANES, LENGTH = 100, 4, 1_050  # a short buffer at the end, as in the public data


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    spec = Spec((1,), "float32", actions=2)
    with Recorder(folder, spec, lanes=LANES) as recorder:
        for _ in range(-(-LENGTH // LANES)):
            frame, no = np.zeros((LANES, 1), np.float32), np.zeros(LANES, bool)
            recorder.add(frame, np.zeros(LANES, np.int32), np.zeros(LANES), no, no, frame)
    return Dataset.open(folder).first(LENGTH)


@pytest.fixture(scope="module")
def sampler(dataset):
    return FiveBuffers(dataset, batch=8, seed=3, updates_per_load=400, buffer_size=SIZE)


def stretches(sampler, first_step: int, count: int) -> np.ndarray:
    """The buffer of each sampled transition, (count, batch)."""
    time = sampler.dataset.timeline.time[sampler.dataset.steps()]
    rank = np.argsort(np.argsort(time))
    return rank[sampler.positions(first_step, count)] // SIZE


def test_an_iteration_sees_five_stretches_and_another_sees_others(sampler):
    first, second = (set(np.unique(stretches(sampler, load * 400, 400))) for load in (0, 1))
    assert len(first) == len(second) == 5
    assert first != second


def test_a_minibatch_comes_from_one_stretch(sampler):
    drawn = stretches(sampler, 0, 2_000)
    assert (drawn == drawn[:, :1]).all()


def test_within_a_stretch_sampling_is_uniform(dataset):
    whole = FiveBuffers(dataset.first(SIZE), batch=50, seed=0, updates_per_load=400, buffer_size=SIZE)
    counts = np.bincount(whole.positions(0, 1_000).ravel(), minlength=SIZE)
    assert len(counts) == SIZE
    assert abs(counts - 500).max() < 5 * np.sqrt(500)


def test_the_short_stretch_is_chosen_as_often_as_the_others(sampler):
    chosen = np.concatenate([np.unique(sampler._loaded(load)) for load in range(2_200)])
    counts = np.bincount(chosen, minlength=11)
    assert abs(counts - 1_000).max() < 5 * np.sqrt(1_000)


def test_it_is_a_function_of_seed_and_step(sampler, dataset):
    again = FiveBuffers(dataset, batch=8, seed=3, updates_per_load=400, buffer_size=SIZE)
    np.testing.assert_array_equal(sampler.positions(300, 300), again.positions(0, 600)[300:])
    other = FiveBuffers(dataset, batch=8, seed=4, updates_per_load=400, buffer_size=SIZE)
    assert (other.positions(0, 10) != sampler.positions(0, 10)).any()


def test_fewer_stretches_than_five_are_all_loaded(dataset):
    few = FiveBuffers(dataset.first(250), batch=8, updates_per_load=400, buffer_size=SIZE)
    assert set(np.unique(stretches(few, 0, 400))) == {0, 1, 2}


def test_plain_sampling_sees_everything_at_once(dataset):
    assert set(np.unique(stretches(Sampler(dataset, batch=8, seed=3), 0, 400))) == set(range(11))
