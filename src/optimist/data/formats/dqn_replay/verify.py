"""Are DQN Replay logs what they should be: a row for each window, and every problem in one line."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optimist.data.formats.dqn_replay.layout import COLUMNS, PADDING, Dump, Log, leading_padding
from optimist.data.formats.dqn_replay.log import read_log
from optimist.data.formats.dqn_replay.plan import faults, padding_mask
from optimist.errors import DataError

BYTES_AT_ONCE = 1 << 21  # of frames


@dataclass(frozen=True)
class WindowRow:
    """What one dump holds of its own."""

    suffix: int
    window: int
    steps: int
    episodes: int  # that ended in it
    mean_return: float | None  # of the clipped rewards of episodes that lie in it whole
    smallest_action: int | None
    largest_action: int | None
    problems: int


@dataclass(frozen=True)
class Report:
    """Every window in the order of time, and every problem."""

    windows: list[WindowRow]
    problems: list[str]


def verify_dqn_replay(path: str | Path) -> Report:
    """Read every byte of a run's logs, a block at a time; an import would meet the same problems."""
    log = read_log(path)
    problems = [*log.faults, *(f"{log.where.address}: {note}" for note in log.notes)]
    rows: list[WindowRow] = []
    contents: dict[bytes, int] = {}
    padding: int | None = None
    for dump in log.dumps:
        found: list[str] = []
        padding = padding if dump.joined else None
        try:
            columns = log.columns(dump)
            due = _padding_due(log, dump) if padding is None else padding
            is_padding, padding = padding_mask(columns["terminal"], due)
            found += faults(log, dump, columns, is_padding)
            found += _large_rewards(log, dump, columns["reward"])
            rows.append(_row(dump, columns, is_padding))
        except DataError as problem:
            found.append(str(problem))
            is_padding, padding = np.zeros(len(dump.slots), bool), None
            rows.append(WindowRow(dump.suffix, dump.window, dump.fresh, 0, None, None, None, 0))
        found += _wrong_frames(log, dump, dump.slots[is_padding], contents)
        rows[-1] = WindowRow(**{**vars(rows[-1]), "problems": len(found)})
        problems += found
    return Report(rows, problems)


def _padding_due(log: Log, dump: Dump) -> int:
    return PADDING if dump.window == 0 else leading_padding(log, dump)


def _large_rewards(log: Log, dump: Dump, reward: np.ndarray) -> list[str]:
    with np.errstate(invalid="ignore"):
        rows = np.abs(reward) > 1
    if not rows.any():
        return []
    at = int(np.argmax(rows))
    where = f"{log.name('reward', dump.suffix)} row {int(dump.slots[at])}"
    return [f"{where}: {reward[at]:g} is outside [-1, 1] ({int(rows.sum())} such rows): not clipped"]


def _row(dump: Dump, columns: dict[str, np.ndarray], is_padding: np.ndarray) -> WindowRow:
    action, reward, terminal = (columns[name][~is_padding] for name in COLUMNS)
    ends = np.flatnonzero(terminal)
    totals = np.concatenate([[0.0], np.cumsum(np.nan_to_num(reward), dtype=np.float64)])
    borders = np.append(0, ends + 1) if dump.window == 0 else ends + 1
    returns = np.diff(totals[borders])
    return WindowRow(
        suffix=dump.suffix,
        window=dump.window,
        steps=len(action),
        episodes=len(ends),
        mean_return=float(returns.mean()) if len(returns) else None,
        smallest_action=int(action.min()) if len(action) else None,
        largest_action=int(action.max()) if len(action) else None,
        problems=0,
    )


def _wrong_frames(log: Log, dump: Dump, padding: np.ndarray, contents: dict[bytes, int]) -> list[str]:
    """Read the frames to the file's end: its checksum, its padding, and whether another dump has the same."""
    rows = max(1, BYTES_AT_ONCE // (dump.frame[0] * dump.frame[1]))
    block = np.empty((min(rows, dump.capacity), *dump.frame), np.uint8)
    digest, bright = hashlib.sha256(), []
    padding = np.sort(padding)
    try:
        with log.file("observation", dump.suffix) as file:
            for start in range(0, dump.capacity, rows):
                frames = block[: min(rows, dump.capacity - start)]
                file.fill(frames)
                digest.update(frames[: max(0, dump.fresh - start)].data)
                low, high = np.searchsorted(padding, [start, start + len(frames)])
                here = padding[low:high]
                bright += here[frames[here - start].any(axis=(1, 2))].tolist()
            file.finish()
    except DataError as problem:
        return [str(problem)]
    found = []
    name = log.name("observation", dump.suffix)
    if bright:
        found.append(f"{name} row {bright[0]}: padding that is not black ({len(bright)} such rows)")
    if dump.fresh and digest.digest() in contents:
        found.append(f"{name} holds the same frames as suffix {contents[digest.digest()]}; one was copied")
    contents.setdefault(digest.digest(), dump.suffix)
    return found
