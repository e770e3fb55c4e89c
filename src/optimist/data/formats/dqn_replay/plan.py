"""The plan of an import: the step of the dataset that each entry of a log becomes. It is made, with a check
of everything but frames, before any frame is read."""

import hashlib
from dataclasses import dataclass, field

import numpy as np

from optimist.data.formats.dqn_replay.log import PADDING, Dump, Entries, Log, entries
from optimist.errors import DataError

NO_LANE = -1  # the number of a stretch without a complete step


@dataclass(eq=False)
class Lane:
    """A stretch of windows without a gap; `first` and `stop` count steps of the whole dataset."""

    number: int
    first: int
    stop: int = 0


@dataclass(frozen=True)
class Piece:
    """One dump's part of a lane."""

    dump: Dump
    lane: Lane
    due: int  # the number of padding entries at its beginning
    first: int  # the number of its first step
    ended: int  # episodes of the lane that ended before this piece


@dataclass
class Plan:
    """What an import writes and what it leaves out."""

    pieces: list[Piece] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    largest_action: int = 0
    largest_reward: float = 0.0
    padding: int = 0
    without_successor: int = 0  # last steps of lanes
    with_unknown_past: int = 0  # first steps of lanes that begin inside an episode
    notes: list[str] = field(default_factory=list)

    @property
    def steps(self) -> int:
        return self.lanes[-1].stop if self.lanes else 0


def plan(log: Log, actions: int | None) -> Plan:
    """Read all columns but frames of every dump, raise DataError for wrong values, and number the steps."""
    made = Plan(notes=list(log.notes))
    contents: dict[bytes, int] = {}
    following = ended = 0
    due, goes_on = None, False
    for dump in log.dumps:
        if not dump.joined:
            _close(made, following, goes_on)
            following = made.steps
            made.lanes.append(Lane(len(made.lanes), following))
            ended, due, goes_on = 0, None, False
        found = entries(log, dump, due)
        for fault in found.faults(log, dump, actions):
            raise DataError(fault)
        made.pieces.append(Piece(dump, made.lanes[-1], found.due, following, ended))
        action, reward, terminal = found.steps
        if not dump.joined and dump.window and not found.due:
            made.with_unknown_past += min(PADDING, _first_end(terminal))
        made.largest_action = max(made.largest_action, int(action.max(initial=0)))
        made.largest_reward = max(made.largest_reward, float(np.abs(reward).max(initial=0)))
        made.padding += int(found.is_padding.sum())
        following, ended = following + len(action), ended + int(terminal.sum())
        goes_on = not terminal[-1] if len(terminal) else goes_on
        due = found.padding_after
        _note_repetition(made, contents, dump, found)
    _close(made, following, goes_on)
    kept = [lane for lane in made.lanes if lane.stop > lane.first]
    for lane in made.lanes:
        lane.number = kept.index(lane) if lane in kept else NO_LANE
    made.lanes = kept
    return made


def _close(made: Plan, following: int, goes_on: bool) -> None:
    """Set the end of the last lane; its last step is dropped unless it ended an episode, as its successor is
    unknown."""
    if made.lanes:
        made.lanes[-1].stop = following - goes_on
        made.without_successor += goes_on


def _first_end(terminal: np.ndarray) -> int:
    return int(np.argmax(terminal)) + 1 if terminal.any() else len(terminal)


def _note_repetition(made: Plan, contents: dict[bytes, int], dump: Dump, found: Entries) -> None:
    content = hashlib.sha256(b"".join(column.tobytes() for column in found.columns.values())).digest()
    if content in contents and dump.full:
        made.notes.append(f"suffixes {contents[content]} and {dump.suffix} hold the same steps")
    contents[content] = dump.suffix
