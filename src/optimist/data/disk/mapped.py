"""Memory-mapped files that change while they are used.

If a mapped file is cut short, the system ends a process that reads the missing part (SIGBUS), without a word.
So the length is looked at before each use. For the case that the file changes within a use, the process gets
a handler that names the file in one line before it ends. Each use costs one `stat`."""

import ctypes
import faulthandler
import os
import signal
from pathlib import Path

from optimist.errors import DataError

_lengths: dict[str, int] = {}  # of the files that this process has mapped
_handler = None  # kept here: the system calls it for as long as the process lives


def remember(path: Path, length: int) -> None:
    """Note a file that is about to be mapped."""
    _lengths[str(path)] = length
    _explain_bus_errors()


def check_length(path: str) -> None:
    """Raise DataError if a mapped file is shorter than when it was opened."""
    if problem := _shortened(path, _lengths[path]):
        raise DataError(problem)


def _shortened(path: str, length: int) -> str | None:
    try:
        found = os.stat(path).st_size
    except OSError:
        return None  # removed or renamed: the map still has all of it
    if found >= length:
        return None
    return (
        f"{path} was cut short while it was read: {found} bytes instead of {length}; restore it from a copy"
    )


def _explain_bus_errors() -> None:
    """Handle SIGBUS where it would end the process without a word; a handler of somebody else stays."""
    global _handler
    if not hasattr(signal, "SIGBUS"):  # Windows does not let anybody shorten a mapped file
        return
    if _handler or faulthandler.is_enabled() or signal.getsignal(signal.SIGBUS) != signal.SIG_DFL:
        return
    _handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(_explain)
    # Python's own handlers run after the failed instruction, which would fail again and again.
    ctypes.CDLL(None).signal(signal.SIGBUS, _handler)


def _explain(number: int) -> None:
    for path, length in _lengths.items():
        if problem := _shortened(path, length):
            os.write(2, f"optimist: {problem}\n".encode(errors="surrogateescape"))
            os._exit(DataError.exit_code)
    signal.signal(signal.SIGBUS, signal.SIG_DFL)  # not our file: the process ends as it would have
