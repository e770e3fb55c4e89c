"""Files of rows to which a run appends. Each row ends with a running checksum of all rows up to it.

So a row that is damaged, missing or there twice is found. A row that a kill left incomplete does not count.
"""

import errno
import logging
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from optimist.data import machine
from optimist.data.disk.files import naming, storage_error, write_whole
from optimist.errors import RunError, some_of

ROW = re.compile(rb'(.*)([0-9a-f]{8})("\}|)\n')  # its content, its checksum, and the end of a JSON object
STEP = re.compile(rb'(?:\{"step": )?(\d{1,18}),')
TAIL = 2**16  # bytes; no row is longer
log = logging.getLogger("optimist")


class Row(NamedTuple):
    """A line of the file. It is good if it is the row that was written after the one before it."""

    line: bytes
    good: bool
    step: int | None


def append(path: Path, rows: Iterable[str], header: str = "") -> None:
    """Write rows, which are JSON objects or values with commas, and before the first row the header."""
    check, begun = _last_check(path, header), path.exists() and path.stat().st_size > 0
    lines = [] if begun else [header.encode()]
    for row in rows:
        head, end = (f'{row[:-1]}, "check": "', '"}') if row.startswith("{") else (f"{row},", "")
        check = zlib.crc32(head.encode(), check)
        lines.append(f"{head}{check:08x}{end}\n".encode())
    _append(path, b"".join(lines))


def _last_check(path: Path, header: str) -> int:
    """The checksum of the rows in this file."""
    if path.is_symlink() or not path.exists():
        return zlib.crc32(header.encode())
    with naming(path), open(path, "rb") as stream:
        stream.seek(max(0, path.stat().st_size - TAIL))
        found = ROW.fullmatch(stream.read().rpartition(b"\n")[0].rpartition(b"\n")[2] + b"\n")
    return int(found[2], 16) if found else zlib.crc32(header.encode())


def _append(path: Path, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | machine.NO_LINKS
    try:
        with open(os.open(path, flags, 0o666), "ab") as stream:
            stream.write(content)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise RunError(
                f"{path} is a link, which a run does not follow: put the file itself there"
            ) from problem
        raise storage_error(path, len(content), problem) from problem


def sync(path: Path) -> None:
    """Force the rows and the file's name to disk, so that a power cut cannot lose rows older than the next
    checkpoint."""
    if path.exists():
        machine.sync_file(path)
    machine.sync_folder(path.parent)


def verified(path: Path, header: str = "") -> list[bytes]:
    """The lines that count, or an error that names the damaged ones."""
    rows = list(_rows(path, header))
    if bad := _damaged(rows):
        raise RunError(f"{path}: {bad}; restore it from a copy, or start again with --restart")
    return [row.line for row in rows]


def has_step(path: Path, step: int, header: str = "") -> bool:
    """Does an undamaged row belong to this step?"""
    return any(row.good and row.step == step for row in _rows(path, header))


def rewind(path: Path, step: int, header: str = "", *, comes_again: bool = False) -> None:
    """Drop the rows after this step: they will be written again.

    What is damaged at the end is cut off. Damaged rows before that stay, so that every reader notices them.
    If one of the step's own rows may be damaged and `comes_again`, all rows of that step are dropped."""
    if not path.exists():
        return
    rows = list(_rows(path, header))
    ends = [number for number, row in enumerate(rows, 1) if row.good and _until(row, step)]
    later = (number for number, row in enumerate(rows) if row.good and not _until(row, step))
    kept = max(ends, default=0)
    border = rows[: max(kept, next(later, len(rows)))]  # with what may belong to the step
    if bad := _damaged(border):
        log.warning("%s: %s; the run continues with the other rows", path, bad)
    if comes_again:
        begins = next((number for number, row in enumerate(rows) if row.good and row.step == step), kept)
        last_before = max((number for number, row in enumerate(rows[:begins], 1) if row.good), default=0)
        if not all(row.good for row in border[last_before:]):
            kept = last_before
    content = b"".join(row.line for row in rows[:kept])
    if content != _bytes(path):
        write_whole(path, content)


def _until(row: Row, step: int) -> bool:
    return row.step is not None and row.step <= step


def _rows(path: Path, header: str) -> Iterator[Row]:
    """The lines of the file, the header as the first."""
    content = _bytes(path) if path.exists() else b""
    *lines, rest = re.findall(rb"[^\n]*\n|[^\n]*\Z", content)[: content.count(b"\n") + 1]
    check = zlib.crc32(header.encode())
    if header and lines:
        yield Row(lines[0], lines[0] == header.encode(), 0)
    for line in lines[1 if header else 0 :]:
        good, found = _follows(line, check)
        check = found
        step = STEP.match(line)
        yield Row(line, good, int(step[1]) if step else None)
    if rest and _follows(rest[:-1] + b"\n", check)[0]:  # a kill leaves no whole row with another end
        yield Row(rest, False, None)


def _follows(line: bytes, check: int) -> tuple[bool, int]:
    """Does the line have the checksum that follows this one? And its checksum, or this one if it has none."""
    found = ROW.fullmatch(line)
    if not found:
        return False, check
    return zlib.crc32(found[1], check) == int(found[2], 16), int(found[2], 16)


def _bytes(path: Path) -> bytes:
    with naming(path):
        return path.read_bytes()


def _damaged(rows: list[Row]) -> str:
    """'line 3 is damaged and 2 more'. A row is damaged, too, if one before it is missing."""
    return some_of([f"line {number} is damaged" for number, row in enumerate(rows, 1) if not row.good], 1)
