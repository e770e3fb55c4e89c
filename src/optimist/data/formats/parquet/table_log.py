"""The rows of a table as the columns of a log."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from optimist.data.checking import refuse_offset
from optimist.data.formats._log import Part, with_following
from optimist.data.formats._plan import exact
from optimist.data.formats.parquet.arrays import is_text, labels, numbers, plain
from optimist.data.formats.parquet.order import RowOrder, times
from optimist.data.formats.parquet.tables import Table
from optimist.data.joining import with_inserted
from optimist.data.transition import Spec
from optimist.errors import DataError, in_one_line

MOST_ROWS, BYTES_AT_ONCE = 2**17, 2**24
CACHED_ROWS = 2**12
SEEN_ROWS = 2**10  # enough to see the shape of observations
LAST, NONE = "the last row of every episode", "none"  # terminal steps that no column marks


@dataclass(frozen=True)
class TableLog:
    """The rows of a table as the columns of a log."""

    table: Table
    uses: dict[str, list[str]]  # the table's columns of each column of the log
    spec: Spec | None = None
    environment: str | None = None
    names: Mapping[str, list[str]] = field(default_factory=dict)  # of columns of the first table, in ours
    order: RowOrder | None = None  # looks at the rows of a log that this package did not write
    terminals: str | None = None  # LAST or NONE if no column marks them
    actions = None
    actions_are_named = True

    @property
    def rows(self) -> int:
        return self.table.rows

    @property
    def columns(self) -> set[str]:
        return {"frames" if name == "final_observations" else name for name in self.uses if name != "times"}

    def parts(self, names: Collection[str]) -> Iterator[Part]:
        if "frames" in names:
            return self._with_finals({*names, "observations", "final_observations"} & set(self.uses))
        if self.order is not None and "rewards" in names:
            return self.order.watched(self._plain({*names, "times"} & set(self.uses)))
        return self._plain({*names} & set(self.uses))

    def _plain(self, names: Collection[str]) -> Iterator[Part]:
        if self.terminals is None or "terminals" not in names:
            return self._columns(names)
        known = "episodes" if self.terminals == LAST else "rewards"
        return self._with_terminals(self._columns({*names, known} - {"terminals"}))

    def _with_terminals(self, parts: Iterator[Part]) -> Iterator[Part]:
        """The parts with the terminal steps that no column marks."""
        for part, following in with_following(parts):
            labels = part["episodes"] if self.terminals == LAST else np.zeros(len(part["rewards"]))
            last = np.append(labels[1:] != labels[:-1], following is None)
            if following is not None and self.terminals == LAST:
                last[-1] = following["episodes"][0] != labels[-1]
            yield {**part, "terminals": last & (self.terminals == LAST)}

    def _columns(self, names: Collection[str]) -> Iterator[Part]:
        columns = list(dict.fromkeys(use for name in names for use in self.uses[name]))
        first = 0
        at_once = SEEN_ROWS if set(names) == {"observations"} else self._rows_at_once(columns)
        for batch in self.table.batches(columns, at_once):
            yield {name: self._array(name, batch, first) for name in names}
            first += batch.num_rows

    def _rows_at_once(self, columns: Collection[str]) -> int:
        return max(1, min(MOST_ROWS, BYTES_AT_ONCE // self.table.row_bytes(columns)))

    def _array(self, name: str, batch: pa.RecordBatch, first: int) -> Any:
        uses, schema = self.uses[name], self.table.schema
        if name == "times":
            return times(batch.column(uses[0]))
        if name == "final_observations":
            return _sparse(uses[0], batch.column(uses[0]), schema.field(uses[0]), first)
        if name == "episodes" or (
            name == "actions" and len(uses) == 1 and is_text(schema.field(uses[0]).type)
        ):
            return labels(uses[0], batch.column(uses[0]), first)
        if name in ("observations", "next_observations"):
            for use in uses:
                _check_feature(use, batch.column(use), first)
        if name in ("terminals", "truncations"):
            _check_flags(uses[0], batch.column(uses[0]), first)
        found = [numbers(use, batch.column(use), schema.field(use), first) for use in uses]
        if name in ("observations", "next_observations"):
            for use, column in zip(uses, found, strict=True):
                _check_rounding(use, column, first)
        array = found[0] if len(uses) == 1 else _side_by_side(uses, found, first)
        if name in ("observations", "next_observations"):
            return array.reshape(-1, 1) if array.ndim == 1 else array
        return array

    def _with_finals(self, names: Collection[str]) -> Iterator[Part]:
        """The parts with the final observation of every episode after its last row."""
        first = 0
        for part, following in with_following(self._plain(names)):
            yield _framed(part, following, self.uses["final_observations"][0], first)
            first += len(part["rewards"])


def _framed(part: Part, following: Part | None, name: str, first: int) -> Part:
    """The part with `frames` in place of both columns of observations. A terminal step needs no successor:
    its final observation may be empty, and is then black."""
    rows, values = part.pop("final_observations")
    observations = part.pop("observations")
    terminal, ended = part["terminals"].astype(bool), part["terminals"].astype(bool)
    if "truncations" in part:
        ended = ended | part["truncations"].astype(bool)
    if "episodes" in part:
        labels = (
            part["episodes"] if following is None else np.append(part["episodes"], following["episodes"][:1])
        )
        ended[: len(labels) - 1] |= labels[1:] != labels[:-1]
    if following is None:
        ended[-1] = True
    given = np.zeros(len(ended), bool)
    given[rows] = True
    missing, needless = ended & ~given & ~terminal, given & ~ended
    if missing.any() or needless.any():
        row = int((missing | needless).argmax())
        state = "is empty" if missing[row] else "is filled"
        place = "where an episode ends" if missing[row] else "where no episode ends"
        raise DataError(f'the column "{name}" {state} in row {row + first}, {place}; correct it')
    finals = np.zeros((len(ended), *observations.shape[1:]), observations.dtype)[: int(ended.sum())]
    finals[given[ended]] = values.reshape(len(rows), *observations.shape[1:])
    return {**part, "frames": with_inserted(observations, np.flatnonzero(ended) + 1, finals)}


def _sparse(name: str, column: pa.Array, field: pa.Field, first: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows that have a value, and these values."""
    rows = np.flatnonzero(plain(column.is_valid().cast(pa.uint8())))
    return rows, numbers(name, column.drop_null(), field, first)


