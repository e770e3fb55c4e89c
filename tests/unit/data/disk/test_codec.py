"""Damaged frames never unpack to more bytes than the spec says, and frames are stored in the smaller form."""

import numpy as np
import pytest
import zstandard

from damage import SPEC
from optimist.data import Spec
from optimist.data.disk import codec
from optimist.data.disk.codec import Decoder, Encoded, encode
from optimist.errors import DataError


@pytest.mark.parametrize("count", [1, 40])
def test_a_frame_that_claims_another_size_is_never_decoded(count):
    for size in (143, 145, 10_000_000):
        blob = zstandard.ZstdCompressor(write_checksum=True).compress(bytes(size))
        offsets = np.arange(count + 1) * len(blob)
        decoder = Decoder(SPEC, Encoded(memoryview(blob * count), offsets), "frames-000000.arrow")
        with pytest.raises(DataError, match="frames-000000.arrow"):
            decoder.decode(np.arange(count))


def test_a_small_frame_that_declares_a_tebibyte_is_refused_at_once():
    header = zstandard.FRAME_HEADER + bytes([0b11100000]) + (2**40).to_bytes(8, "little")
    decoder = Decoder(SPEC, Encoded(memoryview(header + bytes(9)), np.array([0, len(header) + 9])), "x.arrow")
    for rows in (np.zeros(1, int), np.zeros(64, int)):
        with pytest.raises(DataError, match="x.arrow"):
            decoder.decode(rows)


def test_noise_is_stored_plain_and_flags_eight_to_a_byte():
    random = np.random.default_rng(0)
    noise = random.integers(0, 2, (300, 10, 10, 4)).astype(bool)
    encoded = encode(noise, Spec((10, 10, 4), "bool", actions=2))
    assert encoded.offsets is None and encoded.data.shape == (300, 50)


def images(count: int) -> np.ndarray:
    """A square that moves on a still background: frames large enough to be compressed as images."""
    random = np.random.default_rng(3)
    frames = np.broadcast_to(random.integers(0, 256, (84, 84, 1)).astype(np.uint8), (count, 84, 84, 1)).copy()
    for frame, (row, column) in zip(frames, random.integers(0, 76, (count, 2)), strict=True):
        frame[row : row + 8, column : column + 8] = random.integers(256)
    return frames


def test_the_number_of_threads_changes_no_byte(monkeypatch):
    frames, spec = images(300), Spec((84, 84, 1), "uint8", actions=2)
    found = []
    for threads in (1, 2, 4):
        monkeypatch.setattr(codec, "THREADS", threads)
        found.append(encode(frames, spec))
    assert found[0].dictionary and len(found[0].data) < frames.nbytes / 20
    for other in found[1:]:
        assert bytes(other.data) == bytes(found[0].data) and other.dictionary == found[0].dictionary
        np.testing.assert_array_equal(other.offsets, found[0].offsets)


@pytest.mark.parametrize("count", [1, 7, 300])
def test_images_come_back_as_they_were_in_any_order(count):
    frames, spec = images(count), Spec((84, 84, 1), "uint8", actions=2)
    decoder = Decoder(spec, encode(frames, spec), "x.arrow")
    for rows in (np.arange(count)[::-1], np.zeros(3, int), np.empty(0, int)):
        np.testing.assert_array_equal(decoder.decode(rows), frames[rows])
