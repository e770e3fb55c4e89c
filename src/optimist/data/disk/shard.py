"""A shard: one time slice of the recording as two Arrow files, steps and frames."""

import hashlib
import os
from collections.abc import Collection
from math import prod
from pathlib import Path

import numpy as np
import pyarrow as pa

from optimist.data.disk.codec import Decoder, Encoded, encode, stored_frame_bytes
from optimist.data.disk.files import File, checked_path, remember, write_whole
from optimist.data.disk.manifest import Block, Shard
from optimist.data.transition import COLUMNS, NEXT, Column, Columns, Spec
from optimist.errors import DataError

MEND = "restore it from a copy"


def steps_schema(spec: Spec, optional: Collection[str] = ()) -> pa.Schema:
    """The columns of a steps file, with these optional ones."""
    kept = (column for column in COLUMNS if not column.is_optional or column.name in optional)
    return pa.schema([(column.name, _arrow_type(column, spec)) for column in kept])


def _arrow_type(column: Column, spec: Spec) -> pa.DataType:
    shape, dtype = column.shape(spec), column.dtype(spec)
    if not shape:
        return pa.from_numpy_dtype(dtype)
    return pa.binary(*shape) if dtype == np.uint8 else pa.list_(pa.from_numpy_dtype(dtype), *shape)


def steps_content(steps: Columns, spec: Spec) -> pa.Buffer:
    schema = steps_schema(spec, steps.keys())
    columns = [_column(steps[field.name], field.type) for field in schema]
    return _arrow_file(pa.record_batch(columns, schema=schema))


def frames_content(frames: np.ndarray, spec: Spec) -> pa.Buffer:
    encoded = encode(frames, spec)
    metadata: dict[str, str | bytes] = {"encoding": "plain" if encoded.offsets is None else "zstd"}
    if encoded.dictionary:
        metadata["dictionary"] = encoded.dictionary
    if encoded.offsets is None:
        column = _column(encoded.data, _plain_type(spec))
    else:
        buffers = [None, pa.py_buffer(encoded.offsets), pa.py_buffer(encoded.data)]
        column = pa.Array.from_buffers(pa.large_binary(), len(encoded), buffers)
    schema = pa.schema([("frame", column.type)], metadata=metadata)
    return _arrow_file(pa.record_batch([column], schema=schema))


def _column(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Numbers, flags, or rows of numbers or bytes as a column; `pa.array` would import pandas first."""
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(_column(values.ravel(), kind.value_type), kind.list_size)
    if pa.types.is_boolean(kind):
        content = np.packbits(values, bitorder="little")
    else:
        dtype = kind.to_pandas_dtype() if pa.types.is_primitive(kind) else None
        content = np.ascontiguousarray(values, dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(content)])


def write_shard(
    folder: Path,
    number: int,
    steps: Columns,
    frames: np.ndarray,
    spec: Spec,
    version: str = "",
) -> Shard:
    """Write both files of a shard, whose steps are sorted by lane and time; `version` is in the names."""
    name = f"{number:06d}{version}.arrow"
    return Shard(
        steps=write_whole(folder / f"steps-{name}", steps_content(steps, spec)),
        frames=write_whole(folder / f"frames-{name}", frames_content(frames, spec)),
        blocks=_blocks(steps),
    )


def _blocks(steps: Columns) -> tuple[Block, ...]:
    """The lanes of a shard. An episode that ends has one frame more than steps, and so has one that goes on
    at the end of its lane."""
    ended = steps["terminal"] | steps["truncated"]
    lanes, starts, counts = np.unique(steps["lane"], return_index=True, return_counts=True)
    closed = np.add.reduceat(ended, starts, dtype=np.int64)
    is_open = ~ended[starts + counts - 1]
    numbers = (lanes.tolist(), counts.tolist(), (counts + closed + is_open).tolist(), is_open.tolist())
    return tuple(Block(*block) for block in zip(*numbers, strict=True))


def _plain_type(spec: Spec) -> pa.DataType:
    if spec.frame_dtype == "float32":
        return pa.list_(pa.float32(), prod(spec.frame_shape))
    return pa.binary(stored_frame_bytes(spec))


def _arrow_file(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def read_steps(
    folder: Path,
    file: File,
    rows: int,
    spec: Spec,
    optional: tuple[str, ...] = (),
    held: pa.Buffer | None = None,
) -> Columns:
    """The columns of a steps file, after a check of its hash. `held` is its map, if the file may be gone."""
    path = folder / file.file
    try:
        content = checked_path(folder, file).read_bytes() if held is None else held
    except OSError as problem:
        raise DataError(f"{path} cannot be read ({problem.strerror}); {MEND}") from problem
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise DataError(f"{path} is damaged: its hash differs; {MEND}")
    accepted = [steps_schema(spec, names) for names in (optional, {*optional} - {NEXT})]
    batch = _batch(pa.BufferReader(content), path, rows, accepted)
    return {name: _rows(batch.column(name)) for name in batch.schema.names}


def open_frames(folder: Path, file: File, rows: int, spec: Spec, held: pa.Buffer | None = None) -> Decoder:
    """A decoder over the memory map of a frames file; frames are read only when they are decoded. `held` is
    its map, if the file may be gone."""
    path = folder / file.file
    accepted = [pa.schema([("frame", kind)]) for kind in (_plain_type(spec), pa.large_binary())]
    source = pa.BufferReader(mapped(folder, file) if held is None else held)
    batch = _batch(source, path, rows, accepted[: 1 if spec.frame_dtype == "float32" else 2])
    column = batch.column(0)
    if not pa.types.is_large_binary(column.type):
        return Decoder(spec, Encoded(_rows(column)), str(path))
    _, offsets, data = column.buffers()
    dictionary = (batch.schema.metadata or {}).get(b"dictionary")
    encoded = Encoded(memoryview(data or b""), np.frombuffer(offsets, np.int64, rows + 1), dictionary)
    return Decoder(spec, encoded, str(path))


def mapped(folder: Path, file: File) -> pa.Buffer:
    """The memory map of a file. It can be read even if the file is removed, and has no descriptor."""
    path = checked_path(folder, file)
    remember(path, file.bytes)
    try:
        with pa.memory_map(str(path)) as source:
            return source.read_buffer()
    except OSError as problem:
        reason = os.strerror(problem.errno) if problem.errno else problem
        raise DataError(f"{path} cannot be read ({reason}); {MEND}") from problem


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


def _rows(column: pa.Array) -> np.ndarray:
    """A column as an array whose first axis counts the rows."""
    if pa.types.is_fixed_size_binary(column.type):
        width = column.type.byte_width
        return np.frombuffer(column.buffers()[1], np.uint8, len(column) * width).reshape(len(column), width)
    if pa.types.is_fixed_size_list(column.type):
        values = column.flatten().to_numpy(zero_copy_only=False)
        return values.reshape(len(column), column.type.list_size)
    return column.to_numpy(zero_copy_only=False)
