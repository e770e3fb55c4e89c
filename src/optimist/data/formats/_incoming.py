"""A log on its way in: its columns, part by part, become the steps of a new dataset."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from optimist.data.disk.appending import ACTION_COLUMNS, FEATURES
from optimist.data.disk.records import json_value, record
from optimist.data.intake import Counts, Intake
from optimist.data.rules.joining import Joining
from optimist.data.rules.log import LANES, Log, Part
from optimist.data.rules.plan import Plan
from optimist.data.rules.propensities import Propensities
from optimist.data.transition import Spec
from optimist.errors import DataError, UsageError, in_one_line

Address = str | Path  # a path, or an address such as gs://bucket/folder
Progress = Callable[[int, int], None]  # rows read, rows in all

BYTES_AT_ONCE = 2**24  # of the observations that are read together
FEW_ROWS = 2**13  # shorter parts, such as episodes, are joined up to these rows


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
        return _brought_in(log, out, provenance, progress)
    except DataError as problem:
        if (said := log.in_file(str(problem))) != str(problem):
            raise DataError(said) from problem
        raise


def _brought_in(log: Log, out: Address, provenance: Mapping[str, Any], progress: Progress | None) -> Imported:
    plan, ours = Plan.of(log), log.spec is not None
    origin = {"environment": log.asked.environment or "", **provenance}
    propensities = Propensities(plan.spec.actions)
    with Intake(out, plan.spec, provenance=origin, is_padded=log.is_padded, unknown_masks=ours) as intake:
        done, last_lane = 0, 0
        for part in _read_ahead(plan.parts(log)):
            lane = part.pop(LANES, np.zeros(1))[0]
            if done and lane != last_lane:
                intake.next_lane()
            intake.add(part)
            if "probabilities" in part and plan.spec.discrete:
                propensities.add(part["actions"], part["probabilities"], part.get("allowed_actions"))
            done, last_lane = done + len(part["rewards"]), lane
            if progress and log.rows:
                progress(done, log.rows)
    doubts = [f"warning: {doubt}" for doubt in propensities.doubts(plan.spec.action_names)]
    return Imported(intake.counts, log.asked.environment, (*log.notes, *doubts))


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


def problems(log: Log) -> list[str]:
    """The first problem in the rows; all of them are read as by `bring_in`, and nothing is written."""
    try:
        plan = Plan.of(log, is_verified=True)
        joining, last_lane = Joining(plan.spec, unknown_masks=log.spec is not None), 0
        for part in plan.parts(log):
            lane = part.pop(LANES, np.zeros(1))[0]
            if joining.rows and lane != last_lane:
                joining.end()
            joining.add(part)
            last_lane = lane
    except DataError as problem:
        return [log.in_file(str(problem))]
    return []


def checked(opened: Callable[[], Log]) -> Report:
    """What a log holds, and the first problem that an import would raise."""
    try:
        with closing(opened()) as log:
            return Report(problems(log), log.heads, log.contents)
    except DataError as problem:
        return Report([str(problem)])


def said_no(truncations: str | None) -> bool:
    """Whether the user said `--truncations no`; UsageError for any other word."""
    if truncations not in (None, "no"):
        raise UsageError(
            f'--truncations {truncations}: give "no", or put an array of truncations into the file'
        )
    return truncations == "no"


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


class Signed(NamedTuple):
    """What a file that this package wrote says of itself; nothing in others."""

    spec: Spec | None = None
    environment: str | None = None
    names: Mapping[str, list[str]] = MappingProxyType({})  # of columns of the table that it comes from


def signed(text: Any, place: object) -> Signed:
    """What a file that this package wrote says of itself."""
    try:
        found = json_value(text)
        environment = found["environment"]
        if not isinstance(environment, str):
            raise ValueError("its environment")
        return Signed(record(Spec, found["spec"]), environment or None, _column_names(found["names"]))
    except (ValueError, TypeError, KeyError) as problem:
        reason = in_one_line(problem)
        raise DataError(f"{place} says what it holds in a damaged way ({reason}); export it again") from None


def _column_names(found: Any) -> dict[str, list[str]]:
    """The names of columns in what a file of this package says; ValueError if they are none."""
    if not isinstance(found, dict) or not {*found} <= {FEATURES, ACTION_COLUMNS}:
        raise ValueError("its names")
    for names in found.values():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("its names")
    return found
