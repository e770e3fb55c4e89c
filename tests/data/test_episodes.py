"""Episodes are both columns and sequences; their transitions are those of sampling."""

import numpy as np
import pytest

from little import pixels, vectors
from optimist.data import Sampler, transitions, views


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
