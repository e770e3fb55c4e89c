"""Does packing a log use all cores? Frames per second by threads: decoding, coding, and both.

`python -m benchmarks packing`. A log of STEPS real frames of GAMES is decoded in groups and coded as
`--feed packed` codes them, by 1, 2, 4, ... threads up to the number of cores.
"""

import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.streaming import write_dataset
from optimist.data import Dataset, machine
from optimist.data.packing import GROUP, packed

STEPS = int(os.environ.get("STEPS", "131072"))
GAMES = tuple(os.environ.get("GAMES", "Pong,Seaquest").split(","))


def rate(threads: int, work: Callable[[int], object], firsts: range) -> float:
    """Frames per second."""
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, firsts):  # a result is freed as soon as it comes
            pass
    return len(firsts) * GROUP / (time.perf_counter() - start)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_dataset(Path(folder), STEPS, GAMES)
        timeline = Dataset.open(Path(folder)).timeline
        firsts = range(0, timeline.frame_count - GROUP, GROUP)
        one = timeline.frames(np.arange(GROUP))
        works: dict[str, Callable[[int], object]] = {
            "decode": lambda first: timeline.frames(np.arange(first, first + GROUP)),
            "code": lambda _: packed(one),
            "decode and code": lambda first: packed(timeline.frames(np.arange(first, first + GROUP))),
        }
        table = Table("threads", *works, title=f"frames/s, {machine.cores()} cores")
        for work in works.values():
            rate(1, work, firsts[:8])  # files are opened and hashed
        threads = 1
        while threads <= machine.cores():
            table.add_row(str(threads), *(f"{rate(threads, work, firsts):,.0f}" for work in works.values()))
            threads *= 2
    Console().print(table)
