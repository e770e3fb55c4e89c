"""Import of a table: which columns hold what, and its rows as steps, sorted if they are not in order."""

import json
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
from optimist.data.formats.parquet.rows import LAST, MOST_ROWS, NONE, TableRows
from optimist.data.formats.parquet.sorting import sorted_copy, sorted_rows
from optimist.data.formats.parquet.tables import Table, is_table, open_table, shown
from optimist.data.formats.parquet.unused import (
    Unused,
    is_identity,
    is_time,
    refuse_going_back,
    refuse_mixed,
    unused,
)
from optimist.data.rules.log import Log
from optimist.errors import DataError, UsageError, did_you_mean, in_one_line, some_of
from optimist.errors import log as warn

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
NEEDED = ("observations", "actions", "rewards", "terminals")
SEVERAL = ("observations", "next_observations", "actions", "allowed_actions", "next_allowed_actions", "order")


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
        "the column of time, or several (day,hour), by which the rows of an episode are sorted; none: "
        "they have "
        "the order of the file. Rows to sort are copied to the folder for temporary files (TMPDIR)",
    ] = None
    next_observations: Annotated[str | None, "the column or columns of the observation after the step"] = None
    probabilities: Annotated[str | None, "the column of the probability of the logged action"] = None
    allowed_actions: Annotated[
        str | None,
        "the column of lists that say which actions were allowed, by name or as 0 and 1 for each, or a "
        "column of 0 "
        "and 1 for each action, such as ok_<action>",
    ] = None
    next_allowed_actions: Annotated[
        str | None, "the same after the step, for logs whose rows have the observation after the step too"
    ] = None
    drop: Annotated[str, "columns to leave out: name,birthday or user_*"] = ""
    shape: Annotated[str | None, "the shape of observations that are lists or bytes: 84,84,1"] = None


def opened(address: str | Path, options: ReadOptions) -> TableRows:
    """The log in the table, with the columns that the options name."""
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
    said = _terminals_said(uses, options)
    _refuse_missing(address, uses, said, kept)
    ours = signed((table.schema.metadata or {}).get(OURS.encode()), address)
    if ours.spec is not None:
        uses["episodes"] = []  # its other columns say where episodes end; the last one may have no end
    if options.shape:
        table = replace(table, schema=_with_shape(table.schema, uses, _shape(options.shape)))
    times = tuple(_uses(table, kept, "order", options))
    if table.kind == "csv":
        table = replace(table, schema=_with_room(table.schema, uses, times))
    uses = {name: found for name, found in uses.items() if found or (name == "terminals" and said)}
    if ours.spec is not None:
        return TableRows(table, uses, ours.spec, ours.environment, ours.names)
    free = [name for name in kept if name not in times and all(name not in found for found in uses.values())]
    late = [name for name in free if is_time(name, table.schema.field(name).type)]
    uses |= {"times": [*times, *late]} if times or late else {}
    return TableRows(table, uses, terminals=said, times=times, left=tuple(free))


def _refuse_missing(
    address: str | Path, uses: dict[str, list[str]], said: str | None, kept: list[str]
) -> None:
    missing = [name for name in NEEDED if not uses[name] and not (name == "terminals" and said)]
    if not missing:
        return
    words = [f"--{name} {'A,B,C' if name == 'observations' else 'COLUMN'}" for name in missing]
    hint = _terminals_hint(uses, kept) if "terminals" in missing else ""
    raise DataError(
        f"{address} has no column for the {', '.join(missing)}: name "
        f"{'it' if len(missing) == 1 else 'them'} with "
        f"{' '.join(words)}{hint}; its columns are {', '.join(map(shown, kept))}"
    )


def _terminals_said(uses: dict[str, list[str]], options: ReadOptions) -> str | None:
    """What the options say about terminal steps that no column marks: all ends of the labelled episodes are
    terminal, or none."""
    if options.terminals == "no":
        if options.truncations == "no":
            raise DataError(
                "--terminals no and --truncations no leave no kind of end: omit one of them; for a machine "
                "that never stops, --terminals no and --episodes COLUMN, a column with one label in all rows"
            )
        return NONE
    return LAST if options.truncations == "no" and uses["episodes"] and not uses["terminals"] else None


def _terminals_hint(uses: dict[str, list[str]], kept: list[str]) -> str:
    done = [name for name in kept if name.lower() in ("done", "dones")]
    if done:
        return f"; --terminals {done[0]} if no time limit is among its ends"
    if uses["episodes"]:
        return (
            ", or say --truncations no if every episode really ends with its last row, --terminals no if it "
            "was cut there"
        )
    return ""


def _uses(table: Table, kept: list[str], name: str, options: ReadOptions) -> list[str]:
    """The table's columns for this column of the log; none if there are none."""
    given = getattr(options, name, None)
    if given is None:
        return [usual for usual in USUAL.get(name, ()) if usual in kept][:1]
    if given == "no" and name in ("terminals", "truncations"):
        return []
    found = [each for each in _matching(table, given, name) if each in kept]
    if not found:
        raise DataError(f"--drop leaves out every column of --{name.replace('_', '-')}: name another one")
    if len(found) > 1 and name not in SEVERAL:
        raise DataError(f"--{name} names {some_of(found, 3)}: name one column")
    return found


def _matching(table: Table, given: str, option: str) -> list[str]:
    """The columns that a comma-separated list of names and patterns selects, in this order."""
    found: list[str] = []
    for word in given.split(","):
        matched = [word] if word in table.schema.names else []
        if "*" in word or "?" in word:
            matched = [name for name in table.schema.names if fnmatchcase(name, word)]
        if not matched:
            hint = did_you_mean(word, table.schema.names)
            raise DataError(f'--{option.replace("_", "-")}: there is no column "{in_one_line(word)}": {hint}')
        found += [name for name in matched if name not in found]
    return found


def _shape(text: str) -> str:
    """The sizes in "84,84,1" as JSON."""
    sizes = text.split(",")
    if not all(size.strip().isdigit() and int(size) for size in sizes):
        raise UsageError(f'--shape "{text}": write the sizes of the axes, as in 84,84,1')
    return json.dumps([int(size) for size in sizes])


def _with_room(schema: pa.Schema, uses: dict[str, list[str]], times: Collection[str]) -> pa.Schema:
    """The types of a .csv file are those of its first rows; fractions may follow whole numbers, and letters
    may follow the numbers of an identity."""
    measured = ("observations", "next_observations", "rewards", "probabilities")
    names = {use for name in measured for use in uses[name]}
    used = {use for found in uses.values() for use in found} | {*times}
    for place, field in enumerate(schema):
        is_whole = pa.types.is_integer(field.type) or pa.types.is_null(field.type)
        if pa.types.is_timestamp(field.type):
            schema = schema.set(place, field.with_type(pa.timestamp("ns", field.type.tz)))
        elif is_whole and (
            field.name in names or (field.name not in used and is_time(field.name, field.type))
        ):
            schema = schema.set(place, field.with_type(pa.float64()))
        elif is_whole and field.name not in used and is_identity(field.name):
            schema = schema.set(place, field.with_type(pa.string()))
    return schema


def _with_shape(schema: pa.Schema, uses: dict[str, list[str]], shape: str) -> pa.Schema:
    names = {
        use for name in ("observations", "next_observations", "final_observations") for use in uses[name]
    }
    fields = [
        field.with_metadata({**(field.metadata or {}), b"shape": shape.encode()})
        if field.name in names
        else field
        for field in schema
    ]
    return pa.schema(fields, schema.metadata)


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
            asked=options.asked(rows.environment, options.truncations),
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
