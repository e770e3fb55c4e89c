"""Export as one Parquet file with a row for each step.

The observation after a step is the one in the next row; after the last step of an episode it is in the column
`final_observation`, which is empty in all other rows.
"""

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from optimist.data.dataset import Dataset
from optimist.data.disk.files import stored_whole
from optimist.data.formats._incoming import OURS
from optimist.data.formats._outgoing import (
    OPTIONAL,
    Part,
    Written,
    named_parts,
    new_file,
    optional_columns,
    signature,
    written,
)
from optimist.data.formats.parquet.tables import is_list
from optimist.errors import UsageError

COMPRESSIONS = ("zstd", "snappy", "gzip", "none")
NAMES = {  # in the file
    "episodes": "episode",
    "observations": "observation",
    "actions": "action",
    "rewards": "reward",
    "terminals": "terminal",
    "truncations": "truncated",
    **{name: name for name in OPTIONAL},
}


@dataclass(frozen=True)
class WriteOptions:
    """How the file is written."""

    compression: Annotated[str, "zstd, snappy, gzip or none"] = "zstd"

    def __post_init__(self) -> None:
        if self.compression not in COMPRESSIONS:
            raise UsageError(f"--compression {self.compression}: choose one of {', '.join(COMPRESSIONS)}")


def write(dataset: Dataset, out: str | Path, options: WriteOptions) -> Written:
    """Write one file, `out` or `out/log.parquet`, which `read` imports without loss."""
    path = new_file(out, (".parquet", ".pq"))
    schema, done = _schema(dataset), 0
    with (
        stored_whole(path) as stream,
        pq.ParquetWriter(stream, schema, compression=options.compression) as writer,
    ):
        for part in named_parts(dataset):
            done += len(part["rewards"])
            writer.write_batch(_batch(part, schema, ends_the_log=done == len(dataset)))
    return written(dataset)


def _schema(dataset: Dataset) -> pa.Schema:
    spec = dataset.spec
    size, pixels = prod(spec.frame_shape), spec.frame_dtype == "uint8"
    number = pa.bool_() if spec.frame_dtype == "bool" else pa.float32()
    action = pa.int32() if spec.discrete else pa.list_(pa.float32(), len(spec.action_low))
    if spec.action_names:
        action = pa.int64() if all(type(name) is int for name in spec.action_names) else pa.string()
    mask = pa.list_(pa.bool_(), spec.actions or 1)
    types = {
        "episode": pa.int64(),
        "observation": pa.binary(size) if pixels else pa.list_(number, size),
        "action": action,
        "reward": pa.float32(),
        "terminal": pa.bool_(),
        "truncated": pa.bool_(),
        "final_observation": pa.binary() if pixels else pa.list_(number),
        "probabilities": pa.float32(),
        "allowed_actions": mask,
        "next_allowed_actions": mask,
    }
    shape = {"shape": json.dumps(list(spec.frame_shape)), "dtype": spec.frame_dtype}
    left = {*OPTIONAL} - {*optional_columns(dataset)}
    fields = [
        pa.field(name, kind, metadata=shape if name.endswith("observation") else None)
        for name, kind in types.items()
        if name not in left
    ]
    return pa.schema(fields, metadata={OURS: signature(dataset)})


def _batch(part: Part, schema: pa.Schema, *, ends_the_log: bool) -> pa.RecordBatch:
    ended = part["terminals"] | part["truncations"]
    ended[-1] |= ends_the_log
    columns = {NAMES[name]: values for name, values in part.items() if name in NAMES}
    arrays = {name: _column(values, schema.field(name).type) for name, values in columns.items()}
    finals = part["next_observations"][ended]
    arrays["final_observation"] = _sparse_column(finals, ended, schema.field("final_observation").type)
    return pa.record_batch([arrays[name] for name in schema.names], schema=schema)


def _column(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Rows of an array as a column of this type."""
    if is_list(kind):
        flat = pa.array(np.ascontiguousarray(values).reshape(-1), type=kind.value_type)
        return pa.FixedSizeListArray.from_arrays(flat, prod(values.shape[1:]))
    if pa.types.is_fixed_size_binary(kind):
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
    return pa.array(values, type=kind)


def _sparse_column(values: np.ndarray, present: np.ndarray, kind: pa.DataType) -> pa.Array:
    """A column that has these values where they are present, and is null elsewhere."""
    width = prod(values.shape[1:]) * (1 if is_list(kind) else values.itemsize)
    offsets = (np.append(0, np.cumsum(present)) * width).astype(np.int32)
    flat: Any = np.ascontiguousarray(values).reshape(-1)
    if is_list(kind):
        inner = pa.array(flat, type=kind.value_type)
        return pa.ListArray.from_arrays(pa.array(offsets), inner, mask=pa.array(~present))
    mask = pa.py_buffer(np.packbits(present, bitorder="little"))
    buffers = [mask, pa.py_buffer(offsets), pa.py_buffer(flat)]
    return pa.Array.from_buffers(pa.binary(), len(present), buffers)
