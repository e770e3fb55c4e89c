"""A log on its way in: its columns, part by part, become the steps of a new dataset."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optimist.data.checking import checked_piece, checked_rows, checked_steps
from optimist.data.formats._log import Log, Part
from optimist.data.formats._log_ends import check_ends
from optimist.data.formats._plan import Plan
from optimist.data.intake import Counts, Intake
from optimist.data.joining import Joining, Piece
from optimist.data.next_masks import GivenMasks
from optimist.data.propensities import Propensities
from optimist.data.transition import Spec
from optimist.errors import DataError, UsageError

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
    asked, ours = log.asked, log.spec is not None
    check_ends(log, asked)
    plan = Plan.of(log, asked)
    origin = {"environment": asked.environment or "", **provenance}
    propensities = Propensities(plan.spec.actions)
    with Intake(out, plan.spec, provenance=origin, is_padded=log.is_padded, unknown_masks=ours) as intake:
        done, last_frame, last_lane, masks = 0, None, 0, GivenMasks(may_be_unknown=ours)
        for part in _read_ahead(plan.parts(log)):
            lane = part.pop("lanes", np.zeros(1))[0]
            if done and lane != last_lane:
                intake.next_lane()
            if "frames" in part:
                piece, last_frame = framed_piece(part, plan.spec, masks, done)
                intake.extend(piece, np.arange(done, done + len(piece)))
            else:
                intake.add(part)
            if "probabilities" in part and plan.spec.discrete:
                propensities.add(part["actions"], part["probabilities"], part.get("allowed_actions"))
            done, last_lane = done + len(part["rewards"]), lane
            if progress and log.rows:
                progress(done, log.rows)
        if last_frame is not None:
            intake.end_lane(last_frame)
    doubts = [f"warning: {doubt}" for doubt in propensities.doubts(plan.spec.action_names)]
    return Imported(intake.counts, asked.environment, (*log.notes, *doubts))


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
        masks = GivenMasks(may_be_unknown=log.spec is not None)
        plan, joining, done = Plan.of(log, log.asked, is_verified=True), Joining(masks), 0
        for part in plan.parts(log):
            if "frames" in part:
                framed_piece(part, plan.spec, masks, done)
            else:
                checked_piece(part, plan.spec, joining)
            done += len(part["rewards"])
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


def framed_piece(part: Part, spec: Spec, masks: GivenMasks, first: int) -> tuple[Piece, np.ndarray | None]:
    """The steps of a part whose frames have the final one of every episode after its last step; and the frame
    after the last step of the log if its episode has no end."""
    frames = checked_rows("observations", part["frames"], spec.frame_shape, spec.frame_dtype, first)
    steps = checked_steps(part, spec, first)
    masks.check(steps, first)
    needed = len(steps["reward"]) + int(np.count_nonzero(steps["terminal"] | steps["truncated"]))
    last = frames[needed] if len(frames) == needed + 1 else None
    return Piece(frames[:needed], steps), last


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
