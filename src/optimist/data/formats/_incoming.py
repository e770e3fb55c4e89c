"""A log on its way in: its columns, part by part, become the steps of a new dataset."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from optimist.data.disk.records import json_value, record
from optimist.data.intake import Counts, Intake
from optimist.data.rules.checks import Propensities
from optimist.data.rules.joining import Joining
from optimist.data.rules.log import LANES, Log, Part
from optimist.data.rules.plan import Plan
from optimist.data.transition import Spec
from optimist.errors import DataError, in_one_line

Address = str | Path  # a path, or an address such as gs://bucket/folder
Progress = Callable[[int, int], None]  # rows read, rows in all

BYTES_AT_ONCE = 2**24  # of the observations that are read together
FEW_ROWS = 2**13  # shorter parts, such as episodes, are joined up to these rows
OURS = "optimist"  # the name under which a file that this package wrote says what it holds


@dataclass(frozen=True)
class Imported:
    """What was imported, and what was changed or left out."""

    counts: Counts
    environment: str | None = None
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        return [*self.counts.lines(), *self.notes]


@dataclass(frozen=True)
class Report:
    """A table of what the log holds, and the problems."""

    problems: list[str]  # a line for each
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def bring_in(log: Log, out: Address, provenance: Mapping[str, Any], progress: Progress | None) -> Imported:
    """Write the log into the new folder `out`; errors name the rows of its file."""
    try:
        plan, ours = Plan.of(log), log.spec is not None
        origin = {"environment": log.asked.environment or "", **provenance}
        propensities, done = Propensities(plan.spec.actions), 0
        with Intake(out, plan.spec, provenance=origin, is_padded=log.is_padded, unknown_masks=ours) as intake:
            for part, begins_lane in _with_lanes(_read_ahead(plan.parts(log))):
                if begins_lane:
                    intake.next_lane()
                intake.add(part)
                if "probabilities" in part and plan.spec.discrete:
                    propensities.add(part["actions"], part["probabilities"], part.get("allowed_actions"))
                done += len(part["rewards"])
                if progress and log.rows:
                    progress(done, log.rows)
    except DataError as problem:
        if (said := log.in_file(str(problem))) != str(problem):
            raise DataError(said) from problem
        raise
    doubts = [f"warning: {doubt}" for doubt in propensities.doubts(plan.spec.action_names)]
    return Imported(intake.counts, log.asked.environment, (*log.notes, *doubts))


def _with_lanes(parts: Iterable[Part]) -> Iterator[tuple[Part, bool]]:
    """The parts without their lanes, each with whether it begins a new one."""
    last = None
    for part in parts:
        lane = part.pop(LANES, np.zeros(1))[0]
        yield part, last not in (None, lane)
        last = lane


def _read_ahead(parts: Iterator[Part]) -> Iterator[Part]:
    """The parts; a thread reads the next one while a part is used."""
    with ThreadPoolExecutor(1, "reading") as thread:
        waiting = thread.submit(next, parts, None)
        try:
            while (part := waiting.result()) is not None:
                waiting = thread.submit(next, parts, None)
                yield part
        finally:
            waiting.cancel()
            thread.submit(parts.close)  # type: ignore[attr-defined]  # where it ran: it closes its files


def checked(opened: Callable[[], Log]) -> Report:
    """What a log holds, and the first problem that an import would raise: all rows are read as by `bring_in`,
    and nothing is written."""
    try:
        with closing(opened()) as log:
            return Report(_problems(log), log.heads, log.contents)
    except DataError as problem:
        return Report([str(problem)])


def _problems(log: Log) -> list[str]:
    try:
        plan = Plan.of(log, is_verified=True)
        joining = Joining(plan.spec, unknown_masks=log.spec is not None)
        for part, begins_lane in _with_lanes(plan.parts(log)):
            if begins_lane:
                joining.end()
            joining.add(part)
    except DataError as problem:
        return [log.in_file(str(problem))]
    return []


def gathered(parts: Iterable[Part]) -> Iterator[Part]:
    """Short consecutive parts as longer ones."""
    waiting: list[Part] = []
    rows = size = 0
    for part in parts:
        waiting.append(part)
        rows += len(next(iter(part.values())))
        size += sum(column.nbytes for column in part.values())
        if rows >= FEW_ROWS or size >= BYTES_AT_ONCE:
            yield _joined(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@dataclass(frozen=True)
class Signed:
    """What a file that this package wrote says of itself; nothing in others."""

    spec: Spec | None = None
    environment: str = ""
    names: Mapping[str, list[str]] = field(default_factory=dict)  # of columns of the table that it comes from


def signed(text: Any, place: object) -> Signed:
    """What a file says of itself in this JSON; None: nothing."""
    if text is None:
        return Signed()
    try:
        content = json_value(text)
        names = record(dict[Literal["features", "action_columns"], list[str]], content["names"])
        return Signed(record(Spec, content["spec"]), record(str, content["environment"]), dict(names.items()))
    except (ValueError, TypeError, KeyError) as problem:
        reason = in_one_line(problem)
        raise DataError(f"{place} says what it holds in a damaged way ({reason}); export it again") from None
