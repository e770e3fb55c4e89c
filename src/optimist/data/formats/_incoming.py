"""A log on its way in: its columns, part by part, become the steps of a new dataset."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from optimist.data.disk.appending import ACTION_COLUMNS, FEATURES
from optimist.data.disk.records import json_value, record
from optimist.data.intake import Counts, Intake
from optimist.data.rules.joining import Joining
from optimist.data.rules.log import Asked, Log, Part
from optimist.data.rules.plan import Plan
from optimist.data.rules.propensities import Propensities
from optimist.data.transition import Spec
from optimist.errors import DataError, UsageError, in_one_line

Progress = Callable[[int, int], None]

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

    problems: list[str]
    rows: Sequence[Sequence[str]]
    heads: Sequence[str]


def bring_in(
    log: Log,
    out: str | Path,
    asked: Asked,
    provenance: dict[str, Any],
    progress: Progress | None = None,
    notes: Iterable[str] = (),
    *,
    is_padded: bool = False,
) -> Imported:
    """Write the log into the new folder `out`; `is_padded` says that its last rows of truncated episodes hold
    final observations and are no steps."""
    plan = Plan.of(log, asked)
    origin = {"environment": asked.environment or "", **provenance}
    ours = log.spec is not None
    with Intake(out, plan.spec, provenance=origin, is_padded=is_padded, unknown_masks=ours) as intake:
        done, total, propensities = 0, log.rows, Propensities(plan.spec.actions)
        for part in _read_ahead(plan.parts(log)):
            intake.add(part)
            if "probabilities" in part and plan.spec.discrete:
                propensities.add(part["actions"], part["probabilities"], part.get("allowed_actions"))
            done += len(part["rewards"])
            if progress and total:
                progress(done, total)
    doubts = [f"warning: {doubt}" for doubt in propensities.doubts(plan.spec.action_names)]
    return Imported(intake.counts, asked.environment, (*notes, *doubts))


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


def problems(log: Log, asked: Asked) -> list[str]:
    """The first problem in the rows; all of them are read as by `bring_in`, and nothing is written."""
    try:
        plan = Plan.of(log, asked, is_verified=True)
        joining = Joining(plan.spec, unknown_masks=log.spec is not None)
        for part in plan.parts(log):
            joining.add(part)
    except DataError as problem:
        return [str(problem)]
    return []


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
