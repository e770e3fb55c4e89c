"""Threads that wait for work and share it out, for simulators that let go of Python's lock while they run."""

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any


class Crew:
    """Calls `work` on every item of a list, on the calling thread and `threads - 1` others.

    The same few microseconds are spent a million times over, so a hand is woken by one bare lock and tells by
    another that it has finished; a pool with futures costs more than a small simulation takes.
    """

    def __init__(self, work: Callable[[Any], None], threads: int):
        self._work = work
        self._hands = [_Hand(work) for _ in range(threads - 1)]
        for hand in self._hands:
            # A hand knows nothing of its crew, so a crew that nobody closed can still be forgotten.
            threading.Thread(target=hand.stand_by, daemon=True).start()
        self._dismiss = weakref.finalize(self, _dismiss, self._hands)

    def each(self, items: Iterable[Any]) -> None:
        """Whoever is free takes the next item; the first error is raised when all have finished."""
        left = iter(items)
        for hand in self._hands:
            hand.begin(left)
        try:
            for item in left:
                self._work(item)
        finally:
            errors = [hand.finish() for hand in self._hands]
        for error in errors:
            if error is not None:
                raise error

    def close(self) -> None:
        self._dismiss()
        self._hands = []


class _Hand:
    """One thread's part in the work."""

    def __init__(self, work: Callable[[Any], None]):
        self._work = work
        self._left: Iterator[Any] | None = None
        self._error: BaseException | None = None
        self._called, self._finished = threading.Lock(), threading.Lock()
        self._called.acquire()
        self._finished.acquire()

    def begin(self, left: Iterator[Any] | None) -> None:
        """Take part in what is `left`; None ends the thread."""
        self._left, self._error = left, None
        self._called.release()

    def finish(self) -> BaseException | None:
        self._finished.acquire()
        return self._error

    def stand_by(self) -> None:
        while True:
            self._called.acquire()
            if self._left is None:
                return
            try:
                for item in self._left:
                    self._work(item)
            except BaseException as error:
                self._error = error
            self._left = None
            self._finished.release()


def _dismiss(hands: list[_Hand]) -> None:
    for hand in hands:
        hand.begin(None)
