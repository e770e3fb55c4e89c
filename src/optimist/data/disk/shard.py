"""A shard: one time slice of the recording as two Arrow files, steps and frames."""

import hashlib
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from optimist.data.disk.codec import Decoder, Encoded, encode, frame_bytes
from optimist.data.disk.files import File, checked_path, write_whole
from optimist.data.disk.manifest import Block, Shard
from optimist.data.transition import Spec
from optimist.errors import DataError

MEND = "restore it from a copy"


class Steps(NamedTuple):
    """The columns of steps, without frames."""

    lane: np.ndarray
    time: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminal: np.ndarray
    truncated: np.ndarray

    @classmethod
    def empty(cls, count: int, spec: Spec) -> "Steps":
        dtypes = (np.int32, np.int64, spec.action_dtype, np.float32, bool, bool)
        columns = [np.empty(count, dtype) for dtype in dtypes]
        columns[2] = np.empty((count, *spec.action_shape), spec.action_dtype)
        return cls(*columns)


def steps_schema(spec: Spec) -> pa.Schema:
    action = pa.int32() if spec.discrete else pa.list_(pa.float32(), len(spec.action_low))
    types = (pa.int32(), pa.int64(), action, pa.float32(), pa.bool_(), pa.bool_())
    return pa.schema(list(zip(Steps._fields, types, strict=True)))


def steps_content(steps: Steps, spec: Spec) -> pa.Buffer:
    columns = [pa.array(column) for column in steps if column.ndim == 1]
    if not spec.discrete:
        columns.insert(2, pa.FixedSizeListArray.from_arrays(steps.action.ravel(), len(spec.action_low)))
    return _arrow_file(pa.record_batch(columns, schema=steps_schema(spec)))


def frames_content(frames: np.ndarray, spec: Spec) -> pa.Buffer:
    encoded = encode(frames, spec)
    metadata: dict[str, str | bytes] = {"encoding": "plain" if encoded.offsets is None else "zstd"}
    if encoded.dictionary:
        metadata["dictionary"] = encoded.dictionary
    column = _frame_column(encoded, spec)
    schema = pa.schema([("frame", column.type)], metadata=metadata)
    return _arrow_file(pa.record_batch([column], schema=schema))


def write_shard(
    folder: Path, number: int, steps: Steps, frames: np.ndarray, blocks: tuple[Block, ...], spec: Spec
) -> Shard:
    """Write both files of a shard."""
    return Shard(
        steps=write_whole(folder / f"steps-{number:06d}.arrow", steps_content(steps, spec)),
        frames=write_whole(folder / f"frames-{number:06d}.arrow", frames_content(frames, spec)),
        blocks=blocks,
    )


def _frame_column(encoded: Encoded, spec: Spec) -> pa.Array:
    if encoded.offsets is not None:
        buffers = [None, pa.py_buffer(encoded.offsets), pa.py_buffer(encoded.data)]
        return pa.Array.from_buffers(pa.large_binary(), len(encoded), buffers)
    if spec.frame_dtype == "float32":
        return pa.FixedSizeListArray.from_arrays(encoded.data.ravel(), prod(spec.frame_shape))
    return pa.Array.from_buffers(_plain_type(spec), len(encoded), [None, pa.py_buffer(encoded.data)])


def _plain_type(spec: Spec) -> pa.DataType:
    if spec.frame_dtype == "float32":
        return pa.list_(pa.float32(), prod(spec.frame_shape))
    return pa.binary(frame_bytes(spec))


def _arrow_file(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def read_steps(folder: Path, file: File, rows: int, spec: Spec) -> Steps:
    """The columns of a steps file, after a check of its hash."""
    path = checked_path(folder, file)
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise DataError(f"{path} is damaged: its hash differs; {MEND}")
    batch = _batch(pa.BufferReader(content), path, rows, accepted=[steps_schema(spec)])
    columns = [batch.column(name) for name in Steps._fields]
    arrays = [_numpy(column) for column in columns]
    if not spec.discrete:
        arrays[2] = arrays[2].reshape(rows, len(spec.action_low))
    return Steps(*arrays)


def open_frames(folder: Path, file: File, rows: int, spec: Spec) -> Decoder:
    """A decoder over the memory map of a frames file; frames are read only when they are decoded."""
    path = checked_path(folder, file)
    accepted = [pa.schema([("frame", kind)]) for kind in (_plain_type(spec), pa.large_binary())]
    # Closing the map frees its descriptor; the column keeps the mapped pages.
    with _mapped(path) as source:
        batch = _batch(source, path, rows, accepted[: 1 if spec.frame_dtype == "float32" else 2])
    column = batch.column(0)
    if pa.types.is_large_binary(column.type):
        _, offsets, data = column.buffers()
        dictionary = (batch.schema.metadata or {}).get(b"dictionary")
        encoded = Encoded(memoryview(data or b""), np.frombuffer(offsets, np.int64, rows + 1), dictionary)
    elif spec.frame_dtype == "float32":
        encoded = Encoded(_numpy(column).reshape(rows, prod(spec.frame_shape)))
    else:
        pixels = np.frombuffer(column.buffers()[1], np.uint8, rows * frame_bytes(spec))
        encoded = Encoded(pixels.reshape(rows, -1))
    return Decoder(spec, encoded, str(path))


def _mapped(path: Path) -> pa.MemoryMappedFile:
    try:
        return pa.memory_map(str(path))
    except OSError as problem:
        raise DataError(f"{path} cannot be read ({problem}); {MEND}") from problem


def _batch(source, path: Path, rows: int, accepted: list[pa.Schema]) -> pa.RecordBatch:
    """The only record batch of an Arrow file, after all checks that safe reading needs."""
    try:
        reader = pa.ipc.open_file(source)
        if not any(reader.schema.equals(schema) for schema in accepted):
            found = ", ".join(f"{field.name} {field.type}" for field in reader.schema)
            wanted = ", ".join(f"{field.name} {field.type}" for field in accepted[0])
            raise DataError(f"{path} has the columns ({found}) instead of ({wanted}); {MEND}")
        if reader.num_record_batches != 1:
            raise DataError(f"{path} has {reader.num_record_batches} record batches instead of 1; {MEND}")
        batch = reader.get_batch(0)
        batch.validate(full=True)
    except (pa.ArrowException, OSError, MemoryError) as problem:
        reason = str(problem).partition("\n")[0]
        raise DataError(f"{path} is not a readable Arrow file ({reason}); {MEND}") from problem
    if batch.num_rows != rows or any(column.null_count or column.offset for column in batch.columns):
        raise DataError(f"{path} has {batch.num_rows} rows instead of {rows}, or empty ones; {MEND}")
    return batch


def _numpy(column: pa.Array) -> np.ndarray:
    values = column.flatten() if pa.types.is_fixed_size_list(column.type) else column
    return values.to_numpy(zero_copy_only=False)
