"""The rows of one log, part by part, as the frames and steps of a timeline.

Within an episode the mask of the state after a step is that of the next row. After a last step that is not
terminal a column has it, in which a mask without bits is one that is not known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from optimist.data.rules.checks import check_values, checked_masks, checked_rows
from optimist.data.rules.log import FRAMES, Part
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


def at_ends(steps: Columns, last: Any) -> Columns:
    """The columns with next masks only where no row follows: after truncated steps, and after the `last` ones
    of lanes if their episodes have no end."""
    if NEXT not in steps:
        return steps
    needed = steps["truncated"] & ~steps["terminal"]
    needed[last] |= ~steps["terminal"][last]
    return {**steps, NEXT: np.where(needed[:, None], steps[NEXT], np.uint8(0))}


def if_known(steps: Columns) -> Columns:
    """The columns without next masks if none is known: such logs are as they were before the column."""
    if NEXT not in steps or steps[NEXT].any():
        return steps
    return {name: column for name, column in steps.items() if name != NEXT}


class Joining:
    """Turns consecutive rows into pieces. A row is an observation with what followed it; its successor is
    given, or it is the observation of the next row. The pieces are copies of the rows. With `unknown_masks`,
    as in a file of ours, a next mask without actions is one that is not known; otherwise it is a mistake."""

    def __init__(self, spec: Spec, *, unknown_masks: bool = False) -> None:
        self.spec, self.rows = spec, 0  # the rows so far
        self.left_out = LeftOut()
        self._unknown_masks = unknown_masks
        self._next: np.ndarray | None = None  # the successor of the last row, if its episode continues
        self._next_mask: np.ndarray | None = None  # and the actions that are allowed there, if they are given
        self._held: tuple[np.ndarray, Columns] | None = None  # the last row, while its successor is unknown
        self._held_begins = False

    def add(self, part: Part) -> Piece:
        """The steps of these rows; a DataError names the first wrong row. Without successors the last row is
        not among them if its episode continues."""
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
        if NEXT in steps and "allowed" not in steps:
            raise DataError("next_allowed_actions belong to allowed_actions: give both, or leave them out")
        check_values(steps, spec, first)
        if FRAMES in part:
            self._check_next_masks(steps)
            needed = len(steps["reward"]) + int(np.count_nonzero(steps["terminal"] | steps["truncated"]))
            frames = self._frames(FRAMES, part)
            self._next = frames[needed] if len(frames) > needed else None
            piece = Piece(frames[:needed], steps)
        elif "next_observations" in part:
            successors = self._frames("next_observations", part)
            piece = self._with_successors(self._frames("observations", part), successors, steps)
        elif NEXT in steps:
            raise DataError(
                "next_allowed_actions belong to next_observations: without them the next row says what was "
                "allowed; leave them out"
            )
        else:
            piece = self._without_successors(self._frames("observations", part), steps)
        self.rows += len(steps["reward"])
        return piece

    def end(self) -> np.ndarray | None:
        """The observation after the last step if its episode has no end; rows may follow after a gap."""
        last, held = self._next, self._held
        self._next = self._next_mask = self._held = None
        if held is None:
            return last
        self._drop(held[1]["reward"])
        return None if self._held_begins else held[0][0]

    def _frames(self, name: str, part: Part) -> np.ndarray:
        return checked_rows(name, part[name], self.spec.frame_shape, self.spec.frame_dtype, self.rows)

    def _drop(self, rewards: np.ndarray) -> None:
        steps, total, _ = self.left_out
        self.left_out = LeftOut(steps + len(rewards), total + float(rewards.sum(dtype=np.float64)))

    def _check_next_masks(self, steps: Columns) -> None:
        """Raise DataError for a next mask that is not the mask of the next row, or that allows nothing."""
        if NEXT not in steps or not len(steps[NEXT]):
            return
        following, own, ended = steps[NEXT], steps["allowed"], steps["terminal"] | steps["truncated"]
        differs = (following[:-1] != own[1:]).any(axis=1) & ~ended[:-1]
        before = self._next_mask is not None and (self._next_mask != own[0]).any()
        if before or differs.any():
            row = self.rows + (-1 if before else int(differs.argmax()))
            raise DataError(
                f"the next_allowed_actions of row {row} are not the allowed_actions of row {row + 1}, and "
                f"row {row} is not marked as an end: correct one of them, or mark the end"
            )
        empty = ~following.any(axis=1) & ~steps["terminal"]
        if empty.any() and not self._unknown_masks:
            raise DataError(
                f"the next_allowed_actions in row {int(empty.argmax()) + self.rows} allow nothing, and the "
                "row is not terminal: mark it as terminal, or correct them; where they are not known, give "
                "the allowed_actions of the row itself"
            )
        self._next_mask = None if ended[-1] else following[-1].copy()

    def _with_successors(self, frames: np.ndarray, successors: np.ndarray, steps: Columns) -> Piece:
        ended = steps["terminal"] | steps["truncated"]
        self._check_next_masks(steps)
        unequal = (frames[1:] != successors[:-1]).reshape(len(frames) - 1, prod(frames.shape[1:]))
        differs = unequal.any(axis=1) & ~ended[:-1]
        before = self._next is not None and not np.array_equal(frames[0], self._next)
        if before or differs.any():
            row = self.rows + (-1 if before else int(differs.argmax()))
            raise DataError(
                f"the next observation of row {row} is not the observation of row {row + 1}, and row {row} "
                "is not marked as an end: mark the ends with truncations or episodes (--truncations, "
                "--episodes); in Python truncations=True says that every row is an episode of its own"
            )
        self._next = None if ended[-1] else successors[-1].copy()
        places = np.flatnonzero(ended)
        copies = {name: column.copy() for name, column in steps.items()}
        return Piece(with_inserted(frames, places + 1, successors[places]), copies)

    def _without_successors(self, frames: np.ndarray, steps: Columns) -> Piece:
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
        if "allowed" in steps:  # the mask of the row after each one, also of a dropped row; the last has none
            columns[NEXT] = np.append(steps["allowed"][1:], np.zeros_like(steps["allowed"][:1]), axis=0)
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
