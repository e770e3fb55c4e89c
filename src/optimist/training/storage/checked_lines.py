"""Files to which a run appends lines; a second file, `NAME.crc`, has a check for each line.

A line counts as written when its check exists: a line that a kill left incomplete does not count, and a line
that is damaged, missing or duplicated is found. Files of version 0.1.0 have no checks: they are read as they
are, and get checks when their run continues.
"""

import errno
import itertools
import logging
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from optimist.data import machine
from optimist.data.disk.files import naming, storage_error, write_whole
from optimist.data.disk.records import json_value
from optimist.errors import RunError, some_of

CHECK = re.compile(rb"[0-9a-f]{8} (\d{1,18})\n")
log = logging.getLogger("optimist")


class CheckedLine(NamedTuple):
    """A line and its check; one of the two may be missing and is empty then."""

    line: bytes
    check: bytes
    step: int

    @property
    def good(self) -> bool:
        return bool(self.line) and self.check == _check(self.line, self.step)


def checks_of(path: Path) -> Path:
    return path.with_name(path.name + ".crc")


def append(path: Path, lines: Iterable[str]) -> None:
    """Write the lines first and their checks last, because a line counts only with its check."""
    rows = _unchecked([line.encode() for line in lines])
    _append(path, b"".join(row.line for row in rows))
    _append(checks_of(path), b"".join(row.check for row in rows))


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
    """Force the lines and the files' names to disk, so that a power cut cannot lose lines older than the next
    checkpoint."""
    for file in (path, checks_of(path)):
        if file.exists():
            machine.sync_file(file)
    machine.sync_folder(path.parent)


def verified(path: Path) -> bytes:
    """The lines that count, or an error that names the damaged ones."""
    if not checks_of(path).exists():
        return _bytes(path)
    checks, lines = _bytes(checks_of(path)), _lines(path)
    if checks == b"".join([_check(line, _step(line)) for line in lines]):
        return b"".join(lines)  # the usual case, many times faster than row by row
    rows = _rows(path)
    if damaged := _damaged(rows):
        raise RunError(f"{path}: {damaged}; restore it from a copy, or start again with --restart")
    return b"".join(row.line for row in rows if row.check)


def has_step(path: Path, step: int) -> bool:
    """Does an undamaged line belong to this step?"""
    return any(row.good and row.step == step for row in _rows(path))


def rewind(path: Path, step: int, *, comes_again: bool) -> None:
    """Drop the lines after this step: they will be written again.

    Damaged lines up to the step will not be. They are reported and kept, with checks that do not match, so
    that every reader notices the damage. If a line of the step itself is damaged and `comes_again`, all lines
    of that step are dropped."""
    if not path.exists() and not checks_of(path).exists():
        return
    before = [row for row in _rows(path) if row.step <= step]
    if damaged := _damaged(before):
        log.warning("%s: %s; the run continues with the other lines", path, damaged)
    again = comes_again and any(row.step == step and not row.good for row in before)
    kept = [row for row in before if row.check and not (again and row.step == step)]
    _replace(checks_of(path), b"".join(row.check for row in kept))
    _replace(path, b"".join(_ended(row.line) for row in kept))


def _replace(path: Path, content: bytes) -> None:
    if not path.exists() or _bytes(path) != content:
        write_whole(path, content)


def _ended(line: bytes) -> bytes:
    """The line with a line break, so that the next line is not appended to an incomplete one."""
    return line + b"\n" if line and not line.endswith(b"\n") else line


def _rows(path: Path) -> list[CheckedLine]:
    """Every line with its check. Lines are matched to checks by content and in order, so that a missing or
    duplicated line does not affect the others."""
    checks = _lines(checks_of(path))  # before the lines: a run may be writing
    lines = _lines(path)
    if not checks_of(path).exists():
        return _unchecked([line for line in lines if line.endswith(b"\n")])  # a kill may cut off the last one
    found: list[tuple[bytes, bytes]] = []
    marks, place, strange = [check[:8] for check in checks], 0, []
    for line in lines:
        try:
            at = marks.index(_crc(line), place)
        except ValueError:
            strange.append(line)
            continue
        found += [*_pairs(strange, checks[place:at]), (line, checks[at])]
        place, strange = at + 1, []
    return _with_steps([*found, *_pairs(strange, checks[place:])])


def _pairs(lines: list[bytes], checks: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return itertools.zip_longest(lines, checks, fillvalue=b"")


def _lines(path: Path) -> list[bytes]:
    content = _bytes(path) if path.exists() else b""
    return re.findall(rb"[^\n]*\n|[^\n]+\Z", content)


def _bytes(path: Path) -> bytes:
    with naming(path):
        return path.read_bytes()


def _with_steps(pairs: list[tuple[bytes, bytes]]) -> list[CheckedLine]:
    """A damaged line gets the step of its check; if that is damaged too, the step of the line before."""
    rows: list[CheckedLine] = []
    for line, check in pairs:
        match = CHECK.fullmatch(check)
        candidates = [_step(line), int(match[1]) if match else None, rows[-1].step if rows else 0]
        if check[:8] != _crc(line):
            candidates[:2] = candidates[1::-1]
        rows.append(CheckedLine(line, check, next(step for step in candidates if step is not None)))
    return rows


def _unchecked(lines: list[bytes]) -> list[CheckedLine]:
    """Lines with new checks; an unreadable line gets a check that does not match, and so stays damaged."""
    steps = [(line, _step(line)) for line in lines]
    return [
        CheckedLine(line, _check(line, step), step)
        if step is not None
        else CheckedLine(line, _check(b"", 0), 0)
        for line, step in steps
    ]


def _damaged(rows: list[CheckedLine]) -> str:
    """'line 3 is damaged and 2 more'; lines without checks at the end come from a kill and are no damage."""
    last = max((number for number, row in enumerate(rows, 1) if row.check), default=0)
    bad = [(number, row) for number, row in enumerate(rows[:last], 1) if not row.good]
    return some_of([f"line {number} is {_damage(row)}" for number, row in bad], 1)


def _damage(row: CheckedLine) -> str:
    return "missing" if not row.line else "damaged" if row.check else "duplicated"


def _check(line: bytes, step: int | None) -> bytes:
    return b"" if step is None else b"%08x %d\n" % (zlib.crc32(line), step)


def _crc(line: bytes) -> bytes:
    return b"%08x" % zlib.crc32(line)


def _step(line: bytes) -> int | None:
    """The step of a row of metrics or of episodes; 0 for a header."""
    try:
        if line.startswith(b"{"):
            return int(json_value(line)["step"])
        return 0 if line.startswith(b"step,") else int(line.split(b",")[0])
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
