"""Ctrl-C and SIGTERM stop a run at the end of a chunk, once it is saved; a second signal stops it at once."""

import signal
from types import FrameType

from optimist.errors import OptimistError


class Interrupted(OptimistError):
    """A signal stopped the run, which is saved."""

    def __init__(self, message: str, signal_number: int):
        super().__init__(message)
        self.exit_code = 128 + signal_number


class StopRequest:
    """While entered, the first signal is stored in `received` and does not end the process."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.received = 0

    def __enter__(self) -> "StopRequest":
        try:
            self._before = {number: signal.signal(number, self._remember) for number in self.SIGNALS}
        except ValueError:  # only the main thread can handle signals
            self._before = {}
        return self

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __exit__(self, *_) -> None:
        self._restore()

    def leave(self, where: str) -> None:
        """Raise Interrupted if a signal was received; call this when everything is saved."""
        if self.received:
            raise Interrupted(f"stopped at {where}, saved; the same command continues", self.received)
