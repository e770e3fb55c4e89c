"""Export as one Parquet file with a row for each step.

The observation after a step is the one in the next row; after the last step of an episode it is in the column
`final_observation`, which is empty in all other rows.
"""

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Annotated

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
from optimist.data.formats.parquet.arrays import as_column, sparse_column
from optimist.data.transition import Spec
from optimist.errors import UsageError

COMPRESSIONS = ("zstd", "snappy", "gzip", "none")


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
    schema = _schema(dataset)
    with (
        stored_whole(path) as stream,
        pq.ParquetWriter(stream, schema, compression=options.compression) as writer,
    ):
        for part, is_last in _with_last(dataset):
            writer.write_batch(_batch(part, schema, is_last))
    return written(dataset)


def _with_last(dataset: Dataset):
    """The parts, each with whether the log ends with it."""
    done = 0
    for part in named_parts(dataset):
        done += len(part["rewards"])
        yield part, done == len(dataset)


def _schema(dataset: Dataset) -> pa.Schema:
    spec = dataset.spec
    shape = {"shape": json.dumps(list(spec.frame_shape)), "dtype": spec.frame_dtype}
    size, pixels = prod(spec.frame_shape), spec.frame_dtype == "uint8"
    number = pa.bool_() if spec.frame_dtype == "bool" else pa.float32()
    fields = [
        pa.field("episode", pa.int64()),
        pa.field("observation", pa.binary(size) if pixels else pa.list_(number, size), metadata=shape),
        pa.field("action", _action_type(spec)),
        pa.field("reward", pa.float32()),
        pa.field("terminal", pa.bool_()),
        pa.field("truncated", pa.bool_()),
        pa.field("final_observation", pa.binary() if pixels else pa.list_(number), metadata=shape),
    ]
    mask = pa.list_(pa.bool_(), spec.actions or 1)
    optional = {"probabilities": pa.float32(), "allowed_actions": mask, "next_allowed_actions": mask}
    fields += [pa.field(name, optional[name]) for name in optional_columns(dataset)]
    return pa.schema(fields, metadata={OURS: signature(dataset)})


def _action_type(spec: Spec) -> pa.DataType:
    if spec.action_names:
        return pa.int64() if all(type(name) is int for name in spec.action_names) else pa.string()
    return pa.int32() if spec.discrete else pa.list_(pa.float32(), len(spec.action_low))


def _batch(part: Part, schema: pa.Schema, is_last: bool) -> pa.RecordBatch:
    count = len(part["rewards"])
    ends = part["terminals"] | part["truncations"]
    ends[-1] |= is_last
    rows = np.flatnonzero(ends)
    columns = {
        "episode": part["episodes"],
        "observation": part["observations"],
        "action": part["actions"],
        "reward": part["rewards"],
        "terminal": part["terminals"],
        "truncated": part["truncations"],
    }
    given = {name: part[name] for name in OPTIONAL if name in part}
    arrays, more = (
        [as_column(values, schema.field(name).type) for name, values in found.items()]
        for found in (columns, given)
    )
    final = sparse_column(
        part["next_observations"][rows], rows, count, schema.field("final_observation").type
    )
    return pa.record_batch([*arrays, final, *more], schema=schema)
