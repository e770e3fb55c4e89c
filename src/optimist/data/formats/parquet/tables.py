"""Tables in files: Parquet, Arrow (Feather), CSV, folders of them, and folders of Hugging Face `datasets`."""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from optimist.data.disk.files import check_exists, refuse_links, stays_inside
from optimist.data.disk.records import json_value, record
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
MEND = "save it again"


@dataclass(frozen=True)
class Table:
    """The rows of one or more files, one file after the other; categories are texts, as in a .csv file."""

    files: tuple[Path, ...]
    kind: str
    schema: pa.Schema

    @property
    def rows(self) -> int:
        """The number of rows; 0 if it is not known before all of them are read."""
        if self.kind == "parquet":
            with _readable(self.files[0]):
                return sum(pq.read_metadata(file).num_rows for file in self.files)
        return 0

    def row_bytes(self, names: Collection[str]) -> int:
        """About how many bytes a row of these columns takes in memory."""
        declared = sum(_width(self.schema.field(name).type) for name in names)
        if self.kind != "parquet":
            return declared
        with _readable(self.files[0]):
            metadata = pq.read_metadata(self.files[0])
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        columns = [group.column(number) for group in groups for number in range(group.num_columns)]
        parts = [column for column in columns if column.path_in_schema.partition(".")[0] in names]
        stored = sum(column.total_uncompressed_size for column in parts) // max(1, metadata.num_rows)
        return max(declared, stored)

    def batches(self, names: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """These columns of all rows, at most `rows` rows at a time."""
        for file in self.files:
            with _readable(file):
                self._check(file, names)
                for batch in _BATCHES[self.kind](file, list(names), rows, self.schema):
                    for start in range(0, batch.num_rows, rows):
                        yield _plain(batch.slice(start, rows))

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


def _width(kind: pa.DataType) -> int:
    """The bytes of a value of this type; those of lists and texts of any length are unknown."""
    if pa.types.is_fixed_size_list(kind):
        return kind.list_size * _width(kind.value_type)
    if pa.types.is_fixed_size_binary(kind):
        return kind.byte_width
    return max(1, kind.bit_width // 8) if pa.types.is_primitive(kind) else 16


def _schema(file: Path, kind: str) -> pa.Schema:
    schema = _SCHEMAS[kind](file)
    return pa.schema([field.with_type(_plain_type(field.type)) for field in schema], schema.metadata)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.ExtensionType):
        return _plain_type(kind.storage_type)
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns without dictionaries and extensions of Arrow's types."""
    columns = [each.storage if isinstance(each.type, pa.ExtensionType) else each for each in batch]
    columns = [each.dictionary_decode() if pa.types.is_dictionary(each.type) else each for each in columns]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def is_table(address: str | Path) -> bool:
    """Whether this is a file of a known kind, or a folder that holds some."""
    path = Path(address)
    if path.is_file():
        return path.suffix in KINDS
    if not path.is_dir() or (path / "manifest.json").exists():
        return False
    kinds = {KINDS[file.suffix] for file in _listed(path)}
    # Many folders have a .csv file beside others, such as those of runs.
    return bool(kinds - {"csv"} or _splits(path)) or (kinds == {"csv"} and not _others(path))


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
    with _readable(files[0]):
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
    files = _of_hugging_face(folder) if (folder / "state.json").exists() else _listed(folder)
    if not files:
        raise DataError(f"{folder} holds no table; name a file that ends in {', '.join(KINDS)}")
    refuse_links(files)
    return files


def _listed(folder: Path) -> list[Path]:
    """The tables in a folder; numbers in their names are ordered by value: part-2 is before part-10."""
    files = [path for path in folder.iterdir() if path.suffix in KINDS and path.name[0] not in "._"]
    return sorted(files, key=lambda path: [int(part) if part.isdigit() else part for part in _parts(path)])


def _others(folder: Path) -> bool:
    """Whether the folder holds anything but tables."""
    return any(path.suffix not in KINDS and path.name[0] not in "._" for path in folder.iterdir())


def _parts(path: Path) -> list[str]:
    return re.split(r"(\d+)", path.name)


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
    try:
        found = record(SavedDataset, json_value(path.read_text("utf-8")))
    except (OSError, ValueError) as problem:
        raise DataError(f"{path} is not readable ({in_one_line(problem)}); {MEND}") from None
    names = [*found.splits, *(file.filename for file in found._data_files)]
    if not all("\0" not in name and stays_inside(name) for name in names):
        raise DataError(f"{path} lists something other than names; {MEND}")
    return found


def _splits(folder: Path) -> list[str]:
    """The splits of a saved Hugging Face DatasetDict."""
    file = folder / "dataset_dict.json"
    return _saved(file).splits if file.exists() else []


def _of_hugging_face(folder: Path) -> list[Path]:
    """The files of a saved Hugging Face Dataset, in their order."""
    found = _saved(folder / "state.json")
    if found._indices_data_files or found._indices_files:
        raise DataError(f"{folder} keeps its rows in another order; save it after dataset.flatten_indices()")
    return [folder / file.filename for file in found._data_files]


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Turn the errors of pyarrow into a DataError."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{file} is missing; fetch the whole folder again") from None
    except PermissionError:
        raise DataError(f"{file} may not be read: Permission denied; change its rights") from None
    except (pa.ArrowException, OSError, MemoryError) as problem:
        reason = in_one_line(str(problem).partition("\n")[0], 160)
        raise DataError(f"{file} is not readable ({reason}); {MEND}") from None


def _arrow(file: Path) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
    """Hugging Face saves streams, Feather and others save files."""
    source = pa.memory_map(str(file))
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    return pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)


def _arrow_batches(file: Path, names: list[str], rows: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    reader = _arrow(file)
    if isinstance(reader, pa.RecordBatchFileReader):
        found = (reader.get_batch(number) for number in range(reader.num_record_batches))
    else:
        found = iter(reader)
    return (batch.select(names) for batch in found)


def _parquet_batches(file: Path, names: list[str], rows: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Columns of structs and lists are named by their first part."""
    return pq.ParquetFile(file, pre_buffer=False).iter_batches(batch_size=rows, columns=names)


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


def _csv_batches(file: Path, names: list[str], rows: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    return iter(_csv(file, names, schema))


_SCHEMAS: dict[str, Callable[[Path], pa.Schema]] = {
    "parquet": pq.read_schema,
    "arrow": lambda file: _arrow(file).schema,
    "csv": _csv_schema,
}
_BATCHES = {"parquet": _parquet_batches, "arrow": _arrow_batches, "csv": _csv_batches}


def shown(name: str) -> str:
    """The name of a column in a message; pandas writes the numbers of rows into a column without one."""
    return in_one_line(name, 40) or "(without a name)"
