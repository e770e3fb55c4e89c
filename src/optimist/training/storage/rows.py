"""metrics.jsonl and episodes.csv, to which a run appends rows.

Each row ends with a running checksum of all rows up to it, so a row that is damaged, missing or
there twice is found. A row that a kill left incomplete does not count.
"""

import errno
import logging
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from optimist.data import machine
from optimist.data.disk.files import naming, storage_error, write_whole
from optimist.data.disk.records import json_value, record
from optimist.errors import RunError, some_of

METRICS, EPISODES = "metrics.jsonl", "episodes.csv"
COLUMNS = {"step": pa.int64(), "seed": pa.int64(), "episode": pa.int64(), "return": pa.float64()}
COLUMNS |= {"length": pa.int64()}
PLAIN = ",".join(COLUMNS) + "\n"  # the first line of episodes outside a run folder, without checksums
HEADER = PLAIN.replace("\n", ",check\n")
ROW = re.compile(rb'(.*)([0-9a-f]{8})("\}|)\n')  # its content, its checksum, and the end of a JSON object
STEP = re.compile(rb'(?:\{"step": )?(\d{1,18}),')
TAIL = 2**16  # bytes; no row is longer
# Another thread may drop the bytes, which are Python's, when the interpreter is closing: that aborts it.
ONE_THREAD = arrow_csv.ReadOptions(use_threads=False)
OPTIONS = arrow_csv.ConvertOptions(
    column_types=COLUMNS, include_columns=list(COLUMNS), null_values=[], strings_can_be_null=False
)
log = logging.getLogger("optimist")


class Row(NamedTuple):
    """A line of the file. It is good if it is the row that was written after the one before it."""

    line: bytes
    good: bool
    step: int | None


class EpisodeScore(NamedTuple):
    """One evaluation episode."""

    step: int
    seed: int
    episode: int
    score: float
    length: int


class EvaluationEpisodes(NamedTuple):
    """All evaluation episodes of a run, as columns."""

    step: np.ndarray
    seed: np.ndarray
    episode: np.ndarray
    score: np.ndarray
    length: np.ndarray


class RunCurve(NamedTuple):
    """One figure of one seed, in the order of the steps."""

    steps: np.ndarray
    values: np.ndarray


def append(path: Path, rows: Iterable[str]) -> None:
    """Write rows, which are JSON objects or values with commas, and before the first row the header."""
    header = _header(path)
    begun, check = path.exists() and path.stat().st_size > 0, zlib.crc32(header)
    if begun and not path.is_symlink():
        with naming(path), open(path, "rb") as stream:
            stream.seek(max(0, path.stat().st_size - TAIL))
            last = ROW.fullmatch(stream.read().rpartition(b"\n")[0].rpartition(b"\n")[2] + b"\n")
        check = int(last[2], 16) if last else check
    lines = [] if begun else [header]
    for row in rows:
        head, end = (f'{row[:-1]}, "check": "', '"}') if row.startswith("{") else (f"{row},", "")
        check = zlib.crc32(head.encode(), check)
        lines.append(f"{head}{check:08x}{end}\n".encode())
    content, flags = b"".join(lines), os.O_WRONLY | os.O_APPEND | os.O_CREAT | machine.NO_LINKS
    try:
        with open(os.open(path, flags, 0o666), "ab") as stream:
            stream.write(content)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise RunError(
                f"{path} is a link, which a run does not follow: put the file itself there"
            ) from problem
        raise storage_error(path, len(content), problem) from problem


def _header(path: Path) -> bytes:
    return HEADER.encode() if path.suffix == ".csv" else b""


def sync(path: Path) -> None:
    """Force the rows and the file's name to disk, so that a power cut cannot lose rows older than the next
    checkpoint."""
    if path.exists():
        machine.sync_file(path)
    machine.sync_folder(path.parent)


def verified(path: Path) -> list[bytes]:
    """The lines that count, or an error that names the damaged ones."""
    rows = list(_rows(path))
    if bad := _damaged(rows):
        raise RunError(f"{path}: {bad}; restore it from a copy, or start again with --restart")
    return [row.line for row in rows]


def has_step(path: Path, step: int) -> bool:
    """Does an undamaged row belong to this step?"""
    return any(row.good and row.step == step for row in _rows(path))


