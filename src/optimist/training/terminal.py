"""A loop and its terminal: progress as a bar with rate and time left, or as plain lines; and signals.

Ctrl-C and SIGTERM stop a run at the end of a chunk, once it is saved; a second signal stops it at once."""

import signal
import time
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from optimist.errors import OptimistError

console = Console(stderr=True)
PLAIN_SECONDS = 15  # between plain lines


def say(line: str) -> None:
    """Print one line to standard error, without line breaks and without markup for brackets."""
    console.print(line, markup=False, soft_wrap=True)


class Bar:
    """Progress of one loop."""

    def __init__(self, title: str, total: int, unit: str, done: int = 0):
        self._title, self._total, self._unit, self._begun_at = title, total, unit, done
        self._start = self._last_line = time.monotonic()
        self._ended = False
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("[dim]{task.fields[note]}"),
            console=console,
        )
        self._task = self._bar.add_task(title, total=total, completed=done, rate="", note="")

    def __enter__(self) -> "Bar":
        if console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_) -> None:
        if console.is_terminal:
            self._bar.stop()

    def update(self, done: int, note: str = "") -> None:
        now, self._total = time.monotonic(), max(self._total, done)  # a vector step may exceed the total
        self._begun_at = min(self._begun_at, done)  # a continued run may go back to its checkpoint
        rate = (done - self._begun_at) / max(now - self._start, 1e-9)
        shown = f"{rate:,.0f} {self._unit}/s" if rate > 0 else ""  # nothing is done yet, or all came at once
        self._bar.update(self._task, completed=done, total=self._total, rate=shown, note=note)
        if console.is_terminal or self._ended:
            return
        self._ended = done >= self._total  # no lines after this one
        if self._ended or now - self._last_line > PLAIN_SECONDS:
            self._last_line = now
            units = f"{self._unit[:-1]}ies" if self._unit.endswith("y") else f"{self._unit}s"
            known = not self._ended and rate > 0
            left = f", {(self._total - done) / rate:,.0f} s left" if known else ""
            speed = f", {rate:,.0f}/s" if rate > 0 else ""
            print(f"{self._title}: {done:,}/{self._total:,} {units}{speed}{left}  {note}", flush=True)


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
