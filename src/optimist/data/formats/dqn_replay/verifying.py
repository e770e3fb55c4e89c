"""Checks of DQN Replay logs: a row for each window, and one line for each problem."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from optimist.data.formats.dqn_replay.log import Dump, Entries, Log, entries
from optimist.data.formats.dqn_replay.opening import read_log
from optimist.errors import DataError


@dataclass(frozen=True)
class WindowRow:
    """The new entries of one dump, in figures."""

    suffix: int
    window: int
    steps: int
    episodes: int = 0  # that ended in it
    mean_return: float | None = None  # clipped, of the episodes that are complete in it
    smallest_action: int | None = None
    largest_action: int | None = None
    problems: int = 0


@dataclass(frozen=True)
class Report:
    """Every window in time order, and every problem."""

    windows: list[WindowRow]
    problems: list[str]
    heads = ("suffix", "window", "steps", "episodes", "mean clipped return", "actions", "problems")

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The windows as text, under `heads`."""
        return [
            (
                *map(str, (row.suffix, row.window, f"{row.steps:,}", f"{row.episodes:,}")),
                "" if row.mean_return is None else f"{row.mean_return:.2f}",
                "" if row.smallest_action is None else f"{row.smallest_action} to {row.largest_action}",
                str(row.problems),
            )
            for row in self.windows
        ]


def verify(address: str | Path) -> Report:
    """Read every byte of a run's logs, a block at a time; an import would find the same problems."""
    log = read_log(address)
    problems = [*log.faults, *(f"{log.folder.address}: {note}" for note in log.notes)]
    rows: list[WindowRow] = []
    contents: dict[bytes, int] = {}
    due: int | None = None
    for dump in log.dumps:
        row, found, padding = WindowRow(dump.suffix, dump.window, dump.fresh), [], np.empty(0, np.int64)
        try:
            held = entries(log, dump, due if dump.joined else None)
            row, due = _row(dump, held), held.padding_after
            padding = np.sort(held.slots[held.is_padding])
            found += [*held.faults(log, dump), *_large_rewards(log, dump, held)]
        except DataError as problem:
            found, due = [str(problem)], None
        found += _wrong_frames(log, dump, padding, contents)
        rows.append(replace(row, problems=len(found)))
        problems += found
    return Report(rows, problems)


def _large_rewards(log: Log, dump: Dump, held: Entries) -> list[str]:
    with np.errstate(invalid="ignore"):
        rows = np.abs(held.columns["reward"]) > 1
    said = held.first(log, dump, "reward", rows, "is outside [-1, 1]")
    return [f"{said}: not clipped"] if rows.any() else []


def _row(dump: Dump, held: Entries) -> WindowRow:
    action, reward, terminal = held.steps
    ends = np.flatnonzero(terminal)
    totals = np.concatenate([[0.0], np.cumsum(np.nan_to_num(reward), dtype=np.float64)])
    returns = np.diff(totals[np.append(0, ends + 1) if dump.window == 0 else ends + 1])
    return WindowRow(
        suffix=dump.suffix,
        window=dump.window,
        steps=len(action),
        episodes=len(ends),
        mean_return=float(returns.mean()) if len(returns) else None,
        smallest_action=int(action.min()) if len(action) else None,
        largest_action=int(action.max()) if len(action) else None,
    )


def _wrong_frames(log: Log, dump: Dump, padding: np.ndarray, contents: dict[bytes, int]) -> list[str]:
    """Read all frames; the problems of the file and its padding, and equal frames in another dump."""
    digest, bright, found = hashlib.sha256(), [], []
    try:
        for start, frames in log.frames(dump):
            digest.update(frames[: max(0, dump.fresh - start)].data)
            low, high = np.searchsorted(padding, [start, start + len(frames)])
            here = padding[low:high]
            bright += here[frames[here - start].any(axis=(1, 2))].tolist()
    except DataError as problem:
        return [str(problem)]
    name = log.name("observation", dump.suffix)
    if bright:
        found.append(f"{name} row {bright[0]}: padding that is not black ({len(bright)} such rows)")
    if dump.fresh and digest.digest() in contents:
        found.append(f"{name} holds the same frames as suffix {contents[digest.digest()]}; one is a copy")
    contents.setdefault(digest.digest(), dump.suffix)
    return found
