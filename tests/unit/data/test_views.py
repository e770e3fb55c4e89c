"""Views select by time, at random or by return, and each is a dataset itself. Their episodes are both columns
and sequences, whose transitions are those of sampling."""

import numpy as np
import pytest

from little import pixels, vectors
from optimist.data import Sampler, open_dataset, transitions, views
from optimist.errors import DataError
from reference import SPECS, record


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    record(folder, SPECS["pixels"], lanes=3, rows=100)
    record(folder, SPECS["pixels"], lanes=2, rows=40, seed=9)
    return open_dataset(folder)


def times(view):
    return np.sort(view.timeline.time[view.steps()])


@pytest.mark.parametrize("count", [1, 2, 77, 300, 379])
def test_first_and_last_are_by_experienced_time_across_lanes(dataset, count):
    np.testing.assert_array_equal(times(dataset.first(count)), np.arange(count))
    np.testing.assert_array_equal(times(dataset.last(count)), np.arange(len(dataset) - count, len(dataset)))
    np.testing.assert_array_equal(times(dataset.first(300).last(10)), np.arange(290, 300))


def test_asking_for_more_than_there_is_gives_everything(dataset):
    assert len(dataset.first(10**9)) == len(dataset.last(10**9)) == len(dataset) == 380


def test_ranges_stay_inside_episodes(dataset):
    for view in (dataset.first(111), dataset.last(111), dataset.fraction(0.3), dataset.best(0.2)):
        assert (view.stops > view.starts).all() and (np.diff(view.starts) > 0).all()
        episode = view.timeline.episode_of
        np.testing.assert_array_equal(episode(view.starts), episode(view.stops - 1))
        assert len(view) == (view.stops - view.starts).sum()


def test_a_fraction_keeps_whole_trajectories_and_follows_the_seed(dataset):
    view = dataset.fraction(0.25, seed=1)
    assert len(view.starts) == round(0.25 * len(dataset.starts))
    ranges, whole = (set(zip(each.starts, each.stops, strict=True)) for each in (view, dataset))
    assert ranges < whole
    np.testing.assert_array_equal(view.starts, dataset.fraction(0.25, seed=1).starts)
    assert set(view.starts) != set(dataset.fraction(0.25, seed=2).starts)


def test_the_best_are_complete_and_no_other_complete_one_is_better(dataset):
    view = dataset.best(0.1)
    complete = dataset.episodes.returns[dataset.episodes.complete]
    np.testing.assert_allclose(np.sort(view.episodes.returns), np.sort(complete)[-len(view.starts) :])
    assert view.episodes.complete.all() and len(view.starts) == round(0.1 * len(complete))


def test_an_episode_cut_by_a_view_is_not_complete(dataset):
    number = np.flatnonzero(dataset.episodes.complete & (dataset.episodes.lengths > 1))[0]
    start, stop = dataset.starts[number], dataset.stops[number]
    view = dataset.last(len(dataset) - 1 - dataset.timeline.time[start])  # loses the episode's first step
    cut = np.flatnonzero(view.starts == start + 1)[0]
    assert view.stops[cut] == stop and view.episodes.cut[cut]
    assert view.episodes.complete.any()


def test_views_have_their_own_fingerprints(dataset):
    parts = [dataset.first(9), dataset.last(9), dataset.fraction(0.5), dataset.fraction(0.5, seed=1)]
    views = [dataset, *parts, dataset.best(0.5)]
    assert len({view.fingerprint for view in views}) == len(views)
    assert dataset.first(9).fingerprint == dataset.first(9).fingerprint


@pytest.mark.parametrize(
    "ask", [lambda d: d.first(0), lambda d: d.last(-3), lambda d: d.fraction(0), lambda d: d.best(1.1)]
)
def test_empty_views_are_refused(dataset, ask):
    with pytest.raises(DataError):
        ask(dataset)


def test_the_best_of_no_complete_episode_is_refused(tmp_path):
    record(tmp_path, SPECS["pixels"], rows=10, ends=0)
    with pytest.raises(DataError, match="complete"):
        open_dataset(tmp_path).best(0.5)


def test_a_held_out_part_and_the_rest_are_the_whole(dataset):
    """Whole episodes, at random by the seed; each part has its own fingerprint."""
    kept, held = dataset.hold_out(0.2, seed=3)
    assert len(held.starts) == round(0.2 * len(dataset.starts))
    both = np.sort(np.concatenate([kept.starts, held.starts]))
    np.testing.assert_array_equal(both, dataset.starts)
    assert len(kept) + len(held) == len(dataset)
    np.testing.assert_array_equal(held.starts, dataset.hold_out(0.2, seed=3)[1].starts)
    assert set(held.starts) != set(dataset.hold_out(0.2, seed=4)[1].starts)
    assert len({dataset.fingerprint, kept.fingerprint, held.fingerprint}) == 3
    assert kept.fingerprint == dataset.hold_out(0.2, seed=3)[0].fingerprint


def test_neither_part_is_ever_empty(dataset):
    few = dataset.best(0.05)
    assert len(few.starts) >= 2
    for share in (1e-9, 1 - 1e-9):
        kept, held = few.hold_out(share)
        assert len(kept.starts) and len(held.starts)
    for data, share in ((dataset, 0), (dataset, 1), (dataset, -0.1), (dataset.first(1), 0.5)):
        with pytest.raises(DataError, match="cannot be held back"):
            data.hold_out(share)
    with pytest.raises(DataError, match="a share of 0.5 of 1 episode cannot be held back"):
        dataset.first(1).hold_out(0.5)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return pixels(tmp_path_factory.mktemp("pixels"))


@pytest.mark.parametrize("part", [lambda data: data, lambda data: data.last(70)], ids=["all", "a view"])
def test_iterating_over_every_episode_gives_every_transition(images, part, monkeypatch):
    monkeypatch.setattr(views, "STEPS_AT_ONCE", 3)
    data = part(images)
    wanted = transitions(Sampler(data, gamma=1.0), np.arange(len(data)), data.timeline.frames)
    found = [step for episode in data.episodes for step in episode]
    assert len(found) == len(data)
    for name in wanted._fields:
        every = np.stack([getattr(step, name) for step in found])
        np.testing.assert_array_equal(every, getattr(wanted, name))


def test_an_episode_has_its_own_columns(images):
    episodes = images.episodes
    assert len(episodes) == len(images.starts) == len(episodes.lengths)
    last = episodes[-1]
    assert last.length == len(last) == episodes.lengths[-1]
    assert last.rewards.sum() == pytest.approx(last.return_) and last.return_ == episodes.returns[-1]
    assert last.actions.shape == (last.length,)
    assert last.observations.shape == (last.length + 1, *images.spec.observation_shape)
    assert last.frames.shape == (last.length + 1, *images.spec.frame_shape)
    np.testing.assert_array_equal(last.observations[0][..., -1:], last.frames[0])
    assert [episode.length for episode in episodes[:2]] == episodes.lengths[:2].tolist()
    with pytest.raises(IndexError):
        episodes[len(episodes)]


def test_what_is_printed_says_what_it_is(images):
    whole = images.episodes[int(np.flatnonzero(images.episodes.terminal)[0])]
    assert repr(whole).endswith("terminal")
    lines = repr(images).splitlines()
    assert lines[0].startswith(f"Dataset: 180 steps in {len(images.episodes)} episodes, ")
    assert "6x5x1 uint8 frames, 4 stacked; 3 actions" in lines[1] and str(images.path) in lines[2]
    assert "vectors of 4 float32; 2 actions" in repr(vectors()) and "in memory" in repr(vectors())
