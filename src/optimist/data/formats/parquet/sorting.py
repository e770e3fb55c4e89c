"""The rows of a table, sorted by episode and time. Of each row only its number, its episode and its time are
in memory: the columns that are read are sorted in temporary files."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from optimist.data.formats.parquet.arrays import is_text, plain, refuse_empty, refuse_lists, refuse_nulls
from optimist.data.formats.parquet.tables import Table
from optimist.errors import DataError, in_one_line

MOST_ROWS = 2**17
BYTES_AT_ONCE, MOST_FILES = 2**26, 200  # of the sorted copy: of a file, and files, which are open together


def sorted_rows(table: Table, episodes: str | None, times: Sequence[str]) -> np.ndarray | None:
    """The rows of the table in their order, (n,); None if they have it. Episodes follow each other as they
    first appear, and so do the rows of an episode; or both are in the order of these columns of times."""
    if not episodes and not times:
        return None
    batches = _columns(table, [*([episodes] if episodes else []), *times])
    known: dict[object, int] = {}
    parts: list[list[np.ndarray]] = []
    first = 0
    for batch in batches:
        number = _numbers(batch.column(0), known, episodes, first) if episodes else np.zeros(len(batch), int)
        parts.append([number, *(_times(name, batch.column(name), first) for name in times)])
        first += len(batch)
    if not parts:
        return None
    episode, *keys = (np.concatenate(column) for column in zip(*parts, strict=True))
    names = list(known)
    rows = np.lexsort((*keys[::-1], episode))
    if times:
        begins = rows[np.flatnonzero(np.diff(episode[rows], prepend=-1))]  # of each episode, the first row
        place = np.argsort(np.lexsort([key[begins] for key in keys[::-1]]))
        rows = np.lexsort((*keys[::-1], place[episode]))
        _refuse_ties(rows, episode, keys, times, names)
    else:
        _refuse_numbers_that_begin_again(episode, names)
    return None if (rows[1:] > rows[:-1]).all() else rows


def _columns(table: Table, names: list[str]) -> Iterator[pa.RecordBatch]:
    return table.batches(list(dict.fromkeys(names)), MOST_ROWS)


def _numbers(column: pa.Array, known: dict[object, int], name: str, first: int) -> np.ndarray:
    """The labels of episodes as numbers, in the order in which they first appear."""
    refuse_nulls(name, column, first)
    refuse_lists(name, column)
    encoded = column.dictionary_encode()
    here, values = plain(encoded.indices.cast(pa.int64())), encoded.dictionary.to_pylist()
    refuse_empty(name, here == (values.index("") if "" in values else -1), first)
    used, appears = np.unique(here, return_index=True)
    number = np.zeros(len(values), np.int64)
    for place in used[np.argsort(appears)].tolist():
        number[place] = known.setdefault(values[place], len(known))
    return number[here]


def _times(name: str, column: pa.Array, first: int) -> np.ndarray:
    """Numbers, dates, times, or texts of them in ISO's form, as numbers that sort in their order."""
    refuse_nulls(name, column, first)
    if is_text(column.type):
        column = _of_texts(name, column, first)
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        raise DataError(f"--order {name}: the column holds {column.type}; name one of numbers or times")
    found = plain(column)
    if found.dtype.kind == "f" and np.isnan(found).any():
        row = int(np.isnan(found).argmax()) + first
        raise DataError(f"--order {name}: the column is empty in row {row}; fill it, or name another one")
    return found


def _of_texts(name: str, column: pa.Array, first: int) -> pa.Array:
    try:
        return column.cast(pa.timestamp("ns"))
    except pa.ArrowInvalid:
        word = in_one_line(column[0], 30)
        raise DataError(
            f"--order {name}: the column holds words ({word} in row {first}); write times as 2026-03-01 "
            "10:00:00, or name a column of numbers"
        ) from None


def _refuse_ties(
    rows: np.ndarray, episode: np.ndarray, keys: list[np.ndarray], times: Sequence[str], names: list
) -> None:
    """Raise DataError for rows of one episode at one time, if the file does not have that episode in order:
    where it has, their order is that of the file."""
    together = episode[rows][1:] == episode[rows][:-1]
    moved = np.unique(episode[rows][1:][together & (np.diff(rows) < 0)])
    tie = together & np.isin(episode[rows][1:], moved)
    for key in keys:
        tie &= key[rows][1:] == key[rows][:-1]
    if tie.any():
        one, other = rows[int(tie.argmax())], rows[int(tie.argmax()) + 1]
        whose = f" of episode {in_one_line(names[episode[one]])}" if names else ""
        raise DataError(
            f"rows {one} and {other}{whose} have the same {' and '.join(times)}, and the file's own order "
            "is not that of time: remove one of them if it was written twice, or name a second column, as in "
            f"--order {','.join(times)},number"
        )


def _refuse_numbers_that_begin_again(episode: np.ndarray, names: list) -> None:
    """Raise DataError for labels that come again in the same sequence, several rows each, as the numbers of
    episodes do that begin at 0 in every file: two episodes would become one."""
    begins = np.flatnonzero(np.append(True, episode[1:] != episode[:-1]))
    passed = np.diff(episode[begins])
    if (passed < 0).any() and (passed <= 1).all() and len(episode) >= 2 * len(begins):
        again = begins[1 + int((passed < 0).argmax())]
        label = in_one_line(names[episode[again]])
        raise DataError(
            f"episode {label} appears again in row {again}, and the others follow it as before: give every "
            "episode a label of its own; if these rows belong to the same episodes, say in which order: "
            "--order COLUMN"
        )


def sorted_copy(table: Table, columns: Collection[str], rows: np.ndarray, folder: Path) -> Table:
    """The table of these columns with the rows in this order, in files in the folder. Each file gets its rows
    in the order of the table first, and is then sorted by itself."""
    schema = pa.schema([table.schema.field(name) for name in columns], table.schema.metadata)
    at_once = min(MOST_ROWS, BYTES_AT_ONCE // table.row_bytes(columns))
    size = max(1, at_once, -(-len(rows) // MOST_FILES))
    files = [folder / f"{number}.arrow" for number in range(-(-len(rows) // size))]
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    with ExitStack() as opened:
        streams = [opened.enter_context(pa.ipc.new_stream(str(file), schema)) for file in files]
        first = 0
        for batch in table.batches(list(columns), MOST_ROWS):
            whole = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
            file_of = place[first : first + len(batch)] // size
            for number in np.unique(file_of).tolist():
                streams[number].write_batch(whole.take(pa.array(np.flatnonzero(file_of == number))))
            first += len(batch)
    for number, file in enumerate(files):
        with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as stream:
            unsorted = stream.read_all()
        ranks = np.argsort(np.argsort(rows[number * size : (number + 1) * size]))
        with pa.ipc.new_stream(str(file), schema) as stream:
            stream.write_table(unsorted.take(pa.array(ranks)), max_chunksize=MOST_ROWS)
    return replace(table, files=tuple(files), kind="arrow", schema=schema)
