"""The columns of a table as arrays, and back; nulls and ragged lists are named by their row."""

import re
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.data.disk.records import json_value
from optimist.data.rules.checks import OR_LEAVE_OUT
from optimist.errors import DataError, in_one_line


def numbers(name: str, column: pa.Array, field: pa.Field, first: int) -> np.ndarray:
    """A column of numbers, or of lists of them, as an array (n, ...); `first` is the number of row 0."""
    refuse_nulls(name, column, first)
    kind = column.type
    if is_list(kind):
        return _nested(name, column, field, first)
    if _is_bytes(kind):
        return _from_bytes(name, column, field, first)
    if pa.types.is_boolean(kind):
        return plain(column.cast(pa.uint8())).astype(bool)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return plain(column)
    if pa.types.is_decimal(kind):
        return plain(column.cast(pa.float64()))
    sample = f" ({in_one_line(column[0], 20)} in row {first})" if is_text(kind) and len(column) else ""
    raise DataError(f'the column "{name}" holds {kind}, not numbers{sample}; convert it, or name another')


def plain(column: pa.Array) -> np.ndarray:
    """The numbers of a column without nulls, uncopied. The column's own to_numpy would import pandas."""
    values = np.frombuffer(column.buffers()[1] or b"", np.dtype(column.type.to_pandas_dtype()))
    return values[column.offset : column.offset + len(column)]


def labels(name: str, column: pa.Array, first: int) -> np.ndarray:
    """A column of numbers or texts that only tell rows apart."""
    refuse_nulls(name, column, first)
    refuse_lists(name, column)
    if is_text(column.type):
        found = np.asarray(column.to_pylist(), dtype=str)
        refuse_empty(name, found == "", first)  # what an empty cell of a .csv file is
        return found
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return plain(column) if is_number else column.to_numpy(zero_copy_only=False)


def lists(name: str, column: pa.Array, first: int) -> list[list]:
    """A column of lists, or of texts such as a;b or ["a", "b"], as a .csv file has them."""
    refuse_nulls(name, column, first)
    return list(map(_words, column.to_pylist())) if is_text(column.type) else column.to_pylist()


def _words(text: str) -> list[str]:
    inside = text.strip(" []{}()")
    between = r"[,;|]" if re.search("[,;|]", inside) or inside == text else r"\s+"  # NumPy writes ['a' 'b']
    words = [word.strip(" '\"") for word in re.split(between, inside)]
    return [word for word in words if word]


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)


def refuse_nulls(name: str, column: pa.Array, first: int, remedy: str = "fill it,") -> None:
    if column.null_count:
        refuse_empty(name, plain(column.is_null().cast(pa.uint8())), first, remedy)


def refuse_empty(name: str, empty: np.ndarray, first: int, remedy: str = "fill it,") -> None:
    if empty.any():
        row = int(np.argmax(empty)) + first
        raise DataError(f'the column "{name}" is empty in row {row}; {remedy} {OR_LEAVE_OUT}')


def refuse_lists(name: str, column: pa.Array) -> None:
    if pa.types.is_nested(column.type):
        raise DataError(f'the column "{name}" holds {column.type}; name one of numbers or texts')


def _nested(name: str, column: pa.Array, field: pa.Field, first: int) -> np.ndarray:
    if pa.types.is_fixed_size_list(column.type):
        width = column.type.list_size
    else:
        lengths = plain(pc.list_value_length(column))
        width = int(lengths[0]) if len(lengths) else 0
        if (lengths != width).any():
            row = int(np.argmax(lengths != width))
            counts = f"{lengths[row]} values in row {row + first} and {width} in row {first}"
            raise DataError(f'the column "{name}" has {counts}; give all rows the same number')
    values = column.flatten()
    if values.null_count:
        row = int(np.argmax(plain(values.is_null().cast(pa.uint8())))) // max(1, width) + first
        raise DataError(f'the column "{name}" holds an empty value in row {row}; fill it, {OR_LEAVE_OUT}')
    inner = numbers(name, values, pa.field("", values.type), first)  # rows of inner lists are not counted
    stored = (field.metadata or {}).get(b"shape")
    shape = _shape(name, stored) if stored else (width, *inner.shape[1:])
    if prod(shape) != width * prod(inner.shape[1:]):
        raise DataError(f'the column "{name}" has {width} values in a row, which are not of shape {shape}')
    return inner.reshape(len(column), *shape)


def _from_bytes(name: str, column: pa.Array, field: pa.Field, first: int) -> np.ndarray:
    """Raw bytes of an array whose shape is in the column's metadata."""
    metadata = field.metadata or {}
    if b"shape" not in metadata:
        raise DataError(f'the column "{name}" holds bytes of an unknown shape; name it: --shape 84,84,1')
    shape, dtype = _shape(name, metadata[b"shape"]), _dtype(name, metadata.get(b"dtype", b"uint8"))
    size = prod(shape) * dtype.itemsize
    lengths = plain(pc.binary_length(column))
    if (lengths != size).any():
        row = int(np.argmax(lengths != size))
        raise DataError(
            f'the column "{name}" has {lengths[row]} bytes in row {row + first}; {shape} {dtype} take {size}'
        )
    if pa.types.is_fixed_size_binary(column.type):
        start, data = column.offset * size, column.buffers()[1]
    else:
        offsets = np.frombuffer(column.buffers()[1], np.int64 if "large" in str(column.type) else np.int32)
        start, data = int(offsets[column.offset]), column.buffers()[2]
    flat = np.frombuffer(data or b"", np.uint8)[start : start + size * len(column)]
    return flat.view(dtype).reshape(len(column), *shape)


def _shape(name: str, stored: bytes) -> tuple[int, ...]:
    """The shape in a column's metadata, which may say anything."""
    try:
        shape = tuple(json_value(stored))
        if all(type(size) is int and 0 <= size < 2**31 for size in shape):
            return shape
    except (ValueError, TypeError):
        pass
    raise _unusable(name, "shape", stored)


def _dtype(name: str, stored: bytes) -> np.dtype:
    try:
        dtype = np.dtype(stored.decode())
        if dtype.kind in "biuf":
            return dtype
    except (ValueError, TypeError, SyntaxError):  # numpy reads some texts as Python
        pass
    raise _unusable(name, "dtype", stored)


def _unusable(name: str, what: str, stored: bytes) -> DataError:
    found = in_one_line(stored.decode("utf-8", "replace"))
    return DataError(f'the metadata of the column "{name}" has the {what} {found}; write the file again')


def as_column(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Rows of an array as a column of this type."""
    if is_list(kind):
        flat = pa.array(np.ascontiguousarray(values).reshape(-1), type=kind.value_type)
        return pa.FixedSizeListArray.from_arrays(flat, prod(values.shape[1:]))
    if pa.types.is_fixed_size_binary(kind):
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
    return pa.array(values, type=kind)


def sparse_column(values: np.ndarray, rows: np.ndarray, count: int, kind: pa.DataType) -> pa.Array:
    """A column of `count` rows that is null except in these rows."""
    width = prod(values.shape[1:])
    present = np.zeros(count, bool)
    present[rows] = True
    offsets = np.concatenate([[0], np.cumsum(present)]) * (
        width if is_list(kind) else values[:0].itemsize * width
    )
    flat: Any = np.ascontiguousarray(values).reshape(-1)
    mask = pa.py_buffer(np.packbits(present, bitorder="little"))
    if is_list(kind):
        inner = pa.array(flat, type=kind.value_type)
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), inner, mask=pa.array(~present))
    buffers = [mask, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(flat)]
    return pa.Array.from_buffers(pa.binary(), count, buffers)
