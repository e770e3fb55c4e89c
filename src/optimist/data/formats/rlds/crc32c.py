"""The checksum of TFRecord files: CRC-32C (Castagnoli), many bytes at a time with numpy."""

from functools import cache

import numpy as np

POLYNOMIAL = 0x82F63B78  # reflected
BLOCK = 128  # bytes; the table of their terms takes 128 KiB and stays in the processor's cache
ROWS_AT_ONCE = 2**12


def crc32c(content: bytes | memoryview) -> int:
    """The CRC-32C of these bytes.

    The checksum is linear: every byte of a block adds a term that depends only on its value and its distance
    from the end. The register before a block acts like four more bytes, mixed into the first ones.
    """
    values, state = np.frombuffer(content, np.uint8), 0xFFFFFFFF
    short = len(values) % BLOCK
    for value in values[:short].tolist():
        state = state >> 8 ^ _nearest()[(state ^ value) & 0xFF]
    one, two, three, four = _leading()
    blocks, distance = values[short:].reshape(-1, BLOCK), np.arange(BLOCK - 1, -1, -1) * 256
    for start in range(0, len(blocks), ROWS_AT_ONCE):
        places = blocks[start : start + ROWS_AT_ONCE] + distance
        rows = _terms().ravel().take(places, mode="wrap")  # without a check of every place
        for block in np.bitwise_xor.reduce(rows, axis=1).tolist():
            state = (
                one[state & 0xFF]
                ^ two[state >> 8 & 0xFF]
                ^ three[state >> 16 & 0xFF]
                ^ four[state >> 24]
                ^ block
            )
    return state ^ 0xFFFFFFFF


def masked(content: bytes | memoryview) -> int:
    """The form in which TFRecord files store it."""
    crc = crc32c(content)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@cache
def _terms() -> np.ndarray:
    """The term of each value at each distance from the end, (BLOCK, 256)."""
    terms = np.empty((BLOCK, 256), np.uint32)
    first = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        first = np.where(first & 1, first >> 1 ^ np.uint32(POLYNOMIAL), first >> 1)
    terms[0] = first
    for distance in range(1, BLOCK):
        terms[distance] = terms[distance - 1] >> 8 ^ first[terms[distance - 1] & 0xFF]
    return terms


@cache
def _nearest() -> list[int]:
    """The terms of the last byte."""
    return _terms()[0].tolist()


@cache
def _leading() -> list[list[int]]:
    """The terms of the first four bytes of a block."""
    return _terms()[[BLOCK - 1, BLOCK - 2, BLOCK - 3, BLOCK - 4]].tolist()
