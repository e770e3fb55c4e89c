"""Limits of time that hold on a machine which others keep busy.

There all work takes ten times as long for a while, in processor time too: a host that lends a processor out
counts the time as used. So a limit of seconds is also one of rounds of an empty loop, which slows down as the
work does.
"""

import time
from collections.abc import Callable
from itertools import repeat
from math import inf

PATIENCE = 600  # seconds that a busy machine may take to get going: only what hangs takes longer
ROUNDS_PER_SECOND = 150_000_000  # of the loop, on a quiet machine
TRIES = 5


def is_quick(spent: Callable[[], float], seconds: float) -> bool:
    """Does the work need less than these seconds of a quiet machine's processor? `spent` does it and returns
    what it took. Work that was too slow is done again, in turns with the loop."""
    work, loop = spent(), inf
    if work < seconds:
        return True
    for _ in range(TRIES):
        work, loop = min(work, spent()), min(loop, _loop(seconds))
        if work < max(seconds, loop):
            return True
    return False


def _loop(seconds: float) -> float:
    """The processor time of a loop that takes so long on a quiet machine."""
    begun = time.process_time()
    for _ in repeat(None, int(seconds * ROUNDS_PER_SECOND)):
        pass
    return time.process_time() - begun
