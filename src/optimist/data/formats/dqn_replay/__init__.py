"""Public DQN Replay logs: the folders `replay_logs` of the DQN Replay Dataset, whole or in part.

The last slot of a file holds the entry before its first one. So its frame is looked up while the file before
is imported, and every file of frames is read twice.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from threading import Event

import numpy as np

from optimist.data.formats._arrays import GameFacts as ReadOptions
from optimist.data.formats._incoming import Report
from optimist.data.formats.dqn_replay.dumps import (
    COLUMNS,
    MEND,
    PADDING,
    STACK,
    Dump,
    ReplayLogs,
    in_ranges,
    read_logs,
)
from optimist.data.formats.dqn_replay.dumps import is_log as detect
from optimist.data.formats.dqn_replay.writing import WriteOptions, write
from optimist.data.rules.log import Asked, Log, Part
from optimist.data.transition import Spec
from optimist.errors import DataError

__all__ = ["ReadOptions", "WriteOptions", "detect", "open", "verify", "write"]
ENDS = "time-outs are among the terminals: these logs do not tell them apart"
OTHERS = "these logs are of another kind, or damaged"
HEADS = ("suffix", "window", "steps", "episodes", "mean clipped return", "actions", "problems")


@dataclass(frozen=True)
class Entries:
    """The entries of a dump without frames, in time order."""

    slots: np.ndarray
    columns: dict[str, np.ndarray]
    is_padding: np.ndarray
    padding_after: int  # the number of padding entries that follow its last entry

    @cached_property
    def steps(self) -> tuple[np.ndarray, ...]:
        """Action, reward and terminal of the entries that are not padding."""
        return tuple(self.columns[name][~self.is_padding] for name in COLUMNS)

    def faults(self, logs: ReplayLogs, dump: Dump, more: Iterable[tuple] = ()) -> Iterator[str]:
        """One line for each kind of wrong value: its file, its first row, and their number."""
        action, reward, terminal = (self.columns[name] for name in COLUMNS)
        filled = "should be padding before an episode, but is not zero"
        for name, what, wrong, remedy in (
            ("terminal", "is neither 0 nor 1", terminal > 1, MEND),
            ("reward", "is not finite", ~np.isfinite(reward), MEND),
            ("action", "is negative", action < 0, MEND),
            *more,
            *((name, filled, self.is_padding & (self.columns[name] != 0), OTHERS) for name in COLUMNS),
        ):
            if wrong.any():
                at = int(np.argmax(wrong))
                where = f"{logs.name(name, dump.suffix)} row {int(self.slots[at])}"
                value, count = self.columns[name][at], int(wrong.sum())
                yield f"{where}: {value:g} {what} ({count} such rows); {remedy}"


def entries(logs: ReplayLogs, dump: Dump, due: int | None) -> Entries:
    """The entries of a dump whose first `due` are padding; `due` is None if the dump before it is missing."""
    columns = {name: logs.array(name, dump.suffix)[dump.slots] for name in COLUMNS}
    if due is None or not dump.joined:
        due = PADDING if dump.window == 0 else logs.leading_padding(dump)
    count = len(dump.slots)
    mask = np.zeros(count + PADDING, bool)
    mask[:due] = True
    for distance in range(1, PADDING + 1):
        mask[np.flatnonzero(columns["terminal"]) + distance] = True
    return Entries(dump.slots, columns, mask[:count], int(mask[count:].sum()))


@dataclass
class Survey:
    """What the columns of all dumps hold, without their frames."""

    rows: int = 0
    padding: int = 0
    largest_action: int = 0
    largest_reward: float = 0.0
    with_unknown_past: int = 0  # first steps of stretches that begin inside an episode
    ended: list[bool] = field(default_factory=list)  # whether the last step of each stretch ended an episode
    notes: list[str] = field(default_factory=list)


def survey(logs: ReplayLogs, actions: int | None) -> Survey:
    """Read all columns of every dump; DataError for the first wrong value."""
    found, contents, due = Survey(), dict[bytes, int](), None
    for dump in logs.dumps:
        held = entries(logs, dump, due)
        most, own = actions or np.inf, "give the game's own number of actions"
        outside = ("action", f"is outside the {actions} actions", held.columns["action"] >= most, own)
        for fault in held.faults(logs, dump, [outside]):
            raise DataError(fault)
        action, reward, terminal = held.steps
        if not dump.joined:
            found.ended.append(True)
            if dump.window and not held.is_padding[:1].any():
                first_end = int(np.argmax(np.append(terminal, True))) + 1
                found.with_unknown_past += min(PADDING, first_end, len(terminal))
        if len(terminal):
            found.ended[-1] = bool(terminal[-1])
        found.rows += len(action)
        found.padding += int(held.is_padding.sum())
        found.largest_action = max(found.largest_action, int(action.max(initial=0)))
        found.largest_reward = max(found.largest_reward, float(np.abs(reward).max(initial=0)))
        content = hashlib.sha256(b"".join(column.tobytes() for column in held.columns.values())).digest()
        if content in contents and dump.full:
            found.notes.append(f"suffixes {contents[content]} and {dump.suffix} hold the same steps")
        contents[content], due = dump.suffix, held.padding_after
    return found


def open(address: str | Path, options: ReadOptions) -> Log:
    """A run's logs, on disk or at an fsspec address. The default of `actions_count` is the largest action in
    the logs plus one."""
    logs = read_logs(address)
    if logs.faults:
        raise DataError(logs.faults[0] + (f" ({len(logs.faults)} problems)" if logs.faults[1:] else ""))
    found = survey(logs, options.actions_count)
    if found.rows <= found.ended.count(False):
        raise DataError(f"{logs.folder.address} holds no step whose successor is known; nothing to import")
    stretches = f" in {len(found.ended)} stretches" if len(found.ended) > 1 else ""
    past = f"{found.with_unknown_past} steps after a gap have black frames in place of unknown ones"
    actions = options.actions_count or found.largest_action + 1
    return Log(
        columns=("observations", "actions", "rewards", "terminals", "truncations", "lanes"),
        parts=partial(_parts, logs),
        rows=found.rows,
        spec=Spec((*logs.dumps[0].frame, 1), "uint8", actions=actions, stack=STACK),
        asked=Asked(options.environment),
        provenance={
            "source": logs.folder.label,
            "files": {
                "count": len(logs.sizes),
                "bytes": sum(logs.sizes.values()),
                "sha256": logs.fingerprint,
            },
            "capacity": logs.dumps[0].capacity,
            "windows": in_ranges([dump.window for dump in logs.dumps]),
            "missing_windows": in_ranges(logs.missing),
            "rewards": "clipped"
            if found.largest_reward <= 1
            else f"as found, up to {found.largest_reward:g}",
            "ends": ENDS,
            "final_observations": "black: they were not logged",
            "notes": [*logs.notes, *found.notes],
        },
        notes=[
            f"from {len(logs.dumps)} windows{stretches}",
            f"left out: {found.padding:,} padding entries",
            *([past] if found.with_unknown_past else []),
            *(f"note: {note}" for note in (*logs.notes, *found.notes)),
        ],
    )


def _parts(logs: ReplayLogs, names: Collection[str]) -> Iterator[Part]:
    due, last_frame, lane, stopped = None, None, -1, Event()
    with ThreadPoolExecutor(1, "last frames") as thread:
        try:
            for dump, following in zip(logs.dumps, [*logs.dumps[1:], None], strict=True):
                coming = None
                if following and following.joined:
                    coming = thread.submit(_last_frame, logs, following, stopped)
                held, lane = entries(logs, dump, due), lane + (not dump.joined)
                for part in _steps(logs, dump, held, last_frame):
                    part["lanes"] = np.full(len(part["rewards"]), lane)
                    yield {name: part[name] for name in names}
                due, last_frame = held.padding_after, coming.result() if coming else None
        finally:
            stopped.set()


def _last_frame(logs: ReplayLogs, dump: Dump, stopped: Event) -> np.ndarray:
    last = np.empty((1, *dump.frame), np.uint8)
    for _, frames in logs.frames(dump):
        last[0] = frames[-1]
        if stopped.is_set():
            break
    return last


def _steps(logs: ReplayLogs, dump: Dump, held: Entries, last_frame: np.ndarray | None) -> Iterator[Part]:
    """The steps of a dump, a block of its file at a time; `last_frame` is that of its last slot."""
    action, reward, terminal = (held.columns[name] for name in COLUMNS)
    stop = 0
    for start, frames in logs.frames(dump):
        frames = frames[: max(0, dump.fresh - start)]
        if last_frame is not None and not start:
            frames = np.concatenate([last_frame, frames])
        here = slice(stop, stop + len(frames))
        stop = here.stop
        is_step = ~held.is_padding[here]
        bright = ~is_step & frames.any(axis=(1, 2))
        if bright.any():
            name, row = logs.name("observation", dump.suffix), held.slots[here][np.argmax(bright)]
            what = "the frame should be padding before an episode, but is not black"
            raise DataError(f"{name} row {row}: {what}; {OTHERS}")
        yield {
            "observations": frames[is_step][..., None],
            "actions": action[here][is_step],
            "rewards": reward[here][is_step],
            "terminals": terminal[here][is_step].astype(bool),
            "truncations": np.zeros(int(is_step.sum()), bool),
        }


def verify(address: str | Path) -> Report:
    """Read every byte of a run's logs, a block at a time: a row for each window, a line for each problem."""
    logs = read_logs(address)
    problems = [*logs.faults, *(f"{logs.folder.address}: {note}" for note in logs.notes)]
    rows: list[tuple[str, ...]] = []
    contents: dict[bytes, int] = {}
    due: int | None = None
    for dump in logs.dumps:
        row: tuple[str, ...] = (f"{dump.fresh:,}", "0", "", "")
        padding = np.empty(0, np.int64)
        try:
            held = entries(logs, dump, due)
            row, due, padding = _row(dump, held), held.padding_after, np.sort(held.slots[held.is_padding])
            large = np.abs(held.columns["reward"]) > 1
            found = list(
                held.faults(logs, dump, [("reward", "is outside [-1, 1]", large, "it is not clipped")])
            )
        except DataError as problem:
            found, due = [str(problem)], None
        found += _wrong_frames(logs, dump, padding, contents)
        rows.append((str(dump.suffix), str(dump.window), *row, str(len(found))))
        problems += found
    return Report(problems, HEADS, rows)


