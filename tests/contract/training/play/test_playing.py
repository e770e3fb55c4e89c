"""Many rows as one program: the same play, the same learning, the same log as row by row."""

import os
import signal

import jax
import numpy as np
import pytest

from little import small
from optimist.data.dataset import Dataset
from optimist.training.online import OnlineTraining
from optimist.training.play import playing
from optimist.training.play.playing import PlannedRow, _without_cut
from optimist.training.settings import Collection
from optimist.training.terminal import Interrupted

COLLECTION = Collection(
    steps=303, lanes=3, window=240, warm_up=120, epsilon=0.1, epsilon_decay=200, update_period=3, batch=4
)


def collected(path, rows, monkeypatch, collection=COLLECTION, name="dqn"):
    monkeypatch.setattr(playing, "ROWS", rows)
    state = OnlineTraining(small(name), "minatar_jax/breakout", collection, out=path, seeds=(5, 6)).run()
    return state, Dataset.open(path)


def assert_same_log(one: Dataset, other: Dataset) -> None:
    for name in ("time", "lane", "action", "reward", "terminal", "truncated"):
        np.testing.assert_array_equal(
            getattr(one.timeline, name), getattr(other.timeline, name), err_msg=name
        )
    np.testing.assert_array_equal(
        *(data.timeline.frames(np.arange(len(data.timeline) + len(data.starts))) for data in (one, other))
    )


@pytest.mark.slow
def test_fused_rows_are_the_rows_one_by_one(tmp_path, monkeypatch):
    """Warm-up, learning, and the few rows at the end that do not fill a program."""
    fused_state, fused = collected(tmp_path / "fused", 16, monkeypatch)
    state, single = collected(tmp_path / "single", 10**9, monkeypatch)
    assert_same_log(fused, single)
    assert int(state.step) == int(fused_state.step) == (303 - 120) // 3
    for ours, theirs in zip(jax.tree.leaves(fused_state), jax.tree.leaves(state), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_stopped_between_two_programs_the_log_is_whole_and_play_goes_on(tmp_path, monkeypatch):
    turns = iter(range(100))
    go = playing.Playing.go

    def stopped(self, step):
        if next(turns) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return go(self, step)

    monkeypatch.setattr(playing.Playing, "go", stopped)
    with pytest.raises(Interrupted):
        collected(tmp_path, 16, monkeypatch)
    assert 0 < len(Dataset.open(tmp_path)) < 2 * 303
    _, data = collected(tmp_path, 16, monkeypatch)
    assert len(data) == 2 * 303


def test_what_was_drawn_from_a_row_that_is_truncated_is_replaced():
    rows, lanes, slots, first_slot = 4, 3, 10, 8
    cut = np.zeros((rows, lanes), bool)
    cut[1, 2] = cut[3, 0] = True  # slots 9 and 1
    slot, lane = np.meshgrid(np.arange(slots), np.arange(lanes))
    items = np.stack([slot.ravel(), lane.ravel()])[None, None].astype(np.int32)
    spares = items + 100
    chosen = np.asarray(_without_cut(cut, PlannedRow(0, 0, 0, 0, items, spares), first_slot, slots))
    for place, (ours, theirs) in enumerate(zip(chosen[0, 0].T, items[0, 0].T, strict=True)):
        refused = tuple(theirs) in {(9, 2), (1, 0)}
        np.testing.assert_array_equal(ours, theirs + 100 * refused, err_msg=str(place))