def _check_feature(name: str, column: pa.Array, first: int) -> None:
    """Raise DataError for a category or a time, with what makes features of it."""
    if is_text(column.type) and len(column):
        word = str(column[0])
        remedy = "make columns of 0 and 1 of it (pandas.get_dummies), or leave it out"
        if re.fullmatch("[^A-Za-z]*[0-9][^A-Za-z]*", word):
            remedy = f"write a number plainly, as 1234.5; if it is a category, {remedy}"
        raise DataError(
            f'the column "{name}" holds words, not numbers ({in_one_line(word, 20)} in row {first}); {remedy}'
        )
    if pa.types.is_temporal(column.type):
        raise DataError(
            f'the column "{name}" holds {column.type}, not numbers; make features of it, such as the hour of '
            "the day, or leave it out"
        )


def _check_flags(name: str, column: pa.Array, first: int) -> None:
    """Raise DataError for ends that are marked by words, or with empty cells between them."""
    remedy = "write 1 where it marks an end, 0 elsewhere"
    if is_text(column.type) and len(column):
        word = in_one_line(column[0], 20)
        raise DataError(f'the column "{name}" holds words ({word} in row {first}); {remedy}')
    if column.null_count:
        row = int(np.argmax(plain(column.is_null().cast(pa.uint8())))) + first
        raise DataError(f'the column "{name}" is empty in row {row}; {remedy}')


def _check_rounding(name: str, column: np.ndarray, first: int) -> None:
    """Raise DataError for numbers, such as times in seconds, that float32 would round. A .csv file has no
    types, so whole ones come as floats, and pandas makes floats of them where a value is missing."""
    if column.dtype.itemsize <= 4 and column.dtype.kind == "f":
        return
    kept = column.astype(np.float32)
    if not (kept != column).any() or not np.isfinite(kept).all():
        return
    if (column == np.floor(column)).all():
        exact(f'values of "{name}"', column, first)
    elif column.ndim == 1 and not first:
        refuse_offset(f'values of "{name}"', column)


def _side_by_side(names: list[str], columns: list[np.ndarray], first: int) -> np.ndarray:
    """Columns of numbers as rows of vectors."""
    for name, column in zip(names, columns, strict=True):
        if column.ndim > 1:
            raise DataError(f'the column "{name}" holds lists: name it alone, without {names[0]}')
    kinds = {column.dtype for column in columns}
    kind = kinds.pop() if len(kinds) == 1 else np.dtype(np.float32)
    kind = kind if kind in (np.uint8, np.bool_) else np.dtype(np.float32)
    found = np.empty((len(columns[0]), len(columns)), kind)
    if kind.kind == "f":
        pairs = zip(names, columns, strict=True)
        columns = [exact(f'values of "{n}"', c, first) if c.dtype.kind in "iu" else c for n, c in pairs]
    for start in range(0, len(found), CACHED_ROWS):  # all at once would leave the processor's cache
        rows = slice(start, start + CACHED_ROWS)
        for number, column in enumerate(columns):
            found[rows, number] = column[rows]
    return found
