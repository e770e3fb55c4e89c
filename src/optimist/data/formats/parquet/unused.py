"""Columns that an import does not use although they look like an identity, a time or a mark of ends. They
tell whether rows of several people, or out of order, would become one episode, and whether ends are lost."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from optimist.data.formats.parquet.tables import Table, flags, is_text
from optimist.errors import DataError, in_one_line, log

ROWS_AT_ONCE = 2**16  # the first of them show whether the values of a column come again
# A name such as customer, customer_id or patientNo; "new_customer" and "user_segment" tell nobody apart.
WHO = (
    "customer|user|patient|visitor|client|member|person|subject|student|session|episode|trajectory|encounter"
)
ENDING = "s?(id|ids|no|nr|num|number|key|uuid|guid|hash|index|idx)"
ITSELF = "customer|user|patient|visitor|session|episode|trajectory|(customer|user|patient|client)?email"
PERSON = re.compile(f"({ITSELF})|.*({WHO}|stay|adm){ENDING}")
IDENTITIES = {"id", "uuid", "guid"}  # the last word of a name such as store_id
COUNTS = ("step", "steps", "step_id", "timestep", "time_step", "t")
CLOCKS = (*COUNTS, "time", "timestamp")  # the first of them is taken at its word: it may not go back
TIMES = {"date", "datetime", "timestamp", "ts", "at", "when"}  # of one such as ordered_at
ENDS = {
    "done",
    "dones",
    "over",
    "end",
    "ends",
    "ended",
    "finished",
    "final",
    "last",
    "terminal",
    "terminated",
}


@dataclass
class Unused:
    """A column that nothing uses and that looks like an identity, a time or a mark of ends."""

    name: str
    kind: Literal["identity", "time", "clock", "end"]
    # Of rows within an episode in which the identity changes, or the time goes back; of rows marked as ends.
    count: int = 0
    row: int = 0  # the first of them
    stays: int = 0  # the first row within an episode in which the time does not go on
    agrees: bool = False  # marks of ends are where episodes end, and nowhere else
    before: pa.Array | None = field(default=None, repr=False)  # the last value so far

    @property
    def shown(self) -> str:
        return in_one_line(self.name, 40)

    @property
    def is_person(self) -> bool:
        return self.kind == "identity" and bool(PERSON.fullmatch(_letters(self.name)))

    def look(self, column: pa.Array, goes_on: np.ndarray, first: int) -> None:
        """Look at the next rows; `goes_on` says of each whether it continues the episode of the last."""
        before = column.slice(0, 1) if self.before is None else self.before
        late, early = column, pa.concat_arrays([before, column.slice(0, len(column) - 1)])
        self.before = column.slice(len(column) - 1)
        if self.kind == "end":
            marked, found = (_where(pc.equal(each.cast(pa.float64()), 1)) for each in (early, late))
            self.agrees &= bool((marked != goes_on)[first == 0 :].all())
        else:
            changes = pc.not_equal if self.kind == "identity" else pc.less
            found = _where(changes(late, early)) & goes_on
        if found.any() and not self.count:
            self.row = first + int(found.argmax())
        self.count += int(found.sum())
        stays = _where(pc.equal(late, early)) & goes_on
        if stays.any() and not self.stays:
            self.stays = first + int(stays.argmax())

    def __str__(self) -> str:
        """What it says against the order of the rows, or of their ends."""
        times = f"in {self.count:,} rows" if self.count > 1 else "in one row"
        begin = f'the column "{self.shown}" is left out and'
        if self.kind == "end":
            return (
                f"{begin} is 1 {times} (first: row {self.row}): if these are ends, --terminals {self.shown} "
                f"takes them as terminal steps, --truncations {self.shown} as time limits"
            )
        if self.kind == "identity":
            return (
                f"{begin} changes within episodes, {times} (first: row {self.row}): if each of its values is "
                f"an episode, give --episodes {self.shown}"
            )
        return (
            f"{begin} goes back within episodes, {times} (first: row {self.row}): if it is the time of the "
            f"rows, --order {self.shown} sorts them by it"
        )


def _where(found: pa.Array) -> np.ndarray:
    """An empty cell is neither earlier nor later, and nobody else's."""
    return flags(pc.fill_null(found, False))


