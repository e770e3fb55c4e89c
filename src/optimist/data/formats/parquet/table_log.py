"""The rows of a table as the columns of a log."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from optimist.data.formats.parquet.arrays import is_text, labels, lists, numbers, plain, refuse_nulls
from optimist.data.formats.parquet.repeats import Repeats
from optimist.data.formats.parquet.tables import Table
from optimist.data.formats.parquet.unused import Unused
from optimist.data.rules.checks import refuse_offset
from optimist.data.rules.joining import with_inserted
from optimist.data.rules.log import Part, with_following
from optimist.data.rules.masks import are_flags
from optimist.data.rules.observations import exact
from optimist.data.transition import Spec
from optimist.errors import DataError, in_one_line

MOST_ROWS, BYTES_AT_ONCE = 2**17, 2**24
CACHED_ROWS = 2**12
SEEN_ROWS = 2**10  # enough to see the shape of observations
MASKS = ("allowed_actions", "next_allowed_actions")
LAST, NONE = "the last row of every episode", "none"  # terminal steps that no column marks


@dataclass(frozen=True)
class TableLog:
    """The rows of a table as the columns of a log."""

    table: Table
    uses: dict[str, list[str]]  # the table's columns of each column of the log
    spec: Spec | None = None
    environment: str | None = None
    names: Mapping[str, list[str]] = field(default_factory=dict)  # of columns of the first table, in ours
    repeats: Repeats | None = None  # looks at the rows of a log that this package did not write
    terminals: str | None = None  # LAST or NONE if no column marks them
    times: tuple[str, ...] = ()  # the columns of --order
    left: tuple[str, ...] = ()  # the columns that nothing uses, without those that were dropped
    file_rows: np.ndarray | None = None  # the row of the file that each row was before sorting
    actions = None
    actions_are_named = True

    @property
    def rows(self) -> int:
        return self.table.rows

    @property
    def columns(self) -> set[str]:
        return {"frames" if name == "final_observations" else name for name in self.uses if name != "times"}

    def in_file(self, text: str) -> str:
        """The text with the numbers that rows have in the file."""
        rows = self.file_rows
        if rows is None:
            return text
        known = len(rows)  # a file's name may have larger numbers
        return re.sub(
            r"\brow (\d+)", lambda row: f"row {rows[int(row[1])]}" if int(row[1]) < known else row[0], text
        )

    def look_at(self, unused: Collection[Unused]) -> None:
        """Show all rows of these columns to them, with where episodes end as far as columns say so."""
        flags = [name for name in ("terminals", "truncations", "episodes") if self.uses.get(name)]
        columns = [use for name in flags for use in self.uses[name]] + [each.name for each in unused]
        first, before = 0, None
        for batch in self.table.batches(list(dict.fromkeys(columns)), MOST_ROWS) if unused else ():
            part = {name: self._array(name, batch, first).reshape(len(batch), -1) for name in flags}
            held = {name: column[:1] if before is None else before[name] for name, column in part.items()}
            both = {name: np.concatenate([held[name], column]) for name, column in part.items()}
            goes_on = np.arange(first, first + len(batch)) > 0
            for name, column in both.items():
                is_label = name == "episodes"
                ended = column[1:] != column[:-1] if is_label else column[:-1].astype(bool)
                goes_on &= ~ended.any(axis=1)
            for each in unused:
                each.look(batch.column(each.name), goes_on, first)
            first, before = first + len(batch), {name: column[-1:].copy() for name, column in part.items()}

    def parts(self, names: Collection[str]) -> Iterator[Part]:
        if "frames" in names:
            return self._with_finals({*names, "observations", "final_observations"} & set(self.uses))
        if self.repeats is not None and "rewards" in names:
            return self.repeats.watched(self._plain({*names, "times"} & set(self.uses)))
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
            return _named(uses, [_time(batch.column(use)) for use in uses])
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
        columns = {use: batch.column(use) for use in uses}
        if name in MASKS and len(uses) == 1 and _may_name(columns[uses[0]].type):
            rows = lists(uses[0], columns[uses[0]], first)
            if self._masks_name_actions[name]:
                return np.fromiter(rows, object, len(rows))
            columns[uses[0]] = pa.array([[*map(int, row)] for row in rows], pa.list_(pa.int64()))
        found = [numbers(use, column, schema.field(use), first) for use, column in columns.items()]
        if name in MASKS and len(uses) > 1:
            return _named(uses, found)
        if name in ("observations", "next_observations"):
            for use, column in zip(uses, found, strict=True):
                _check_rounding(use, column, first)
        array = found[0] if len(uses) == 1 else _side_by_side(uses, found, first)
        if name in ("observations", "next_observations"):
            return array.reshape(-1, 1) if array.ndim == 1 else array
        return array

    @cached_property
    def _masks_name_actions(self) -> dict[str, bool]:
        """Whether lists name the allowed actions, or hold 0 and 1 for each action: the first rows show it."""
        uses = {name: self.uses[name][0] for name in MASKS if name in self.uses}
        batch = next(self.table.batches(list(uses.values()), SEEN_ROWS))
        return {name: not are_flags(lists(use, batch.column(use), 0)) for name, use in uses.items()}

    def _with_finals(self, names: Collection[str]) -> Iterator[Part]:
        """The parts with the final observation of every episode after its last row."""
        first = 0
        for part, following in with_following(self._plain(names)):
            yield _framed(part, following, self.uses["final_observations"][0], first)
            first += len(part["rewards"])


def _may_name(kind: pa.DataType) -> bool:
    """Texts and lists of any length may name actions; lists of true and false do not."""
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return is_text(kind) or (is_list and not pa.types.is_boolean(kind.value_type))


def _time(column: pa.Array) -> np.ndarray:
    """Values that tell rows apart; an empty cell equals no other."""
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    if is_text(column.type):
        return np.asarray(column.cast(pa.string()).fill_null("").to_pylist(), dtype=str)
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _named(names: list[str], columns: list[np.ndarray]) -> np.ndarray:
    """Columns with their names, of which each may be that of an action."""
    found = np.empty(
        len(columns[0]), [(name, column.dtype) for name, column in zip(names, columns, strict=True)]
    )
    for name, column in zip(names, columns, strict=True):
        found[name] = column
    return found


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
    """Raise DataError for a category, a time or an empty cell, with what makes features of it."""
    refuse_nulls(
        name,
        column,
        first,
        "write a fixed number there, and in another column 1 where it was empty, also in what a policy "
        "is asked,",
    )
    if is_text(column.type) and len(column):
        word = str(column[0])
        remedy = (
            "make columns of 0 and 1 of it, one for each value that can occur (pandas.get_dummies of a "
            "Categorical), the same in later tables and in what a policy is asked; or leave it out"
        )
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
