"""The rows of one log, part by part, as the frames and steps of a timeline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from optimist.data.rules.checks import check_values, checked_rows
from optimist.data.rules.log import FRAMES, Part
from optimist.data.rules.masks import GivenMasks, check_can_be_given, checked_masks, of_next_rows
from optimist.data.transition import NEXT, OF_STEPS, Columns, Spec
from optimist.errors import DataError

MANY_PLACES = 16  # frames per place


class LeftOut(NamedTuple):
    """The steps that a dataset lacks because their successors are unknown, and the sum of their rewards. For
    a part of a log, only an upper limit of their number is known."""

    steps: int = 0
    rewards: float = 0.0
    at_most: bool = False

    @classmethod
    def said(cls, provenance: Mapping[str, Any]) -> "LeftOut":
        """What the provenance says of them; nothing if that is damaged."""
        try:
            record = provenance["left_out"]
            return cls(int(record["steps"]), float(record["rewards"]), bool(record.get("at_most")))
        except (KeyError, TypeError, ValueError, OverflowError):
            return cls()

    def noted_in(self, provenance: Mapping[str, Any]) -> dict[str, Any]:
        """The provenance that says of these steps too."""
        if not self.steps:
            return dict(provenance)
        before = LeftOut.said(provenance)
        both = {"steps": before.steps + self.steps, "rewards": before.rewards + self.rewards}
        at_most = {"at_most": True} if before.at_most or self.at_most else {}
        return {**provenance, "left_out": {**both, **at_most}}

    def __str__(self) -> str:
        lost = f", whose rewards sum to {self.rewards:,.6g}" if self.rewards and not self.at_most else ""
        those = "1 last step" if self.steps == 1 else f"{self.steps:,} last steps"
        return f"{'at most ' if self.at_most else ''}{those} with an unknown successor{lost}"


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive steps. An episode that ends among them has one frame more than steps: its final one."""

    frames: np.ndarray
    steps: Columns  # action, reward, terminal, truncated, and others with one entry per step

    def __len__(self) -> int:
        return len(self.steps["reward"])


def joined(pieces: Sequence[Piece]) -> Piece:
    """Consecutive pieces as one."""
    if len(pieces) == 1:
        return pieces[0]
    names, frames = pieces[0].steps, np.concatenate([piece.frames for piece in pieces])
    return Piece(frames, {name: np.concatenate([piece.steps[name] for piece in pieces]) for name in names})


def with_last_frame(pieces: Sequence[Piece], frame: np.ndarray) -> list[Piece]:
    """The pieces with the frame after their last step, whose episode has no end."""
    no_steps = {name: column[:0] for name, column in pieces[0].steps.items()}
    return [*pieces, Piece(frame[None], no_steps)]


