"""Import of a table: its rows, sorted if they are not in order, become the steps of a dataset."""

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from optimist.data.appending import ACTION_COLUMNS, DOUBTS, FEATURES
from optimist.data.formats._incoming import Report, checked
from optimist.data.formats._log import Log
from optimist.data.formats.parquet.columns import NEEDED, USUAL, ReadOptions, opened
from optimist.data.formats.parquet.rows import MOST_ROWS, TableRows
from optimist.data.formats.parquet.sorting import sorted_copy, sorted_rows
from optimist.data.formats.parquet.tables import Table, is_table, open_table, shown
from optimist.data.formats.parquet.unused import Unused, refuse_going_back, refuse_mixed, unused
from optimist.errors import DataError, in_one_line, some_of
from optimist.errors import log as warn

HEADS = ("column", "type")
detect = is_table


def open(address: str | Path, options: ReadOptions) -> Log:
    """The rows of a table, which are steps in time order; sorted by episode and time if they are not."""
    rows = opened(address, options)
    notes = _notes(rows)
    with ExitStack() as folders:
        rows = _in_order(rows, folders)
        if rows.file_rows is not None:
            notes.append(f"the rows were sorted by {' and '.join(rows.sorted_by)}")
        try:
            doubts = _doubts(rows)
        except DataError as problem:
            raise DataError(rows.in_file(str(problem))) from problem
        return Log(
            columns=rows.columns,
            parts=partial(rows.parts, notes),
            rows=rows.table.rows,
            asked=options.asked(rows.environment, every_end_is_terminal=options.truncations == "no"),
            spec=rows.spec,
            actions_are_named=True,
            provenance=_provenance(rows, doubts),
            notes=notes,
            heads=HEADS,
            contents=_contents(rows.table),
            in_file=rows.in_file,
            close=folders.pop_all().close,
        )


def _in_order(log: TableRows, folders: ExitStack) -> TableRows:
    """The rows sorted by episode and time, in a new folder, if they are not."""
    episodes = log.uses.get("episodes", [None])[0]
    rows = sorted_rows(log.table, episodes, log.times) if log.spec is None else None
    if rows is None:
        return log
    names = {name for used in log.uses.values() for name in used} | {each.name for each in _unused(log)}
    folder = folders.enter_context(TemporaryDirectory(prefix="optimist-"))
    table = sorted_copy(log.table, sorted(names), rows, Path(folder))
    return replace(log, table=table, file_rows=rows)


def _provenance(rows: TableRows, doubts: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {**rows.names, **({DOUBTS: doubts} if doubts else {})}
    for name, kind in ((FEATURES, "observations"), (ACTION_COLUMNS, "actions")):
        if len(rows.uses[kind]) > 1:
            found[name] = rows.uses[kind]
    return found


def _unused(log: TableRows) -> list[Unused]:
    """Columns that look like an identity, if nothing else tells episodes apart, or like a time."""
    apart = {"episodes", "next_observations", "final_observations"} & {*log.uses}
    return unused(log.table, log.left, identities=not apart, times=not log.times)


def _doubts(log: TableRows) -> list[str]:
    """What unused columns say against the order of the rows; DataError if rows of different people would
    become one episode, or if an episode goes back in time."""
    found = _unused(log)
    log.look_at(found)
    refuse_mixed(found)
    refuse_going_back(found, has_episodes="episodes" in log.uses)
    doubts = [log.in_file(str(each)) for each in found if each.count]
    for doubt in doubts:
        warn.warning(doubt)
    return doubts


def verify(address: str | Path) -> Report:
    """Read every column and report the first problem; if the columns have their usual names, the rows are
    checked as by an import."""
    try:
        table = open_table(address)
        if all({*table.schema.names} & {*USUAL[name]} for name in NEEDED):
            return replace(checked(lambda: open(address, ReadOptions())), heads=HEADS, rows=_contents(table))
        for _ in table.batches(table.schema.names, MOST_ROWS // 16):
            pass  # nobody said which columns hold what: only damage can be found
    except DataError as problem:
        return Report([str(problem)])
    return Report([], HEADS, _contents(table))


def _contents(table: Table) -> list[tuple[str, str]]:
    return [(in_one_line(field.name), in_one_line(field.type)) for field in table.schema]


def _notes(log: TableRows) -> list[str]:
    """Which columns were used for what, which were left out, and by which the rows were sorted."""
    if log.spec is not None:
        return []
    used = [
        f"{name} from {some_of(found, 4)}" if found else f"terminals: {log.terminals}"
        for name, found in log.uses.items()
        if name != "times" and found != [name]
    ]
    known = {use for name, found in log.uses.items() if name != "times" for use in found} | {*log.sorted_by}
    left = [name for name in log.table.schema.names if name not in known]
    return [
        *([f"columns: {'; '.join(used)}"] if used else []),
        *([f"columns left out: {', '.join(map(shown, left))}"] if left else []),
    ]
