"""The rows of a table as the columns of a log, sorted by episode and time if they are not in order.

Of each row only its number, its episode and its time are in memory: the columns that are read are sorted in
temporary files."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from optimist.data.formats.parquet.tables import (
    FEATURE,
    FLAG,
    PLAIN,
    Table,
    is_text,
    labels,
    lists,
    nulls,
    numbers,
    plain,
    refuse_empty,
    refuse_no_labels,
)
from optimist.data.formats.parquet.unused import Unused
from optimist.data.rules.checks import are_flags, exact, refuse_rounded
from optimist.data.rules.joining import with_inserted
from optimist.data.rules.log import Part, with_following
from optimist.data.transition import Spec
from optimist.errors import DataError, in_one_line

MOST_ROWS, BYTES_AT_ONCE = 2**17, 2**24
SORTED_BYTES, MOST_FILES = 2**26, 200  # of the sorted copy: of a file, and files, which are open together
CACHED_ROWS = 2**12
SEEN_ROWS = 2**10  # enough to see the shape of observations
MASKS = ("allowed_actions", "next_allowed_actions")
ROLES = {
    **dict.fromkeys(("observations", "next_observations"), FEATURE),
    **dict.fromkeys(("terminals", "truncations"), FLAG),
}
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
            both = {name: np.concatenate([(before or part)[name][-1:], part[name]]) for name in part}
            goes_on = np.arange(first, first + len(batch)) > 0
            for name, column in both.items():
                ended = column[1:] != column[:-1] if name == "episodes" else column[:-1].astype(bool)
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
        columns, first, at_once = (
            list(dict.fromkeys(use for name in names for use in self.uses[name])),
            0,
            SEEN_ROWS,
        )
        if set(names) != {"observations"}:
            at_once = max(1, min(MOST_ROWS, BYTES_AT_ONCE // self.table.row_bytes(columns)))
        for batch in self.table.batches(columns, at_once):
            yield {name: self._array(name, batch, first) for name in names}
            first += batch.num_rows

    def _array(self, name: str, batch: pa.RecordBatch, first: int) -> Any:
        uses, schema = self.uses[name], self.table.schema
        columns = {use: batch.column(use) for use in uses}
        column, kind = columns[uses[0]], schema.field(uses[0]).type
        if name == "times":
            return _named(uses, [_time(each) for each in columns.values()])
        if name == "final_observations":  # the rows that have one, and these
            return ~nulls(column), numbers(uses[0], column.drop_null(), schema.field(uses[0]), first)
        if name == "episodes" or (name == "actions" and len(uses) == 1 and is_text(kind)):
            return labels(uses[0], column, first)
        if name in MASKS and len(uses) == 1 and _may_name(kind):
            rows = lists(uses[0], column, first)
            if self._masks_name_actions[name]:
                return np.fromiter(rows, object, len(rows))
            columns[uses[0]] = pa.array([[*map(int, row)] for row in rows], pa.list_(pa.int64()))
        role = ROLES.get(name, PLAIN)
        arrays = [numbers(use, each, schema.field(use), first, role) for use, each in columns.items()]
        if len(uses) == 1:
            return arrays[0]
        return _named(uses, arrays) if name in MASKS else _vectors(name, uses, arrays, first)

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
    if is_text(column.type):
        return np.asarray(column.cast(pa.string()).fill_null("").to_pylist(), dtype=str)
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _named(names: list[str], columns: list[np.ndarray]) -> np.ndarray:
    """Columns with their names, of which each may be that of an action."""
    kinds = [(name, column.dtype) for name, column in zip(names, columns, strict=True)]
    return np.rec.fromarrays(columns, dtype=kinds)


def _framed(part: Part, last: np.ndarray, name: str, first: int) -> Part:
    """The part with `frames` in place of both columns of observations. A terminal step needs no successor:
    its final observation may be empty, and is then black."""
    given, values = part.pop("final_observations")
    observations, terminal = part.pop("observations"), part["terminals"].astype(bool)
    ended = last | terminal
    if "truncations" in part:
        ended |= part["truncations"].astype(bool)
    missing, needless = ended & ~given & ~terminal, given & ~ended
    if missing.any() or needless.any():
        row = int((missing | needless).argmax())
        state = "is empty" if missing[row] else "is filled"
        place = "where an episode ends" if missing[row] else "where no episode ends"
        raise DataError(f'the column "{name}" {state} in row {row + first}, {place}; correct it')
    finals = np.zeros((int(ended.sum()), *observations.shape[1:]), observations.dtype)
    finals[given[ended]] = values.reshape(-1, *observations.shape[1:])
    return {**part, "frames": with_inserted(observations, np.flatnonzero(ended) + 1, finals)}


def _vectors(name: str, uses: list[str], columns: list[np.ndarray], first: int) -> np.ndarray:
    """Columns of numbers as rows of vectors."""
    kinds = {column.dtype for column in columns}
    kind = kinds.pop() if len(kinds) == 1 else np.dtype(np.float32)
    kind = kind if kind in (np.uint8, np.bool_) else np.dtype(np.float32)
    for number, (use, column) in enumerate(zip(uses, columns, strict=True)):
        if column.ndim > 1:
            raise DataError(f'the column "{use}" holds lists: name it alone, without {uses[0]}')
        if column.dtype.kind in "iu" and kind.kind == "f":
            columns[number] = exact(f'{name} of "{use}"', column, first)
        refuse_rounded(f'{name} of "{use}"', column, first)
    found = np.empty((len(columns[0]), len(columns)), kind)
    with np.errstate(over="ignore"):  # what is too large is infinite, and refused
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
        """Count those among the next rows: by their rewards, then only those that are still equal."""
        whole, first = part, self.rows
        if self._before is not None:
            whole = {name: np.concatenate([self._before[name], column]) for name, column in part.items()}
            first -= 1
        same = np.arange(len(whole["rewards"])) > 0
        for name in sorted(whole, key=lambda name: (name != "rewards", whole[name].nbytes)):
            rows, flat = np.flatnonzero(same), whole[name].reshape(len(same), -1)
            same[rows] = (flat[rows] == flat[rows - 1]).all(axis=1)
        if same.any() and not self.repeated:
            self.first_repeated = int(same.argmax()) + first
        self.repeated += int(same.sum())
        self._before = {name: column[-1:].copy() for name, column in part.items()}
        self.rows += len(part["rewards"])

    def notes(self) -> list[str]:
        """Rows may repeat honestly, so this is a remark."""
        if not self.repeated:
            return []
        counted = f"{self.repeated:,} of {self.rows:,} rows {'equals' if self.repeated == 1 else 'equal'}"
        return [
            f"{counted} the row before in every column that is read (first: row {self.first_repeated}); if "
            "rows were written twice, remove them"
        ]


def sorted_rows(table: Table, episodes: str | None, times: Sequence[str]) -> np.ndarray | None:
    """The rows of the table in their order, (n,); None if they have it. Episodes follow each other as they
    first appear, and so do the rows of an episode; or both are in the order of these columns of times."""
    names = list(dict.fromkeys([*([episodes] if episodes else []), *times]))
    labelled: list[pa.Array] = []
    parts: list[list[np.ndarray]] = []
    first = 0
    for batch in table.batches(names, MOST_ROWS) if names else ():
        if episodes:
            refuse_no_labels(episodes, batch.column(episodes), first)
            labelled.append(batch.column(episodes).dictionary_encode())
        parts.append([_sortable(name, batch.column(name), first) for name in times])
        first += len(batch)
    if not first:
        return None
    keys = [np.concatenate(column) for column in zip(*parts, strict=True)]
    episode, known = np.zeros(first, int), None
    if episodes:  # numbered as they first appear
        whole = pa.chunked_array(labelled).unify_dictionaries().combine_chunks()
        episode, known = plain(whole.indices.cast(pa.int64())), whole.dictionary
    rows = np.lexsort((*keys[::-1], episode))
    if times:
        begins = rows[np.flatnonzero(np.diff(episode[rows], prepend=-1))]  # of each episode, the first row
        place = np.argsort(np.lexsort([key[begins] for key in keys[::-1]]))
        rows = np.lexsort((*keys[::-1], place[episode]))
        _refuse_ties(rows, episode, keys, times, known)
    else:
        _refuse_numbers_that_begin_again(episode, known)
    return None if (rows[1:] > rows[:-1]).all() else rows


def _sortable(name: str, column: pa.Array, first: int) -> np.ndarray:
    """Numbers, dates, times, or texts of them in ISO's form, as numbers that sort in their order."""
    refuse_empty(name, nulls(column), first)
    if is_text(column.type):
        try:
            column = column.cast(pa.timestamp("ns"))
        except pa.ArrowInvalid:
            word = in_one_line(column[0], 30)
            raise DataError(
                f"--order {name}: the column holds words ({word} in row {first}); write times as 2026-03-01 "
                "10:00:00, or name a column of numbers"
            ) from None
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        raise DataError(f"--order {name}: the column holds {column.type}; name one of numbers or times")
    found = plain(column)
    if found.dtype.kind == "f" and np.isnan(found).any():
        row = int(np.isnan(found).argmax()) + first
        raise DataError(f"--order {name}: the column is empty in row {row}; fill it, or name another one")
    return found


