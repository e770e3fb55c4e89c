"""Tables in files: Parquet, Arrow (Feather), CSV, folders of them, and folders of Hugging Face `datasets`;
their columns as arrays, where nulls and ragged lists are named by their row."""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from optimist.data.disk.files import check_exists, refuse_links, stays_inside
from optimist.data.disk.records import json_value, record
from optimist.data.formats._bytes import readable
from optimist.data.rules.checks import OR_LEAVE_OUT
from optimist.errors import DataError, in_one_line

KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
}
CSV_BLOCK = 2**23  # bytes that are parsed at once
FEW_ROWS = 2**6  # which show how large a row is


@dataclass(frozen=True)
class Table:
    """The rows of one or more files, one file after the other; categories are texts, as in a .csv file."""

    files: tuple[Path, ...]
    kind: str
    schema: pa.Schema

    @property
    def rows(self) -> int:
        """The number of rows; 0 if it is not known before all of them are read."""
        if self.kind != "parquet":
            return 0
        with readable(self.files[0], "table"):
            return sum(pq.read_metadata(file).num_rows for file in self.files)

    def row_bytes(self, names: Collection[str]) -> int:
        """About how many bytes a row of these columns takes in memory."""
        kinds = [self.schema.field(name).type for name in names]
        if all(map(pa.types.is_primitive, kinds)):
            return max(1, sum(kind.bit_width for kind in kinds) // 8)
        first = next(self.batches(list(names), FEW_ROWS), None)
        return max(1, first.nbytes // max(1, len(first))) if first else 1

    def batches(self, names: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """These columns of all rows, at most `rows` rows at a time."""
        for file in self.files:
            with readable(file, "table"):
                self._check(file, names)
                for batch in _BATCHES[self.kind](file, list(names), rows, self.schema):
                    for start in range(0, batch.num_rows, rows):
                        part = batch.slice(start, rows)
                        yield part.cast(_plain(part.schema))

    def _check(self, file: Path, names: Sequence[str]) -> None:
        """The columns of all files must be those of the first; of a .csv file, which has no types, those that
        are read."""
        schema = _schema(file, self.kind)
        needed = names if self.kind == "csv" else self.schema.names
        missing = sorted(set(needed) - set(schema.names))
        if missing or (self.kind != "csv" and not schema.equals(self.schema)):
            what = f'lacks the column "{missing[0]}"' if missing else "has columns of other types"
            raise DataError(f"{file} {what} that {self.files[0].name} has; give all files the same columns")
        odd = [name for name in names if self.kind == "csv" and pa.types.is_binary(schema.field(name).type)]
        if odd:
            raise DataError(f'{file} is not UTF-8 (column "{in_one_line(odd[0], 40)}"): save it as UTF-8')


def _schema(file: Path, kind: str) -> pa.Schema:
    return _plain(_SCHEMAS[kind](file))


def _plain(schema: pa.Schema) -> pa.Schema:
    """The columns without dictionaries and extensions of Arrow's types."""
    return pa.schema([field.with_type(_plain_type(field.type)) for field in schema], schema.metadata)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.ExtensionType):
        return _plain_type(kind.storage_type)
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_table(address: str | Path) -> bool:
    """Whether this is a file of a known kind, or a folder that holds some."""
    path = Path(address)
    if path.is_file():
        return path.suffix in KINDS
    if not path.is_dir() or (path / "manifest.json").exists():
        return False
    kinds = {KINDS[file.suffix] for file in _listed(path)}
    if kinds != {"csv"}:
        return bool(kinds or _splits(path))
    # Many folders have a .csv file beside others, such as those of runs.
    return all(file.suffix in KINDS or file.name[0] in "._" for file in path.iterdir())


def open_table(address: str | Path) -> Table:
    path = Path(address)
    check_exists(path)
    files = [path] if path.is_file() else _in_folder(path)
    kinds = sorted({KINDS.get(file.suffix, "") for file in files})
    if "" in kinds:
        known = ", ".join(KINDS).replace(", .csv", " or .csv")
        raise DataError(f"{path} is no table of a known kind: convert it to a file that ends in {known}")
    if len(kinds) != 1:
        known = ", ".join(KINDS)
        raise DataError(f"{path} holds {' and '.join(kinds)} files; name one kind of file ({known})")
    with readable(files[0], "table"):
        return Table(tuple(files), kinds[0], _schema(files[0], kinds[0]))


def _in_folder(folder: Path) -> list[Path]:
    splits = _splits(folder)
    if splits:
        if len(splits) > 1:
            raise DataError(
                f"{folder} holds the splits {', '.join(splits)}; import one: {folder / splits[0]}"
            )
        inside = folder / splits[0]
        check_exists(inside)
        refuse_links([inside])
        return _in_folder(inside)
    files = _listed(folder)
    if (folder / "state.json").exists():  # of a saved Hugging Face Dataset; it says their order
        saved = _saved(folder / "state.json")
        if saved._indices_data_files or saved._indices_files:
            raise DataError(
                f"{folder} keeps its rows in another order; save it after dataset.flatten_indices()"
            )
        files = [folder / file.filename for file in saved._data_files]
    if not files:
        raise DataError(f"{folder} holds no table; name a file that ends in {', '.join(KINDS)}")
    refuse_links(files)
    return files


def _listed(folder: Path) -> list[Path]:
    """The tables in a folder; numbers in their names are ordered by value: part-2 is before part-10."""
    files = [path for path in folder.iterdir() if path.suffix in KINDS and path.name[0] not in "._"]
    parts = {path: re.split(r"(\d+)", path.name) for path in files}
    return sorted(files, key=lambda path: [int(part) if part.isdigit() else part for part in parts[path]])


@dataclass(frozen=True)
class SavedFile:
    """A file of a saved Hugging Face Dataset."""

    filename: str


@dataclass(frozen=True)
class SavedDataset:
    """What a saved Hugging Face Dataset, or a DatasetDict, says of itself."""

    splits: list[str] = field(default_factory=list)
    _data_files: list[SavedFile] = field(default_factory=list)
    _indices_data_files: list[Any] | None = None
    _indices_files: list[Any] | None = None


def _saved(path: Path) -> SavedDataset:
    with readable(path, "list of files"):
        found = record(SavedDataset, json_value(path.read_text("utf-8")))
    names = [*found.splits, *(file.filename for file in found._data_files)]
    if not all("\0" not in name and stays_inside(name) for name in names):
        raise DataError(f"{path} lists something other than names; save it again")
    return found


def _splits(folder: Path) -> list[str]:
    """The splits of a saved Hugging Face DatasetDict."""
    file = folder / "dataset_dict.json"
    return _saved(file).splits if file.exists() else []


def _arrow(file: Path) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
    """Hugging Face saves streams, Feather and others save files."""
    source = pa.memory_map(str(file))
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    return pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)


def _arrow_batches(file: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    reader = _arrow(file)
    is_file = isinstance(reader, pa.RecordBatchFileReader)
    batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
    return (batch.select(names) for batch in batches)


def _csv(file: Path, names: list[str] | None, schema: pa.Schema | None) -> "pa.csv.CSVStreamingReader":
    from pyarrow import csv

    kinds = {field.name: field.type for field in schema} if schema else None
    return csv.open_csv(
        file,
        read_options=csv.ReadOptions(block_size=CSV_BLOCK),
        convert_options=csv.ConvertOptions(include_columns=names, column_types=kinds),
    )


def _csv_schema(file: Path) -> pa.Schema:
    """The types that fit the first block; whole numbers may be followed by fractions, so they are floats
    unless a column of actions or flags needs them: these are checked when they are read."""
    with file.open("rb") as opened:  # pyarrow would count the cells of a row with decimal commas first
        line = opened.readline(CSV_BLOCK)
    if line.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise DataError(f"{file} is UTF-16, as spreadsheets save it: save it as UTF-8")
    heading = line.decode("utf-8-sig", "replace").strip()
    if "," not in heading and any(sign in heading for sign in ";\t|"):
        only = in_one_line(heading, 40)
        raise DataError(f"{file} has one column, {only}: its cells must be separated by commas")
    return _csv(file, None, None).schema


_SCHEMAS: dict[str, Callable[[Path], pa.Schema]] = {
    "parquet": pq.read_schema,
    "arrow": lambda file: _arrow(file).schema,
    "csv": _csv_schema,
}
_BATCHES: dict[str, Callable[[Path, list[str], int, pa.Schema], Iterator[pa.RecordBatch]]] = {
    "parquet": lambda file, names, rows, schema: pq.ParquetFile(file, pre_buffer=False).iter_batches(
        batch_size=rows, columns=names
    ),
    "arrow": lambda file, names, rows, schema: _arrow_batches(file, names),
    "csv": lambda file, names, rows, schema: iter(_csv(file, names, schema)),
}


class Role(NamedTuple):
    """What the user of a column can do where it is empty, or holds something else than numbers."""

    if_empty: str = f"fill it, {OR_LEAVE_OUT}"
    if_words: str = "convert it, or name another"
    otherwise: str = "convert it, or name another"


PLAIN = Role()
FEATURE = Role(
    "write a fixed number there, and in another column 1 where it was empty, also in what a policy is asked, "
    f"{OR_LEAVE_OUT}",
    "make columns of 0 and 1 of it, one for each value that can occur (pandas.get_dummies of a Categorical), "
    "the same in later tables and in what a policy is asked; or leave it out",
    "make features of it, such as the hour of the day, or leave it out",
)
FLAG = Role(*["write 1 where it marks an end, 0 elsewhere"] * 3)


def numbers(name: str, column: pa.Array, field: pa.Field, first: int, role: Role = PLAIN) -> np.ndarray:
    """A column of numbers, or of lists of them, as an array (n, ...); `first` is the number of row 0."""
    refuse_empty(name, nulls(column), first, role.if_empty)
    kind = column.type
    if is_list(kind):
        return _nested(name, column, field, first)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _from_bytes(name, column, field, first)
    if pa.types.is_boolean(kind):
        return flags(column)
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return plain(column)
    if not is_text(kind) or not len(column):
        raise DataError(f'the column "{name}" holds {kind}, not numbers; {role.otherwise}')
    row, word = next(((row, word) for row, word in enumerate(column.to_pylist()) if word), (0, "empty"))
    remedy = role.if_words
    if re.fullmatch("[^A-Za-z]*[0-9][^A-Za-z]*", word):
        remedy = f"write a number plainly, as 1234.5; if it is a category, {remedy}"
    shown = f"{in_one_line(word, 20)} in row {row + first}"
    raise DataError(f'the column "{name}" holds words, not numbers ({shown}); {remedy}')


def plain(column: pa.Array) -> np.ndarray:
    """The numbers of a column without nulls, uncopied. The column's own to_numpy would import pandas."""
    values = np.frombuffer(column.buffers()[1] or b"", np.dtype(column.type.to_pandas_dtype()))
    return values[column.offset : column.offset + len(column)]


def labels(name: str, column: pa.Array, first: int) -> np.ndarray:
    """A column of numbers or texts that only tell rows apart."""
    refuse_no_labels(name, column, first)
    if is_text(column.type):
        return np.asarray(column.to_pylist(), dtype=str)
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return plain(column) if is_number else column.to_numpy(zero_copy_only=False)


def lists(name: str, column: pa.Array, first: int) -> list[list]:
    """A column of lists, or of texts such as a;b or ["a", "b"], as a .csv file has them."""
    refuse_empty(name, nulls(column), first)
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


def nulls(column: pa.Array) -> np.ndarray:
    """Which rows are empty."""
    return flags(column.is_null())


def flags(column: pa.Array) -> np.ndarray:
    """A column of true and false, without nulls."""
    return plain(column.cast(pa.uint8())).astype(bool)


def refuse_empty(name: str, empty: np.ndarray, first: int, remedy: str = PLAIN.if_empty) -> None:
    if empty.any():
        row = int(np.argmax(empty)) + first
        raise DataError(f'the column "{name}" is empty in row {row}; {remedy}')


def refuse_no_labels(name: str, column: pa.Array, first: int) -> None:
    """Raise DataError for a column that cannot tell rows apart; an empty cell of a .csv file is a text."""
    if pa.types.is_nested(column.type):
        raise DataError(f'the column "{name}" holds {column.type}; name one of numbers or texts')
    cells = column.cast(pa.string()).fill_null("") if is_text(column.type) else None
    refuse_empty(name, nulls(column) if cells is None else flags(pc.equal(cells, "")), first)


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
        row = int(np.argmax(nulls(values))) // max(1, width) + first
        raise DataError(f'the column "{name}" holds an empty value in row {row}; fill it, {OR_LEAVE_OUT}')
    inner = numbers(name, values, pa.field("", values.type), first)  # rows of inner lists are not counted
    metadata = field.metadata or {}
    shape = _described(name, metadata)[0] if b"shape" in metadata else (width, *inner.shape[1:])
    if prod(shape) != width * prod(inner.shape[1:]):
        raise DataError(f'the column "{name}" has {width} values in a row, which are not of shape {shape}')
    return inner.reshape(len(column), *shape)


def _from_bytes(name: str, column: pa.Array, field: pa.Field, first: int) -> np.ndarray:
    """Raw bytes of an array whose shape is in the column's metadata."""
    metadata = field.metadata or {}
    if b"shape" not in metadata:
        raise DataError(f'the column "{name}" holds bytes of an unknown shape; name it: --shape 84,84,1')
    shape, dtype = _described(name, metadata)
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


def _described(name: str, metadata: dict[bytes, bytes]) -> tuple[tuple[int, ...], np.dtype]:
    """The shape and the type in a column's metadata, which may say anything."""
    what, stored = "shape", metadata[b"shape"]
    try:
        shape = record(tuple[int, ...], json_value(stored))
        if not all(0 <= size < 2**31 for size in shape):
            raise ValueError("sizes")
        what, stored = "dtype", metadata.get(b"dtype", b"uint8")
        dtype = np.dtype(stored.decode())
        if dtype.kind not in "biuf":
            raise ValueError("no numbers")
    except (ValueError, TypeError, SyntaxError):  # NumPy reads some texts as Python
        shown = in_one_line(stored.decode("utf-8", "replace"))
        raise DataError(
            f'the metadata of the column "{name}" has the {what} {shown}; write the file again'
        ) from None
    return shape, dtype
