"""Frames never become more than they should, and are stored in the smaller of two ways."""

import numpy as np
import pytest
import zstandard
from damage import SPEC

from optimist.data import Spec
from optimist.data.codec import Decoder, Encoded, encode
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