def rewind(path: Path, step: int) -> None:
    """Drop the rows after this step: they will be written again.

    What is damaged at the end is cut off. Damaged rows before that stay, so that every reader notices them.
    The state of this step can be evaluated again: if one of its episodes may be damaged, all are dropped."""
    if not path.exists():
        return
    rows = list(_rows(path))
    until = [row.step is not None and row.step <= step for row in rows]
    kept = max((number for number, row in enumerate(rows, 1) if row.good and until[number - 1]), default=0)
    later = next((number for number, row in enumerate(rows) if row.good and not until[number]), len(rows))
    border = rows[: max(kept, later)]  # with what may belong to the step
    if bad := _damaged(border):
        log.warning("%s: %s; the run continues with the other rows", path, bad)
    if path.suffix == ".csv":
        begins = next((number for number, row in enumerate(rows) if row.good and row.step == step), kept)
        last_before = max((number for number, row in enumerate(rows[:begins], 1) if row.good), default=0)
        if not all(row.good for row in border[last_before:]):
            kept = last_before
    content = b"".join(row.line for row in rows[:kept])
    if content != _bytes(path):
        write_whole(path, content)


def _rows(path: Path) -> Iterator[Row]:
    """The lines of the file, the header as the first."""
    content, header = _bytes(path) if path.exists() else b"", _header(path)
    *lines, rest = re.findall(rb"[^\n]*\n|[^\n]*\Z", content)[: content.count(b"\n") + 1]
    check = zlib.crc32(header)
    if header and lines:
        yield Row(lines[0], lines[0] == header, 0)
    for line in lines[1 if header else 0 :]:
        good, check = _follows(line, check)
        step = STEP.match(line)
        yield Row(line, good, int(step[1]) if step else None)
    if rest and _follows(rest[:-1] + b"\n", check)[0]:  # a kill leaves no whole row with another end
        yield Row(rest, False, None)


def _follows(line: bytes, check: int) -> tuple[bool, int]:
    """Does the line have the checksum that follows this one? And its checksum, or this one if it has none."""
    row = ROW.fullmatch(line)
    if not row:
        return False, check
    return zlib.crc32(row[1], check) == int(row[2], 16), int(row[2], 16)


def _bytes(path: Path) -> bytes:
    with naming(path):
        return path.read_bytes()


def _damaged(rows: list[Row]) -> str:
    """'line 3 is damaged and 2 more'. A row is damaged, too, if one before it is missing."""
    return some_of([f"line {number} is damaged" for number, row in enumerate(rows, 1) if not row.good], 1)


def read_metrics(run: Path) -> list[dict]:
    """Every row of metrics.jsonl; none if the run has no such log."""
    file, rows = run / METRICS, list[dict]()
    try:
        for line in verified(file) if file.exists() else []:
            row = json_value(line)
            del row["check"]
            rows.append(record(dict[str, int | float | None], row))
            record(tuple[int, int], [row["step"], row["seed"]])
    except (ValueError, TypeError, KeyError) as problem:
        raise RunError(
            f"{file} has a row of other things than figures: restore it, or start again with --restart"
        ) from problem
    return rows


def curves_of(rows: Sequence[dict], name: str) -> dict[int, RunCurve]:
    """The curve of each seed that has this figure."""
    points: dict[int, list[tuple[int, float]]] = {}
    for row in rows:
        if name in row:
            points.setdefault(row["seed"], []).append((row["step"], row[name]))
    return {seed: RunCurve(*map(np.array, zip(*each, strict=True))) for seed, each in points.items()}


def episode_lines(played: Iterable[EpisodeScore]) -> list[str]:
    return [",".join(map(str, row)) for row in played]


def write_episodes(path: Path, played: Iterable[EpisodeScore]) -> None:
    """Write a plain file of evaluation episodes, one per row."""
    write_whole(path, "".join([PLAIN, *(f"{line}\n" for line in episode_lines(played))]).encode())


def episode_columns(path: Path) -> EvaluationEpisodes:
    """All rows of an episodes.csv; RunError for a file with others."""
    content = _bytes(path)
    if not content.startswith(PLAIN.encode()):
        content = b"".join(verified(path)) or HEADER.encode()
    try:
        table = arrow_csv.read_csv(pa.BufferReader(content), ONE_THREAD, convert_options=OPTIONS)
    except (pa.ArrowInvalid, pa.ArrowKeyError) as problem:
        reason = str(problem).partition("\n")[0][:200]
        raise RunError(f"{path} has a row that is no episode ({reason}): evaluate the run again") from None
    found = EvaluationEpisodes(*(table[name].to_numpy() for name in COLUMNS))
    if not np.isfinite(found.score).all():
        raise RunError(f"{path} holds a return that is not finite: evaluate the run again")
    return found


def read_episodes(run: Path) -> list[EpisodeScore]:
    """All evaluation episodes of a run; an empty list if it was never evaluated."""
    file = Path(run) / EPISODES
    columns = episode_columns(file) if file.exists() else []
    return [EpisodeScore(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
