"""Which entry of a log is which step of the dataset: decided, and everything but frames checked, before any
frame is read."""

import hashlib
from dataclasses import dataclass, field

import numpy as np

from optimist.data.formats.dqn_replay.log import PADDING, Dump, Entries, Log, entries
from optimist.errors import DataError

NO_LANE = -1  # the number of a stretch without a whole step


@dataclass(eq=False)
class Lane:
    """A stretch of windows without a gap; steps are counted through the whole dataset."""

    number: int
    first: int
    stop: int = 0


@dataclass(frozen=True)
class Piece:
    """One dump's part of a lane."""

    dump: Dump
    lane: Lane
    due: int  # entries with which it begins that are padding
    first: int  # the step that its first entry is, if that is not padding
    ended: int  # episodes of the lane that ended before this piece


@dataclass
class Plan:
    """What an import writes, and what it leaves out."""

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
    """Read everything but the frames of every dump, refuse what is wrong, and number the rest."""
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
    """The last entry of a lane has no known successor unless it ended its episode."""
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
