"""TFRecord files and the tf.train.Example in each record, read without TensorFlow.

A record is its length (8 bytes), a checksum of the length, its bytes, and a checksum of these. An Example is
a protocol buffer: a map from names to lists of bytes, floats or whole numbers.
"""

import gzip
import struct
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from optimist.errors import DataError

LARGEST_RECORD = 2**30  # bytes; an episode of Atari has a few MB
HEAD = struct.Struct("<QI")
MEND = "fetch it again"
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5  # the wire types of protocol buffers

Features = dict[str, Any]  # lists of bytes, or arrays


class BrokenError(ValueError):
    """Bytes that are not a tf.train.Example."""


def is_record_file(path: Path) -> bool:
    """Whether the file begins with the head of a record, plain or gzipped."""
    try:
        with _opened(path) as stream:
            head = stream.read(HEAD.size)
    except (OSError, EOFError, zlib.error):
        return False
    return len(head) == HEAD.size and masked(head[:8]) == HEAD.unpack(head)[1]


def _opened(path: Path) -> IO[bytes]:
    with open(path, "rb") as stream:
        is_gzip = stream.read(2) == b"\x1f\x8b"
    return gzip.open(path) if is_gzip else open(path, "rb")  # type: ignore[return-value]


def examples(path: Path) -> Iterator[Features]:
    """The features of every record, after a check of both checksums."""
    number = 0
    try:
        with _opened(path) as stream:
            while content := _record(stream, path, number):
                yield features(content)
                number += 1
    except BrokenError as problem:
        raise DataError(f"{path} record {number} is no tf.train.Example ({problem}); {MEND}") from None
    except (OSError, EOFError, zlib.error) as problem:
        raise DataError(f"{path} cannot be read after record {number} ({problem}); {MEND}") from None


def _record(stream: IO[bytes], path: Path, number: int) -> bytes:
    """The bytes of the next record; none at the end of the file."""
    head = stream.read(HEAD.size)
    if not head:
        return b""
    if len(head) < HEAD.size or masked(head[:8]) != HEAD.unpack(head)[1]:
        raise DataError(f"{path} record {number}: the checksum of its length is wrong; {MEND}")
    length = HEAD.unpack(head)[0]
    if length > LARGEST_RECORD:
        raise DataError(f"{path} record {number} has {length:,} bytes: at most {LARGEST_RECORD:,} are read")
    content = stream.read(length + 4)
    if len(content) < length + 4:
        raise DataError(f"{path} ends within record {number}; {MEND}")
    if masked(memoryview(content)[:length]) != int.from_bytes(content[length:], "little"):
        raise DataError(f"{path} record {number} is damaged: its checksum differs; {MEND}")
    return content[:length]


def features(content: bytes) -> Features:
    """The features of a tf.train.Example by name."""
    found: Features = {}
    for entry in _messages(memoryview(content), 1):
        for pair in _messages(entry, 1):
            name, value = b"", None
            for field, part in _fields(pair):
                if field == 1:
                    name = bytes(part)
                elif field == 2:
                    value = _values(part)
            try:
                found[name.decode()] = value
            except UnicodeDecodeError:
                raise BrokenError("a name that is not text") from None
    return found


def _messages(content: memoryview, number: int) -> Iterator[memoryview]:
    return (part for field, part in _fields(content) if field == number and isinstance(part, memoryview))


def _fields(content: memoryview) -> Iterator[tuple[int, Any]]:
    """The fields of a message: (number, bytes or whole number)."""
    place = 0
    while place < len(content):
        key, place = _varint(content, place)
        kind = key & 7
        if kind == VARINT:
            value, place = _varint(content, place)
            yield key >> 3, value
            continue
        if kind == LENGTH:
            size, place = _varint(content, place)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise BrokenError(f"a field of type {kind}")
        if place + size > len(content):
            raise BrokenError("a field that is longer than its message")
        yield key >> 3, content[place : place + size]
        place += size


def _varint(content: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    for byte in content[place : place + 10]:
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
    raise BrokenError("a number without an end")


def _values(feature: memoryview) -> Any:
    """A list of bytes, an array of float32, or an array of int64."""
    for kind, part in _fields(feature):
        values = [value for field, value in _fields(part) if field == 1]
        if kind == 1:
            return values
        if kind == 2:  # packed or one by one: the same bytes
            return np.frombuffer(b"".join(values), "<f4")
        if kind == 3:
            return np.array([each for value in values for each in _whole_numbers(value)], np.int64)
    return []


def _whole_numbers(value: Any) -> Iterator[int]:
    """One number, or those of a packed list; negative ones are stored as 64 bits."""
    if isinstance(value, int):
        yield value - (value >> 63 << 64)
        return
    place = 0
    while place < len(value):
        number, place = _varint(value, place)
        yield number - (number >> 63 << 64)


POLYNOMIAL = 0x82F63B78  # of CRC-32C, reflected
BLOCK = 128  # bytes that are checked together: the table of their terms stays in the processor's cache
BLOCKS_AT_ONCE = 2**12


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
    for start in range(0, len(blocks), BLOCKS_AT_ONCE):
        places = blocks[start : start + BLOCKS_AT_ONCE] + distance
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
