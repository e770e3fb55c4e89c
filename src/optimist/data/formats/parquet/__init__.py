"""Tables with a row for each step: Parquet, Arrow, Feather, CSV, and folders of Hugging Face datasets."""

from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import pyarrow as pa

from optimist.data.disk.appending import ACTION_COLUMNS, DOUBTS, FEATURES
from optimist.data.formats._arrays import ArrayFacts
from optimist.data.formats._incoming import OURS, Report, checked, signed
from optimist.data.formats.parquet.rows import LAST, MOST_ROWS, NONE, TableRows, sorted_copy, sorted_rows
from optimist.data.formats.parquet.tables import Table, is_table, open_table
from optimist.data.formats.parquet.unused import (
    is_identity,
    is_time,
    marks_ends,
    refuse_going_back,
    refuse_mixed,
    unused_columns,
)
from optimist.data.formats.parquet.writing import WriteOptions, write
from optimist.data.intake import NEEDED
from optimist.data.rules.log import Log
from optimist.errors import DataError, UsageError, did_you_mean, in_one_line, some_of
from optimist.errors import log as warn

__all__ = ["ReadOptions", "WriteOptions", "detect", "open", "verify", "write"]
# The names that are tried if an option does not name a column. "done" is not among them: it does not say
# whether an episode ended or was cut by a time limit.
USUAL = {
    "observations": ("observations", "observation", "obs", "states", "state"),
    "actions": ("actions", "action"),
    "rewards": ("rewards", "reward"),
    "terminals": ("terminals", "terminal", "terminations", "terminated"),
    "truncations": ("truncations", "truncated", "timeouts", "timeout"),
    "episodes": ("episodes", "episode", "episode_id"),
    "next_observations": ("next_observations", "next_observation", "next_obs", "next_states", "next_state"),
    "final_observations": ("final_observations", "final_observation"),
    "probabilities": ("probabilities", "probability"),
    "allowed_actions": ("allowed_actions",),
    "next_allowed_actions": ("next_allowed_actions",),
}
SEVERAL = ("observations", "next_observations", "actions", "allowed_actions", "next_allowed_actions", "order")
HEADS = ("column", "type")
detect = is_table


@dataclass(frozen=True)
class ReadOptions(ArrayFacts):
    """Which columns hold what; none: the usual name, if there is such a column."""

    observations: Annotated[str | None, "a column of lists, or several of numbers: x,y,z or sensor_*"] = None
    actions: Annotated[str | None, "the column of actions (several: vectors)"] = None
    rewards: Annotated[str | None, "the column of rewards"] = None
    terminals: Annotated[
        str | None,
        'the column that marks ends after which nothing is earned; "no" says that there are none, so that '
        "every episode was only cut",
    ] = None
    truncations: Annotated[
        str | None,
        'the column that marks ends by a time limit; "no" says that there are none, so that every episode '
        "ends with a terminal step",
    ] = None
    episodes: Annotated[
        str | None, "the column with a number or name of each episode; its rows need not be together"
    ] = None
    order: Annotated[
        str | None,
        "the column of time, or several (day,hour), by which the rows of an episode are sorted; none: they "
        "have the order of the file. Rows to sort are copied to the folder for temporary files (TMPDIR)",
    ] = None
    next_observations: Annotated[str | None, "the column or columns of the observation after the step"] = None
    probabilities: Annotated[str | None, "the column of the probability of the logged action"] = None
    allowed_actions: Annotated[
        str | None,
        "the column of lists that say which actions were allowed, by name or as 0 and 1 for each, or a "
        "column of 0 and 1 for each action, such as ok_<action>",
    ] = None
    next_allowed_actions: Annotated[
        str | None, "the same after the step, for logs whose rows have the observation after the step too"
    ] = None
    drop: Annotated[str, "columns to leave out: name,birthday or user_*"] = ""
    shape: Annotated[str | None, "the shape of observations that are lists or bytes: 84,84,1"] = None

    def __post_init__(self) -> None:
        sizes = self.shape.split(",") if self.shape else []
        if not all(size.strip().isdigit() and int(size) for size in sizes):
            raise UsageError(f'--shape "{self.shape}": write the sizes of the axes, as in 84,84,1')
        if self.terminals == self.truncations == "no":
            raise DataError(
                "--terminals no and --truncations no leave no kind of end: omit one of them; for a machine "
                "that never stops, --terminals no and --episodes COLUMN, a column with one label in all rows"
            )


