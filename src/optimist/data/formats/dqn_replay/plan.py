"""Which entry of a DQN Replay log is which step of the dataset, decided before any frame is read."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from optimist.data.formats.dqn_replay.layout import PADDING, Dump, Log, leading_padding
from optimist.errors import DataError

Columns = dict[str, np.ndarray]


@dataclass
class Lane:
    """A stretch of windows without a gap; steps and shards are counted through the whole dataset."""

    number: int
    first_step: int
    first_shard: int
    steps: int = 0

    @property
    def stop(self) -> int:
        return self.first_step + self.steps

    def shards(self, shard_steps: int) -> int:
        return -(-self.steps // shard_steps)


@dataclass(frozen=True)
class Piece:
    """One dump's part of a lane."""

    dump: Dump
    lane: Lane
    padding: int  # entries with which it begins that are padding
    entries: int  # of the lane before this piece, padding not counted
    ended: int  # episodes of the lane that ended before this piece


@dataclass
class Plan:
    """What an import will write, and what it will have left out."""

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
        return sum(lane.steps for lane in self.lanes)


def plan(log: Log, shard_steps: int, actions: int | None) -> Plan:
    """Read everything but the frames of every dump, refuse what is wrong, and number the rest."""
    made = Plan(notes=list(log.notes))
    contents: dict[bytes, int] = {}
    entries = ended = padding = 0
    last_ended = True
    for dump in log.dumps:
        columns = log.columns(dump)
        if not dump.joined:
            _close(made, entries, last_ended)
            lane = Lane(len(made.lanes), made.steps, sum(x.shards(shard_steps) for x in made.lanes))
            made.lanes.append(lane)
            entries = ended = 0
            padding = PADDING if dump.window == 0 else leading_padding(log, dump)
        piece = Piece(dump, made.lanes[-1], padding, entries, ended)
        is_padding, following = padding_mask(columns["terminal"], padding)
        for fault in faults(log, dump, columns, is_padding, actions):
            raise DataError(fault)
        made.pieces.append(piece)
        if not dump.joined and dump.window and not padding:
            made.with_unknown_past += _unknown_past(columns["terminal"])
        kept = ~is_padding
        made.largest_action = max(made.largest_action, int(columns["action"][kept].max(initial=0)))
        made.largest_reward = max(made.largest_reward, float(np.abs(columns["reward"]).max(initial=0)))
        made.padding += int(is_padding.sum())
        entries, ended = entries + int(kept.sum()), ended + int(columns["terminal"].sum())
        last_ended = bool(columns["terminal"][kept][-1]) if kept.any() else last_ended
        padding = following
        _note_repetition(made, contents, dump, columns)
    _close(made, entries, last_ended)
    made.lanes = [lane for lane in made.lanes if lane.steps]
    for number, lane in enumerate(made.lanes):
        lane.number = number
    return made


def _close(made: Plan, entries: int, last_ended: bool) -> None:
    """The last entry of a lane has no known successor unless it ended its episode."""
    if made.lanes:
        dropped = int(bool(entries) and not last_ended)
        made.lanes[-1].steps = entries - dropped
        made.without_successor += dropped


def _unknown_past(terminal: np.ndarray) -> int:
    first_end = int(np.argmax(terminal)) + 1 if terminal.any() else len(terminal)
    return min(PADDING, first_end)


def _note_repetition(made: Plan, contents: dict[bytes, int], dump: Dump, columns: Columns) -> None:
    content = hashlib.sha256(b"".join(column.tobytes() for column in columns.values())).digest()
    if content in contents and dump.fresh == dump.capacity - 1:
        made.notes.append(f"suffixes {contents[content]} and {dump.suffix} hold the same steps")
    contents[content] = dump.suffix


def padding_mask(terminal: np.ndarray, due: int) -> tuple[np.ndarray, int]:
    """Which entries are padding, when the first `due` are; and how many of the entries that follow are."""
    mask = np.zeros(len(terminal) + PADDING, bool)
    mask[:due] = True
    ends = np.flatnonzero(terminal)
    for distance in range(1, PADDING + 1):
        mask[ends + distance] = True
    return mask[: len(terminal)], int(mask[len(terminal) :].sum())


def faults(
    log: Log, dump: Dump, columns: Columns, is_padding: np.ndarray, actions: int | None = None
) -> Iterator[str]:
    """One line for each kind of wrong value, with its file and its first row."""
    action, reward, terminal = (columns[name] for name in ("action", "reward", "terminal"))
    mend = "fetch it again"
    wrong = [
        ("terminal", "is neither 0 nor 1", terminal > 1, mend),
        ("reward", "is not finite", ~np.isfinite(reward), mend),
        ("action", "is negative", action < 0, mend),
    ]
    if actions is not None:
        outside = f"is outside the {actions} actions"
        wrong.append(("action", outside, action >= actions, "give the game's own number of actions"))
    for name, column in columns.items():
        what = "should be padding before an episode, but is not zero"
        wrong.append((name, what, is_padding & (column != 0), "these logs are of another kind, or damaged"))
    for name, what, rows, remedy in wrong:
        if rows.any():
            row = int(dump.slots[np.argmax(rows)])
            value = columns[name][np.argmax(rows)]
            where = f"{log.name(name, dump.suffix)} row {row}"
            yield f"{where}: {value} {what} ({int(rows.sum())} such rows); {remedy}"
