"""The last output of a child process: what people need to know when it fails."""

import contextlib
import os
import threading
from typing import Any

MOST = 16_384  # bytes; a traceback through several packages has a few thousand
JOINED = 1.0  # seconds; a process that the child started may keep the pipe open


class LastOutput:
    """Reads a pipe in a thread, so that the child never waits for a reader, and keeps its end."""

    def __init__(self, pipe: Any):
        self._pipe, self._end = pipe, b""
        self._thread = threading.Thread(target=self._read, name="output", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # the pipe was closed here
            while some := os.read(self._pipe.fileno(), MOST):
                self._end = (self._end + some)[-MOST:]

    def text(self) -> str:
        """The end of the output of a child that has ended."""
        self._thread.join(JOINED)
        return self._end.decode("utf-8", errors="replace")

    def last_line(self) -> str:
        return next((line.strip() for line in reversed(self.text().splitlines()) if line.strip()), "")