def open(address: str | Path, options: ReadOptions) -> Log:
    """The rows of a table, which are steps in time order; sorted by episode and time if they are not."""
    rows = _table_rows(address, options)
    notes = _notes(rows)
    apart = {"episodes", "next_observations", "final_observations"} & {*rows.uses}
    unused = unused_columns(
        rows.table, rows.left, identities=not apart, times=not rows.times, ends=rows.terminals is not None
    )
    with ExitStack() as folders:
        labels = rows.uses.get("episodes", [None])[0]
        order = sorted_rows(rows.table, labels, rows.times) if rows.spec is None else None
        if order is not None:
            names = {name for used in rows.uses.values() for name in used} | {each.name for each in unused}
            folder = Path(folders.enter_context(TemporaryDirectory(prefix="optimist-")))
            table = sorted_copy(rows.table, sorted(names), order, folder)
            rows = replace(rows, table=table, file_rows=order)
            notes.append(f"the rows were sorted by {' and '.join(rows.sorted_by)}")
        try:
            rows.look_at(unused)
            refuse_mixed(unused)
            refuse_going_back(unused, has_episodes=labels is not None)
        except DataError as problem:
            raise DataError(rows.in_file(str(problem))) from problem
        doubtful = [each for each in unused if each.count and not (rows.terminals == LAST and each.agrees)]
        doubts = [rows.in_file(str(each)) for each in doubtful]
        for doubt in doubts:
            warn.warning(doubt)
        provenance: dict[str, Any] = {**rows.names, **({DOUBTS: doubts} if doubts else {})}
        for name, kind in ((FEATURES, "observations"), (ACTION_COLUMNS, "actions")):
            if len(rows.uses[kind]) > 1:
                provenance[name] = rows.uses[kind]
        return Log(
            columns=rows.columns,
            parts=partial(rows.parts, notes),
            rows=rows.table.rows,
            asked=options.asked(rows.environment, options.truncations),
            spec=rows.spec,
            actions_are_named=True,
            is_sorted=bool(rows.times),
            provenance=provenance,
            notes=notes,
            heads=HEADS,
            contents=_contents(rows.table),
            in_file=rows.in_file,
            close=folders.pop_all().close,
        )