def _row(dump: Dump, held: Entries) -> tuple[str, ...]:
    """Steps, episodes that ended, the mean return of those that are complete here, and the actions."""
    action, reward, terminal = held.steps
    ends = np.flatnonzero(terminal)
    totals = np.concatenate([[0.0], np.cumsum(np.nan_to_num(reward), dtype=np.float64)])
    returns = np.diff(totals[np.append(0, ends + 1) if dump.window == 0 else ends + 1])
    mean = f"{returns.mean():.2f}" if len(returns) else ""
    taken = f"{action.min()} to {action.max()}" if len(action) else ""
    return f"{len(action):,}", f"{len(ends):,}", mean, taken


def _wrong_frames(logs: ReplayLogs, dump: Dump, padding: np.ndarray, contents: dict[bytes, int]) -> list[str]:
    """Read all frames; the problems of the file and its padding, and equal frames in another dump."""
    digest, bright, found = hashlib.sha256(), [], []
    try:
        for start, frames in logs.frames(dump):
            digest.update(frames[: max(0, dump.fresh - start)].data)
            low, high = np.searchsorted(padding, [start, start + len(frames)])
            here = padding[low:high]
            bright += here[frames[here - start].any(axis=(1, 2))].tolist()
    except DataError as problem:
        return [str(problem)]
    name = logs.name("observation", dump.suffix)
    if bright:
        found.append(f"{name} row {bright[0]}: padding that is not black ({len(bright)} such rows)")
    if dump.fresh and digest.digest() in contents:
        found.append(f"{name} holds the same frames as suffix {contents[digest.digest()]}; one is a copy")
    contents.setdefault(digest.digest(), dump.suffix)
    return found
