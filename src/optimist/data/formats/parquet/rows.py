"""The rows of a table as the columns of a log."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from optimist.data.formats.parquet.arrays import is_text, labels, lists, numbers, plain, refuse_nulls
from optimist.data.formats.parquet.tables import Table
from optimist.data.formats.parquet.unused import Unused
from optimist.data.rules.checks import are_flags, exact, refuse_offset
from optimist.data.rules.joining import with_inserted
from optimist.data.rules.log import Part, with_following
from optimist.data.transition import Spec
from optimist.errors import DataError, in_one_line

MOST_ROWS, BYTES_AT_ONCE = 2**17, 2**24
CACHED_ROWS = 2**12
SEEN_ROWS = 2**10  # enough to see the shape of observations
FLAT = ("rewards", "terminals", "truncations")  # one value a row; others are refused where they are stored
MASKS = ("allowed_actions", "next_allowed_actions")
LAST, NONE = "the last row of every episode", "none"  # terminal steps that no column marks


@dataclass(frozen=True)
class TableRows:
    """The rows of a table as the columns of a log."""

    table: Table
    uses: dict[str, list[str]]  # the table's columns of each column of the log
    spec: Spec | None = None
    environment: str | None = None
    names: Mapping[str, list[str]] = field(default_factory=dict)  # of columns of the first table, in ours
    terminals: str | None = None  # LAST or NONE if no column marks them
    times: tuple[str, ...] = ()  # the columns of --order
    left: tuple[str, ...] = ()  # the columns that nothing uses, without those that were dropped
    file_rows: np.ndarray | None = None  # the row of the file that each row was before sorting

    @property
    def columns(self) -> set[str]:
        return {"frames" if name == "final_observations" else name for name in self.uses if name != "times"}

    @property
    def sorted_by(self) -> list[str]:
        """The columns that say in which order the rows are."""
        return [*self.uses.get("episodes", []), *self.times]

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

    def parts(self, notes: list[str], names: Collection[str]) -> Iterator[Part]:
        """These columns of all rows, with the ends and the frames that follow from others; a note says in the
        end that rows repeat."""
        lacks_terminals = self.terminals is not None and "terminals" in names
        wanted = {*names, *(("observations", "final_observations") if "frames" in names else ())}
        if lacks_terminals:
            wanted = wanted - {"terminals"} | {"episodes" if self.terminals == LAST else "rewards"}
        looks_at_repeats = self.spec is None and "rewards" in names and "frames" not in names
        wanted |= {"times"} if looks_at_repeats else set()
        repeats, first = Repeats(), 0
        stored = [name for name in self.uses if name in wanted]  # final observations are never the first
        for part, following in with_following(self._columns(stored)):
            last = last_rows(part, following)
            if lacks_terminals:
                part["terminals"] = last & (self.terminals == LAST)
            if looks_at_repeats:
                repeats.look(part)
            if "frames" in names:
                part = _framed(part, last, self.uses["final_observations"][0], first)
            first += len(last)
            yield {name: part[name] for name in names if name in part}
        notes += [note for each in repeats.notes() if (note := self.in_file(each)) not in notes]

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


def last_rows(part: Part, following: Part | None) -> np.ndarray:
    """Whether a row is the last one before another label of an episode, or of the log."""
    last = np.zeros(len(next(iter(part.values()))), bool)
    if "episodes" in part:
        labels = part["episodes"]
        last[:-1] = labels[1:] != labels[:-1]
        last[-1] = following is not None and following["episodes"][0] != labels[-1]
    last[-1] |= following is None
    return last


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


def _framed(part: Part, last: np.ndarray, name: str, first: int) -> Part:
    """The part with `frames` in place of both columns of observations. A terminal step needs no successor:
    its final observation may be empty, and is then black."""
    rows, values = part.pop("final_observations")
    observations, terminal = part.pop("observations"), part["terminals"].astype(bool)
    ended = last | terminal
    if "truncations" in part:
        ended |= part["truncations"].astype(bool)
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
        row = next((row for row, word in enumerate(column.to_pylist()) if word), 0)
        word = in_one_line(column[row], 20) or "empty"
        raise DataError(f'the column "{name}" holds words ({word} in row {first + row}); {remedy}')
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


@dataclass
class Repeats:
    """Counts the rows of a table that equal the row before, as they are read."""

    rows: int = 0
    repeated: int = 0
    first_repeated: int = 0

    _before: Part | None = None

    def look(self, part: Part) -> None:
        """Count those among the next rows."""
        count = len(part["rewards"])
        if all(part[name].size == count for name in FLAT if name in part):
            whole, first = part, self.rows
            if self._before is not None:
                whole = {name: np.concatenate([self._before[name], column]) for name, column in part.items()}
                first -= 1
            same = _equal_to_the_row_before(whole)
            if same.any() and not self.repeated:
                self.first_repeated = int(same.argmax()) + first
            self.repeated += int(same.sum())
            self._before = {name: column[-1:].copy() for name, column in part.items()}
        self.rows += count

    def notes(self) -> list[str]:
        """Rows may repeat honestly, so this is a remark."""
        if not self.repeated:
            return []
        counted = f"{self.repeated:,} of {self.rows:,} rows {'equals' if self.repeated == 1 else 'equal'}"
        return [
            f"{counted} the row before in every column that is read (first: row {self.first_repeated}); if "
            "rows were written twice, remove them"
        ]


def _equal_to_the_row_before(part: Part) -> np.ndarray:
    """By the rewards first: of the other columns only those rows are compared that are still equal."""
    count = len(part["rewards"])
    same, rewards = np.zeros(count, bool), part["rewards"].reshape(count)
    same[1:] = rewards[1:] == rewards[:-1]
    for column in sorted(part.values(), key=lambda column: column.nbytes):
        rows, flat = np.flatnonzero(same), column.reshape(count, -1)
        same[rows] = (flat[rows] == flat[rows - 1]).all(axis=1)
    return same
