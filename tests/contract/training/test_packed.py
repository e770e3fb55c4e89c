"""Frames that are packed on the device come back bit by bit, whatever they are."""

import jax
import numpy as np
import pytest
from benchmarks.homes import game_frames
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.data import Dataset, Sampler, Spec, from_arrays
from optimist.data.packing import GROUP, LINE, joined, nbytes, packed
from optimist.errors import UsageError
from optimist.training import feeding
from optimist.training.feeding import estimated_bytes, frames_at, on_device, sent

# The bytes of a frame fill its last word or not, and its words fill the last word of a mask or not.
SPECS = {
    "pixels": Spec((9, 7, 3), "uint8", actions=2),
    "flags": Spec((4, 8, 8), "bool", actions=2),
    "floats": Spec((5,), "float32", actions=2),
}
COUNT = 2 * GROUP + 37
unpacked = jax.jit(frames_at, static_argnames="spec")


def changing(spec: Spec, share: float, seed: int) -> np.ndarray:
    """Frames of which this share of the numbers differs from a picture, which changes now and then."""
    random = np.random.default_rng(seed)
    kind = np.dtype(spec.frame_dtype)

    def numbers(*shape: int) -> np.ndarray:
        if kind == np.float32:
            return random.normal(size=shape).astype(kind)
        return random.integers(0, 2 if kind.kind == "b" else 256, shape).astype(kind)

    pictures = np.repeat(numbers(3, *spec.frame_shape), -(-COUNT // 3), axis=0)[:COUNT]
    differs = random.random(pictures.shape) < share
    return np.where(differs, numbers(*pictures.shape), pictures)


@pytest.mark.parametrize("kind", SPECS)
@settings(max_examples=4)
@given(share=st.sampled_from([0, 0.01, 0.3, 1]), seed=st.integers(0, 2**32 - 1))
def test_unpacked_frames_are_the_frames(kind, share, seed):
    spec, random = SPECS[kind], np.random.default_rng(seed)
    frames = changing(spec, share, seed)
    code = joined([packed(frames[first : first + GROUP]) for first in range(0, COUNT, GROUP)])
    numbers = random.integers(0, COUNT, (13, 5))
    numbers[0, :2] = 0, COUNT - 1
    found = unpacked(code, numbers, spec=spec)
    assert found.dtype == frames.dtype
    np.testing.assert_array_equal(found, frames[numbers])


def test_a_log_in_which_nothing_ever_changes_has_no_words():
    frames = np.full((10, 4, 4, 1), 7, np.uint8)
    code = joined([packed(frames)])
    assert code.changed.shape == (1, LINE)
    found = unpacked(code, np.arange(10), spec=Spec((4, 4, 1), "uint8", actions=2))
    np.testing.assert_array_equal(found, frames)


@pytest.mark.parametrize("sizes", [[5], [3, 8, 1, 4], [2, 0, 7], [1, 1, 1, 1, 1]])
@pytest.mark.parametrize("block", [1, 4, 100])
def test_pieces_become_one_array_on_the_device_and_are_freed(sizes, block):
    pieces = [np.random.default_rng(size).integers(0, 2**32, (size, 3), np.uint32) for size in sizes]
    whole = np.concatenate(pieces)
    assert np.array_equal(sent(pieces, block), whole) and not pieces


def test_the_parts_of_a_long_log_are_sent_one_after_the_other(monkeypatch):
    frames = changing(SPECS["pixels"], 0.1, 0)
    ends = np.arange(COUNT) % 50 == 49
    log = from_arrays(frames, *np.zeros((2, COUNT), int), ends, truncations=False)
    one = on_device(log.timeline, np.arange(log.timeline.frame_count))
    monkeypatch.setattr(feeding, "AT_ONCE", 1)
    assert all(map(np.array_equal, one, on_device(log.timeline, np.arange(log.timeline.frame_count))))


def test_a_frame_that_differs_everywhere_takes_its_own_bytes_and_a_mask():
    random = np.random.default_rng(0)
    frames = random.integers(0, 256, (GROUP, 84, 84, 1)).astype(np.uint8)
    assert nbytes(packed(frames)) < 1.06 * frames.nbytes


@pytest.fixture(scope="module")
def game() -> Dataset:
    frames = game_frames(3_000)
    return from_arrays(
        observations=frames,
        actions=np.arange(3_000) % 2,
        rewards=np.zeros(3_000),
        terminals=np.arange(3_000) == 2_999,
        truncations=False,
    )


def test_a_game_takes_a_small_part_of_its_pixels_and_the_estimate_says_so(game):
    code = on_device(game.timeline, np.arange(game.timeline.frame_count))
    assert nbytes(code) < game.timeline.source.frame_bytes / 5
    assert abs(estimated_bytes(game.timeline) / nbytes(code) - 1) < 0.05


def test_the_resident_arrays_are_the_code_and_the_rows_and_nothing_else(game):
    frames, rows = feeding.DeviceFeed([Sampler(game)], packed=True).resident
    assert nbytes(frames) == nbytes(on_device(game.timeline, np.arange(game.timeline.frame_count)))
    assert sum(column.nbytes for column in jax.tree.leaves(rows)) == 28 * len(game)


def test_a_log_that_does_not_fit_is_refused_before_it_is_packed(game, monkeypatch):
    monkeypatch.setattr(feeding, "_device_bytes", lambda: 100_000)
    monkeypatch.setattr(feeding, "on_device", None)  # not even called
    with pytest.raises(UsageError, match="packed frames need about .* --feed compressed"):
        feeding.feed_of([Sampler(game)], "packed")
