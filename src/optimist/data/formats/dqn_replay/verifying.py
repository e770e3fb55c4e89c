"""Checks of DQN Replay logs: a row for each window, and one line for each problem."""

import hashlib
from pathlib import Path

import numpy as np

from optimist.data.formats._incoming import Report
from optimist.data.formats.dqn_replay.dumps import Dump, ReplayLogs, read_logs
from optimist.data.formats.dqn_replay.reading import Entries, entries
from optimist.errors import DataError

HEADS = ("suffix", "window", "steps", "episodes", "mean clipped return", "actions", "problems")


def verify(address: str | Path) -> Report:
    """Read every byte of a run's logs, a block at a time; an import would find the same problems."""
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
            found = [*held.faults(logs, dump), *_large_rewards(logs, dump, held)]
        except DataError as problem:
            found, due = [str(problem)], None
        found += _wrong_frames(logs, dump, padding, contents)
        rows.append((str(dump.suffix), str(dump.window), *row, str(len(found))))
        problems += found
    return Report(problems, HEADS, rows)


def _large_rewards(logs: ReplayLogs, dump: Dump, held: Entries) -> list[str]:
    with np.errstate(invalid="ignore"):
        rows = np.abs(held.columns["reward"]) > 1
    said = held.first(logs, dump, "reward", rows, "is outside [-1, 1]")
    return [f"{said}: not clipped"] if rows.any() else []


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