def _refuse_ties(
    rows: np.ndarray, episode: np.ndarray, keys: list[np.ndarray], times: Sequence[str], labels: Any
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
        whose = f" of episode {in_one_line(labels[episode[one]])}" if labels is not None else ""
        raise DataError(
            f"rows {one} and {other}{whose} have the same {' and '.join(times)}, and the file's own order "
            "is not that of time: remove one of them if it was written twice, or name a second column, as in "
            f"--order {','.join(times)},number"
        )


def _refuse_numbers_that_begin_again(episode: np.ndarray, labels: Any) -> None:
    """Raise DataError for labels that come again in the same sequence, several rows each, as the numbers of
    episodes do that begin at 0 in every file: two episodes would become one."""
    begins = np.flatnonzero(np.append(True, episode[1:] != episode[:-1]))
    passed = np.diff(episode[begins])
    if (passed < 0).any() and (passed <= 1).all() and len(episode) >= 2 * len(begins):
        again = begins[1 + int((passed < 0).argmax())]
        raise DataError(
            f"episode {in_one_line(labels[episode[again]])} appears again in row {again}, and the others "
            "follow it as before: give every episode a label of its own; if these rows belong to the same "
            "episodes, say in which order: --order COLUMN"
        )


def sorted_copy(table: Table, columns: Collection[str], rows: np.ndarray, folder: Path) -> Table:
    """The table of these columns with the rows in this order, in files in the folder. Each file gets its rows
    in the order of the table first, and is then sorted by itself."""
    schema = pa.schema([table.schema.field(name) for name in columns], table.schema.metadata)
    at_once = min(MOST_ROWS, SORTED_BYTES // table.row_bytes(columns))
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
