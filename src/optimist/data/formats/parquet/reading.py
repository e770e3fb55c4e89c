"""Import of a table: its rows, sorted if they are not in order, become the steps of a dataset."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from optimist.data.disk.appending import ACTION_COLUMNS, DOUBTS, FEATURES
from optimist.data.formats import _incoming
from optimist.data.formats._incoming import Imported, Report
from optimist.data.formats.parquet.columns import NEEDED, USUAL, ReadOptions, opened
from optimist.data.formats.parquet.sorting import sorted_copy, sorted_rows
from optimist.data.formats.parquet.table_log import MOST_ROWS, TableLog
from optimist.data.formats.parquet.tables import is_table, open_table, shown
from optimist.data.formats.parquet.unused import Unused, refuse_going_back, refuse_mixed, unused
from optimist.data.rules.log import Asked
from optimist.errors import DataError, in_one_line, some_of
from optimist.errors import log as warn

detect = is_table


def read(
    address: str | Path,
    out: str | Path,
    options: ReadOptions = ReadOptions(),  # noqa: B008  (frozen)
    progress: Callable[[int, int], None] | None = None,
) -> Imported:
    """Import the rows of a table, which are steps in time order."""
    log = opened(address, options)
    provenance: dict[str, Any] = {"format": "parquet", "source": Path(address).name, **log.names}
    for name, kind in ((FEATURES, "observations"), (ACTION_COLUMNS, "actions")):
        if len(log.uses[kind]) > 1:
            provenance[name] = log.uses[kind]
    with in_order(log) as rows:
        doubts = _doubts(rows)
        if doubts:
            provenance[DOUBTS] = doubts
        for doubt in doubts:
            warn.warning(doubt)
        notes = _notes(rows, log.table.schema.names)
        asked = options.asked(log.environment, every_end_is_terminal=options.truncations == "no")
        found = _incoming.bring_in(rows, out, asked, provenance, progress, notes)
        repeats = rows.repeats.notes() if rows.repeats else []
        return replace(found, notes=(*found.notes, *map(rows.in_file, repeats)))


@contextmanager
def in_order(log: TableLog) -> Iterator[TableLog]:
    """The log with its rows sorted by episode and time, if they are not; errors name the rows of the file."""
    episodes = log.uses.get("episodes", [None])[0]
    rows = sorted_rows(log.table, episodes, log.times) if log.spec is None else None
    if rows is None:
        yield log
        return
    names = {name for used in log.uses.values() for name in used} | {each.name for each in _unused(log)}
    with TemporaryDirectory(prefix="optimist-") as folder:
        table = sorted_copy(log.table, sorted(names), rows, Path(folder))
        moved = replace(log, table=table, file_rows=rows)
        try:
            yield moved
        except DataError as problem:
            raise DataError(moved.in_file(str(problem))) from problem


def _unused(log: TableLog) -> list[Unused]:
    """Columns that look like an identity, if nothing else tells episodes apart, or like a time."""
    apart = {"episodes", "next_observations", "final_observations"} & {*log.uses}
    return unused(log.table, log.left, identities=not apart, times=not log.times)


def _doubts(log: TableLog) -> list[str]:
    """What unused columns say against the order of the rows; DataError if rows of different people would
    become one episode, or if an episode goes back in time."""
    found = _unused(log)
    log.look_at(found)
    refuse_mixed(found)
    refuse_going_back(found, has_episodes="episodes" in log.uses)
    return [log.in_file(str(each)) for each in found if each.count]


def verify(address: str | Path) -> Report:
    """Read every column and report the first problem; if the columns have their usual names, the rows are
    checked as by an import."""
    rows: list[tuple[str, ...]] = []
    try:
        table = open_table(address)
        rows = [(in_one_line(field.name), in_one_line(field.type)) for field in table.schema]
        usual = set(table.schema.names)
        if all(usual & set(USUAL[name]) for name in NEEDED):
            with in_order(opened(address, ReadOptions())) as log:
                _doubts(log)
                problems = [*map(log.in_file, _incoming.problems(log, Asked()))]
        else:  # nobody said which columns hold what: only damage can be found
            problems = []
            for _ in table.batches(table.schema.names, MOST_ROWS // 16):
                pass
    except DataError as problem:
        problems = [str(problem)]
    return Report(problems, rows, ("column", "type"))


def _notes(log: TableLog, names: Collection[str]) -> list[str]:
    """Which of these columns were used for what, which were left out, and by which the rows were sorted."""
    if log.spec is not None:
        return []
    used = [
        f"{name} from {some_of(found, 4)}" if found else f"terminals: {log.terminals}"
        for name, found in log.uses.items()
        if name != "times" and found != [name]
    ]
    by = [*log.uses.get("episodes", []), *log.times]
    known = {use for name, found in log.uses.items() if name != "times" for use in found} | {*by}
    left = [name for name in names if name not in known]
    return [
        *([f"columns: {'; '.join(used)}"] if used else []),
        *([f"columns left out: {', '.join(map(shown, left))}"] if left else []),
        *([f"the rows were sorted by {' and '.join(by)}"] if log.file_rows is not None else []),
    ]