class Joining:
    """Turns consecutive rows into pieces. A row is an observation with what followed it; its successor is
    given, or it is the observation of the next row. The pieces are copies of the rows."""

    def __init__(self, spec: Spec, *, unknown_masks: bool = False) -> None:
        self.spec, self.rows = spec, 0  # the rows so far
        self.left_out = LeftOut()
        self._masks = GivenMasks(may_be_unknown=unknown_masks)
        self._next: np.ndarray | None = None  # the successor of the last row, if its episode continues
        self._held: tuple[np.ndarray, Columns] | None = None  # the last row, while its successor is unknown
        self._held_begins = False

    def add(self, part: Part) -> Piece:
        """The steps of these rows; a DataError names the first wrong row. Without successors the last row is
        not among them if its episode continues."""
        steps = self._steps(part)
        if FRAMES in part:
            piece = self._with_finals(self._frames(FRAMES, part), steps)
        elif "next_observations" in part:
            successors = self._frames("next_observations", part)
            piece = self._with_successors(self._frames("observations", part), successors, steps)
        else:
            piece = self._without_successors(self._frames("observations", part), steps)
        self.rows += len(steps["reward"])
        return piece

    def _frames(self, name: str, part: Part) -> np.ndarray:
        return checked_rows(name, part[name], self.spec.frame_shape, self.spec.frame_dtype, self.rows)

    def _steps(self, part: Part) -> Columns:
        """All columns of these rows except the frames, under their names in the files."""
        spec, first = self.spec, self.rows
        part = {"truncations": np.zeros(len(part["rewards"]), bool), **part}
        steps: Columns = {}
        for column in OF_STEPS:
            name, values = column.plural, part.get(column.plural)
            if values is None:
                continue
            if column.kind == "mask":
                steps[column.name] = checked_masks(name, values, spec, first)
            else:
                shape, dtype = column.shape(spec), column.dtype(spec)
                steps[column.name] = checked_rows(name, values, shape, dtype, first)
        if NEXT in steps:
            check_can_be_given(has_masks="allowed" in steps, has_successors=True)
        check_values(steps, spec, first)
        return steps

    def end(self) -> np.ndarray | None:
        """The observation after the last step if its episode has no end; rows may follow after a gap."""
        last, held = self._next, self._held
        self._next = self._held = None
        self._masks.end_lane()
        if held is None:
            return last
        self._drop(held[1]["reward"])
        return None if self._held_begins else held[0][0]

    def _drop(self, rewards: np.ndarray) -> None:
        steps, total, _ = self.left_out
        self.left_out = LeftOut(steps + len(rewards), total + float(rewards.sum(dtype=np.float64)))

    def _with_finals(self, frames: np.ndarray, steps: Columns) -> Piece:
        """Frames that have the final one of every episode after its last step."""
        self._masks.check(steps, self.rows)
        needed = len(steps["reward"]) + int(np.count_nonzero(steps["terminal"] | steps["truncated"]))
        self._next = frames[needed] if len(frames) > needed else None
        return Piece(frames[:needed], steps)

    def _with_successors(self, frames: np.ndarray, successors: np.ndarray, steps: Columns) -> Piece:
        ended = steps["terminal"] | steps["truncated"]
        self._masks.check(steps, self.rows)
        if self._next is not None and not np.array_equal(frames[0], self._next):
            raise jump(self.rows - 1)
        unequal = (frames[1:] != successors[:-1]).reshape(len(frames) - 1, prod(frames.shape[1:]))
        differs = unequal.any(axis=1) & ~ended[:-1]
        if differs.any():
            raise jump(self.rows + int(differs.argmax()))
        self._next = None if ended[-1] else successors[-1].copy()
        places = np.flatnonzero(ended)
        return Piece(with_inserted(frames, places + 1, successors[places]), _copies(steps))

    def _without_successors(self, frames: np.ndarray, steps: Columns) -> Piece:
        if NEXT in steps:
            check_can_be_given(has_masks=True, has_successors=False)
        before, begins_first = frames[:0], True
        if self._held is not None:
            before, begins_first = self._held[0], self._held_begins
            steps = {name: np.concatenate([self._held[1][name], column]) for name, column in steps.items()}
        terminal = steps["terminal"]
        truncated = steps["truncated"] & ~terminal
        ended = terminal | truncated
        begins = np.append(begins_first, ended[:-1])
        known = ~truncated  # the other rows are the final observations of their episodes, not steps
        lonely = truncated & begins  # an episode of one row without a successor leaves nothing
        self._held, self._held_begins = None, False
        if not ended[-1]:
            self._held = (frames[-1:].copy(), {name: column[-1:].copy() for name, column in steps.items()})
            self._held_begins = bool(begins[-1])
            known[-1], frames = False, frames[:-1]
        self._drop(steps["reward"][truncated])
        # The step before a dropped one is now the last of its episode, which was truncated.
        columns = {**steps, "truncated": np.append(truncated[1:] & ~begins[1:], False)}
        if "allowed" in steps:
            columns[NEXT] = of_next_rows(steps["allowed"])  # that of a dropped row too
        places = np.flatnonzero(terminal) + 1
        black_ends = np.zeros((len(places), *frames.shape[1:]), frames.dtype)
        joined = with_inserted(frames, places - len(before), black_ends, before)
        if lonely.any():
            joined = joined[np.insert(~lonely[: len(before) + len(frames)], places, True)]
        return Piece(joined, {name: column[known] for name, column in columns.items()})


def with_inserted(
    frames: np.ndarray, places: np.ndarray, extra: np.ndarray, before: np.ndarray | None = None
) -> np.ndarray:
    """A copy of the frames with these extra ones before the frames with these numbers, after those before."""
    parts = [] if before is None else [before]
    if len(places) * MANY_PLACES > len(frames):
        return np.concatenate([*parts, np.insert(frames, places, extra, axis=0)])
    start = 0
    for number, place in enumerate(places.tolist()):  # faster than np.insert if episodes are long
        parts += [frames[start:place], extra[number : number + 1]]
        start = place
    return np.concatenate([*parts, frames[start:]])


def _copies(columns: Mapping[str, np.ndarray]) -> Columns:
    return {name: column.copy() for name, column in columns.items()}


def jump(row: int) -> DataError:
    """The error for a row whose successor is not the observation of the row after it."""
    return DataError(
        f"the next observation of row {row} is not the observation of row {row + 1}, and row {row} is not "
        "marked as an end: mark the ends with truncations or episodes (--truncations, --episodes); in Python "
        "truncations=True says that every row is an episode of its own"
    )