def unused_columns(
    table: Table, names: Collection[str], *, identities: bool, times: bool, ends: bool
) -> list[Unused]:
    """Those of these columns that look like an identity whose values come again, a time or a mark."""
    kinds = {name: table.schema.field(name).type for name in names if name in table.schema.names}
    clock = next((name for name in CLOCKS if name in kinds and _counts(kinds[name])), None)
    late = [name for name, kind in kinds.items() if name != clock and is_time(name, kind)]
    named = [
        name
        for name, kind in kinds.items()
        if identities and name not in (clock, *late) and _is_label(kind) and is_identity(name)
    ]
    marks = [name for name, kind in kinds.items() if ends and marks_ends(name) and _is_flag(kind)]
    first = next(table.batches([*named, *marks], ROWS_AT_ONCE), None) if named or marks else None
    return [
        *([Unused(clock, "clock")] if clock and times else []),
        *(Unused(name, "time") for name in late if times),
        *(Unused(name, "identity") for name in named if first and _comes_again(first.column(name))),
        *(Unused(name, "end", agrees=True) for name in marks if first and _are_flags(first.column(name))),
    ]


def refuse_mixed(unused: Collection[Unused]) -> None:
    """Raise DataError if rows of different people would become one episode."""
    mixed = [each for each in unused if each.is_person and each.count]
    if not mixed:
        return
    one, names = mixed[0], [each.shown for each in mixed]
    time = next((f" --order {each.shown}" for each in unused if each.kind in ("time", "clock")), "")
    who = re.search(WHO, _letters(one.name))
    plural = {"person": "people", "trajectory": "trajectories"}.get(who[0], f"{who[0]}s") if who else "people"
    raise DataError(
        f'the column "{one.shown}" changes in row {one.row}, and row {one.row - 1} is not marked as an end '
        f"(so in {one.count:,} rows): rows of different {plural} would become one episode; --episodes "
        f"{' or '.join(names)}{time} keeps them apart and sorts the rows; if it is meant so, --drop "
        f"{','.join(names)}"
    )


def refuse_going_back(unused: Collection[Unused], *, has_episodes: bool) -> None:
    """Raise DataError if the clock goes back within an episode; warn if a count of steps stays the same."""
    for clock in (each for each in unused if each.kind == "clock"):
        name = clock.shown
        sort = f"--order {name} sorts by it"
        if not has_episodes:  # a count of steps begins again with each
            sort = f"give --episodes COLUMN and --order {name}" if clock.name in COUNTS else sort
            sort = f"{sort}, or mark where episodes end"
        if clock.count:
            of_day = "is a time of day that passes midnight, or " if clock.name == "time" else ""
            raise DataError(
                f'the column "{name}" goes back in row {clock.row}, within an episode: {sort}; if it '
                f"{of_day}has another meaning, leave it out: --drop {name}"
            )
        if clock.stays and clock.name in COUNTS:
            both = f"from row {clock.stays - 1} to row {clock.stays}"
            log.warning(f'the column "{name}" stays the same {both}, within an episode: {sort}')


def _letters(name: str) -> str:
    return re.sub("[^a-z]", "", name.lower())


def is_identity(name: str) -> bool:
    return bool(PERSON.fullmatch(_letters(name))) or _last_word(name) in IDENTITIES


def is_time(name: str, kind: pa.DataType) -> bool:
    """Whether the values look like times, or count steps."""
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return True
    return _counts(kind) and (name in CLOCKS or _last_word(name) in TIMES)


def marks_ends(name: str) -> bool:
    return _last_word(name) in ENDS


def _counts(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_timestamp(kind)


def _last_word(name: str) -> str:
    """at of ordered_at, Id of storeId, in small letters."""
    return next(iter(re.findall("[A-Z]?[a-z]+|[A-Z]+", name)[::-1]), "").lower()


def _is_flag(kind: pa.DataType) -> bool:
    return pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _is_label(kind: pa.DataType) -> bool:
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return is_number or is_text(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind)


def _comes_again(column: pa.Array) -> bool:
    """Do values of the column come again, as those of an identity do? A number of the row does not; a flag
    has two values, and a measurement has fractions."""
    values = column.drop_null()
    if pa.types.is_floating(values.type) and not pc.all(pc.equal(values, pc.floor(values))).as_py():
        return False
    return 2 < pc.count_distinct(values).as_py() < len(values)


def _are_flags(column: pa.Array) -> bool:
    return {*pc.unique(column.drop_null().cast(pa.float64())).to_pylist()} <= {0.0, 1.0}