def verify(address: str | Path) -> Report:
    """Read every column and report the first problem; if the columns have their usual names, the rows are
    checked as by an import."""
    try:
        table = open_table(address)
        if all({*table.schema.names} & {*USUAL[name]} for name in NEEDED):
            return checked(lambda: open(address, ReadOptions()))
        for _ in table.batches(table.schema.names, MOST_ROWS // 16):
            pass  # nobody said which columns hold what: only damage can be found
    except DataError as problem:
        return Report([str(problem)])
    return Report([], HEADS, _contents(table))


def _contents(table: Table) -> list[tuple[str, str]]:
    return [(in_one_line(field.name), in_one_line(field.type)) for field in table.schema]


def _table_rows(address: str | Path, options: ReadOptions) -> TableRows:
    """The rows of the table, with the columns that the options name."""
    table = open_table(address)
    dropped = _matching(table, options.drop, "drop") if options.drop else []
    kept = [name for name in table.schema.names if name not in dropped]
    if len(set(kept)) < len(kept):
        twice = next(name for name in kept if kept.count(name) > 1)
        raise DataError(
            f'{address} has two columns with the name "{in_one_line(twice)}": rename one, or put a line with '
            "the names of the columns first"
        )
    uses = {name: _uses(table, kept, name, options) for name in USUAL}
    terminals = NONE if options.terminals == "no" else None
    if options.truncations == "no" and uses["episodes"] and not uses["terminals"]:
        terminals = LAST
    _refuse_missing(address, uses, terminals, kept)
    ours = signed((table.schema.metadata or {}).get(OURS.encode()), address)
    times = tuple(_uses(table, kept, "order", options))
    table = replace(table, schema=_typed(table, uses, times, options.shape))
    if ours.spec is not None:  # its other columns say where episodes end; the last one may have no end
        uses = {name: used for name, used in uses.items() if used and name != "episodes"}
        return TableRows(table, uses, ours.spec, ours.environment, ours.names)
    uses = {name: used for name, used in uses.items() if used or (name == "terminals" and terminals)}
    taken = {*times, *(name for used in uses.values() for name in used)}
    free = [name for name in kept if name not in taken]
    late = [name for name in free if is_time(name, table.schema.field(name).type)]
    uses |= {"times": [*times, *late]} if times or late else {}
    return TableRows(table, uses, terminals=terminals, times=times, left=tuple(free))


def _uses(table: Table, kept: list[str], name: str, options: ReadOptions) -> list[str]:
    """The table's columns for this column of the log; none if there are none."""
    words = getattr(options, name, None)
    if words is None:
        return [usual for usual in USUAL.get(name, ()) if usual in kept][:1]
    if words == "no" and name in ("terminals", "truncations"):
        return []
    found = [each for each in _matching(table, words, name) if each in kept]
    if not found:
        raise DataError(f"--drop leaves out every column of --{name.replace('_', '-')}: name another one")
    if len(found) > 1 and name not in SEVERAL:
        raise DataError(f"--{name} names {some_of(found, 3)}: name one column")
    return found


def _matching(table: Table, words: str, option: str) -> list[str]:
    """The columns that a comma-separated list of names and patterns selects, in this order."""
    found: dict[str, None] = {}
    for word in words.split(","):
        matched = [word] if word in table.schema.names else []
        if "*" in word or "?" in word:
            matched = [name for name in table.schema.names if fnmatchcase(name, word)]
        if not matched:
            hint = did_you_mean(word, table.schema.names)
            raise DataError(f'--{option.replace("_", "-")}: there is no column "{in_one_line(word)}": {hint}')
        found |= dict.fromkeys(matched)
    return list(found)


def _refuse_missing(
    address: str | Path, uses: dict[str, list[str]], terminals: str | None, kept: list[str]
) -> None:
    missing = [name for name in NEEDED if not uses[name] and not (name == "terminals" and terminals)]
    if not missing:
        return
    words = [f"--{name} {'A,B,C' if name == 'observations' else 'COLUMN'}" for name in missing]
    taken = {use for used in uses.values() for use in used}
    done, hint = [name for name in kept if marks_ends(name) and name not in taken], ""
    if "terminals" in missing and done:
        hint = f"; --terminals {done[0]} if no time limit is among its ends"
    elif "terminals" in missing and uses["episodes"]:
        hint = (
            ", or say --truncations no if every episode really ends with its last row, --terminals no if it "
            "was cut there"
        )
    raise DataError(
        f"{address} has no column for the {', '.join(missing)}: name "
        f"{'it' if len(missing) == 1 else 'them'} with {' '.join(words)}{hint}; its columns are "
        f"{', '.join(map(_shown, kept))}"
    )


def _typed(table: Table, uses: dict[str, list[str]], times: Collection[str], shape: str | None) -> pa.Schema:
    """The schema with the shape of observations. The types of a .csv file are those of its first rows;
    fractions may follow whole numbers, and letters may follow the numbers of an identity."""
    seen = {use for name in ("observations", "next_observations") for use in uses[name]}
    measured = {*seen, *uses["rewards"], *uses["probabilities"]}
    used = {*times, *(use for found in uses.values() for use in found)}
    fields = []
    for field in table.schema:
        if shape and field.name in {*seen, *uses["final_observations"]}:
            field = field.with_metadata({**(field.metadata or {}), b"shape": f"[{shape}]".encode()})
        is_whole = pa.types.is_integer(field.type) or pa.types.is_null(field.type)
        is_free, counts_time = field.name not in used, is_time(field.name, field.type)
        if table.kind == "csv" and pa.types.is_timestamp(field.type):
            field = field.with_type(pa.timestamp("ns", field.type.tz))
        elif table.kind == "csv" and is_whole and (field.name in measured or (is_free and counts_time)):
            field = field.with_type(pa.float64())
        elif table.kind == "csv" and is_whole and is_free and is_identity(field.name):
            field = field.with_type(pa.string())
        fields.append(field)
    return pa.schema(fields, table.schema.metadata)


def _notes(rows: TableRows) -> list[str]:
    """Which columns were used for what, and which were left out."""
    if rows.spec is not None:
        return []
    uses = {name: used for name, used in rows.uses.items() if name != "times"}
    said = [
        f"{name} from {some_of(used, 4)}" if used else f"terminals: {rows.terminals}"
        for name, used in uses.items()
        if used != [name]
    ]
    read = {use for used in uses.values() for use in used} | {*rows.sorted_by}
    left = [_shown(name) for name in rows.table.schema.names if name not in read]
    return [
        *([f"columns: {'; '.join(said)}"] if said else []),
        *([f"columns left out: {', '.join(left)}"] if left else []),
    ]


def _shown(name: str) -> str:
    """The name of a column in a message; pandas writes the numbers of rows into a column without one."""
    return in_one_line(name, 40) or "(without a name)"
