"""Encoding of frames as bytes: each frame is compressed separately, so that it can be read alone."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import zstandard
from numpy.lib.stride_tricks import sliding_window_view

from optimist.data.transition import Spec
from optimist.errors import DataError

OFFSET_BYTES = 8  # per compressed frame, beside its bytes
TRAINING_FRAMES = 500
FEWEST_FRAMES_FOR_A_DICTIONARY = 256
LARGE = 4096  # bytes; smaller frames are a few flags, larger ones images
FEW_ROWS = 24  # of small frames: a loop is faster than one call for all of them
MOST_ROWS_AT_ONCE, BYTES_AT_ONCE = 1024, 2**26  # limits on the memory for decoding everything
THREADS = min(4, os.cpu_count() or 1)  # the bytes are the same for any number
MEND = "run `optimist data verify` on the dataset and restore the file from a copy"


@dataclass(frozen=True)
class Effort:
    """Compression settings; benchmarks/atari.py prints their effect."""

    level: int
    dictionary_bytes: int  # a reader keeps one dictionary per shard in memory
    segment_bytes: int  # of the dictionary's training; a search for better ones took ten times as long


SMALL_FRAMES = Effort(level=7, dictionary_bytes=4096, segment_bytes=1024)
# Measured on five Atari games: level 7 takes 1.5 times as long and saves 3%; level 3 takes a third of the
# time and needs 10% more. Bytes per frame: 242 with a dictionary of 4 KiB in short segments, 149 with 16 KiB
# in long ones, 138 with 32 KiB.
LARGE_FRAMES = Effort(level=5, dictionary_bytes=16384, segment_bytes=4096)


@dataclass(frozen=True)
class Encoded:
    """The bytes of many frames; without offsets they are uncompressed rows of one width."""

    data: Any  # a buffer, or rows of an array
    offsets: Any = None
    dictionary: bytes | None = None

    def __len__(self) -> int:
        return len(self.data) if self.offsets is None else len(self.offsets) - 1


def stored_frame_bytes(spec: Spec) -> int:
    """The bytes of one frame before compression; eight flags share a byte."""
    size = prod(spec.frame_shape)
    if spec.frame_dtype == "bool":
        return (size + 7) // 8
    return size * np.dtype(spec.frame_dtype).itemsize


def encode(frames: np.ndarray, spec: Spec) -> Encoded:
    """Compress frames one by one, with a dictionary if it helps; leave them plain if compression does not."""
    flat = frames.reshape(len(frames), prod(spec.frame_shape))
    if spec.frame_dtype == "float32":
        return Encoded(np.ascontiguousarray(flat))
    packed = np.packbits(flat, axis=1) if spec.frame_dtype == "bool" else np.ascontiguousarray(flat)
    effort = LARGE_FRAMES if packed.shape[1] >= LARGE else SMALL_FRAMES
    dictionary = _best_dictionary(packed, effort)
    blobs = _compressed(packed, dictionary, effort.level)
    lengths = np.fromiter(map(len, blobs), np.int64, len(blobs))
    if lengths.sum() + OFFSET_BYTES * len(blobs) >= packed.nbytes:
        return Encoded(packed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Encoded(memoryview(b"".join(blobs)), offsets, dictionary)


def _compressed(packed: np.ndarray, dictionary: bytes | None, level: int) -> Any:
    """The compressed bytes of each row."""
    compressor = zstandard.ZstdCompressor(
        level=level,
        dict_data=zstandard.ZstdCompressionDict(dictionary) if dictionary else None,
        write_checksum=True,
        write_content_size=True,
        write_dict_id=False,  # the shard holds its only dictionary; the number would cost 4 bytes a frame
    )
    rows: Any = np.ascontiguousarray(packed)
    if rows.nbytes < LARGE * THREADS:
        return [compressor.compress(row) for row in rows]
    count, size = rows.shape
    segments: Any = np.stack([np.arange(count) * size, np.full(count, size)], axis=1).astype(np.uint64)
    return compressor.multi_compress_to_buffer(zstandard.BufferWithSegments(rows, segments), threads=THREADS)


def _best_dictionary(packed: np.ndarray, effort: Effort) -> bytes | None:
    """A dictionary trained on some of these frames, if it saves more bytes in others than it takes."""
    if len(packed) < FEWEST_FRAMES_FOR_A_DICTIONARY:
        return None
    samples = [row.tobytes() for row in packed[:: max(2, len(packed) // TRAINING_FRAMES)]]
    try:
        trained = zstandard.train_dictionary(effort.dictionary_bytes, samples, k=effort.segment_bytes, d=8)
    except zstandard.ZstdError:
        return None  # the frames are too small or too similar to train on
    dictionary = trained.as_bytes()
    judged = packed[1 :: max(2, len(packed) // FEWEST_FRAMES_FOR_A_DICTIONARY)]
    plain, helped = (sum(map(len, _compressed(judged, tried, effort.level))) for tried in (None, dictionary))
    gain = (plain - helped) * len(packed) / len(judged)
    return dictionary if gain > len(dictionary) else None


class Decoder:
    """Decodes the frames of one shard; threads may share it."""

    def __init__(self, spec: Spec, encoded: Encoded, name: str):
        self.spec, self.name, self._frame_bytes = spec, name, stored_frame_bytes(spec)
        self._data = encoded.data
        # (start, stop) of every frame, without a copy of the offsets.
        self._borders = None if encoded.offsets is None else sliding_window_view(encoded.offsets, 2)
        dictionary = encoded.dictionary
        self._dictionary = zstandard.ZstdCompressionDict(dictionary) if dictionary else None

    def check(self) -> None:
        """Raise DataError if the first frame has another size than the spec's, which is looked at before
        memory for many frames is allocated, or if a float of any row is NaN or infinite."""
        if self._borders is not None and len(self._borders):
            start, stop = self._borders[0].tolist()
            try:
                self._check_sizes([self._data[start:stop]])
            except (zstandard.ZstdError, ValueError) as problem:
                raise DataError(f"{self.name}: a frame is damaged ({problem}); {MEND}") from problem
        floats = self._data if self.spec.frame_dtype == "float32" else ()
        for start in range(0, len(floats), self.rows_at_once):
            finite = np.isfinite(floats[start : start + self.rows_at_once]).all(axis=1)
            if not finite.all():
                row = start + finite.argmin()
                raise DataError(f"{self.name}: row {row} holds NaN or infinity; record it again without them")

    @property
    def rows_at_once(self) -> int:
        """A number of rows that can be decoded in little memory."""
        return max(1, min(MOST_ROWS_AT_ONCE, BYTES_AT_ONCE // self._frame_bytes))

    def decode(self, rows: np.ndarray) -> np.ndarray:
        """The frames of these rows, (n, *frame_shape)."""
        frames = np.empty((len(rows), *self.spec.frame_shape), self.spec.frame_dtype)
        self.decode_into(frames, rows)
        return frames

    def decode_into(self, frames: np.ndarray, rows: np.ndarray) -> None:
        """Fill a contiguous array with the frames of these rows."""
        flat = frames.reshape(len(rows), prod(self.spec.frame_shape))
        if self.spec.frame_dtype == "bool":
            packed = np.empty((len(rows), self._frame_bytes), np.uint8)
            self._unpack(packed, rows)
            flat[:] = np.unpackbits(packed, axis=1, count=flat.shape[1]).view(bool)
        else:
            self._unpack(flat, rows)

    def _unpack(self, packed: np.ndarray, rows: np.ndarray) -> None:
        if self._borders is None:
            packed[:] = self._data[rows]
            return
        data, size, target = self._data, self._frame_bytes, memoryview(packed.reshape(-1).data)
        blobs = [data[start:stop] for start, stop in self._borders[rows].tolist()]
        # A fresh decompressor each time: a kept one is neither thread-safe nor small.
        decompressor: Any = zstandard.ZstdDecompressor(dict_data=self._dictionary)
        try:
            if len(rows) < (FEW_ROWS if size < LARGE else 2):
                self._check_sizes(blobs)
                pixels: Iterable[Any] = map(decompressor.decompress, blobs)
            else:  # all of them in one call, during which other threads can run
                sizes = _sizes(len(blobs), size)
                pixels = decompressor.multi_decompress_to_buffer(blobs, decompressed_sizes=sizes)
            for start, frame in zip(range(0, len(target), size), pixels, strict=True):
                target[start : start + size] = frame
        except (zstandard.ZstdError, ValueError, MemoryError) as problem:
            raise DataError(f"{self.name}: a frame is damaged ({problem}); {MEND}") from problem

    def _check_sizes(self, blobs: list[memoryview]) -> None:
        """Raise ValueError for a header with another size: decompressing would allocate that many bytes."""
        if any(zstandard.frame_content_size(blob) != self._frame_bytes for blob in blobs):
            raise ValueError(f"its header does not say {self._frame_bytes} bytes")


@lru_cache(maxsize=32)
def _sizes(count: int, size: int) -> Any:
    return np.full(count, size, np.uint64)
