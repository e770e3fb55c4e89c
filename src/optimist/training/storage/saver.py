"""Checkpoints that are written in another thread while training goes on."""

import threading
import time
from collections.abc import Callable


class Saver:
    """Does one piece of writing at a time, in its own thread.

    What the piece writes must not change meanwhile: give it arrays of the host. The thread does not keep the
    process alive: a process that is stopped at once leaves the file before, like a killed one."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._problem: BaseException | None = None
        self._begun = self._ended = 0.0

    @property
    def seconds(self) -> float:
        """How long the newest piece took, or has taken so far."""
        writing = self._thread and self._thread.is_alive()
        return (time.monotonic() if writing else self._ended) - self._begun

    def begin(self, write: Callable[[], object]) -> None:
        """Start writing, after the piece before it is finished; an error of that one is raised first."""
        self.wait()
        self._begun = time.monotonic()
        self._thread = threading.Thread(target=self._work, args=(write,), name="checkpoint", daemon=True)
        self._thread.start()

    def _work(self, write: Callable[[], object]) -> None:
        try:
            write()
        except BaseException as problem:  # raised where the training waits
            self._problem = problem
        self._ended = time.monotonic()

    def wait(self) -> None:
        """Wait until everything is written, and raise the error that prevented it."""
        if self._thread:
            self._thread.join()
        self.check()

    def check(self) -> None:
        """Raise the error of a piece that failed, without waiting for one that is not finished."""
        if self._thread and not self._thread.is_alive():
            self._thread, problem, self._problem = None, self._problem, None
            if problem:
                raise problem
