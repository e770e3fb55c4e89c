"""How many runs should share one GPU? Updates per second of all workers together, by their number.

`python -m benchmarks workers`, on a GPU with MPS (`nvidia-cuda-mps-control -d`), as `optimist study run`
uses it. Each worker is a process that learns with SEEDS fused seeds from a log of random numbers on the
device. All are compiled first; then the first one learns alone, the first two beside each other, and so on,
for SECONDS each. COUNTS, AGENT, NETWORK ("minatar", "nature") and PRECISION change what is timed.
"""

import os
import statistics
import subprocess
import sys
import time
from typing import Any

from optimist.agents import preset
from optimist.data.sampling import Sampler
from optimist.studies.bench import random_log, updating
from optimist.training.feeding import feed_of
from optimist.training.learner import Learner

COUNTS = [int(count) for count in os.environ.get("COUNTS", "1,2,4,6,8").split(",")]
AGENT = os.environ.get("AGENT", "rem")
NETWORK = os.environ.get("NETWORK", "minatar")
PRECISION = os.environ.get("PRECISION", "tf32")
SEEDS = int(os.environ.get("SEEDS", "5"))
CHUNK = int(os.environ.get("CHUNK", "250"))
SECONDS = float(os.environ.get("SECONDS", "2"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))


class Worker:
    """A process that learns for a while whenever it is asked to, and says at which rate."""

    def __init__(self) -> None:
        self._process: Any = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.workers"],
            env={**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self) -> None:
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def answer(self) -> float:
        return float(self._process.stdout.readline())

    def end(self) -> None:
        self._process.stdin.close()
        self._process.wait()


def learn() -> None:
    """The other side: one rate for each line, after a first number that says that it is ready."""
    log = random_log(NETWORK)
    learner = Learner(preset(AGENT), log.spec, precision=PRECISION)
    feed = feed_of([Sampler(log, seed=seed) for seed in range(SEEDS)], "device")
    update = updating(learner, feed, SEEDS, CHUNK)
    print(update(), flush=True)
    for _ in sys.stdin:
        made, start = 0, time.perf_counter()
        while time.perf_counter() - start < SECONDS:
            made += update()
        print(made / (time.perf_counter() - start), flush=True)


def together(workers: list[Worker]) -> float:
    for worker in workers:
        worker.ask()
    return sum(worker.answer() for worker in workers)


def main() -> None:
    workers = [Worker() for _ in range(max(COUNTS))]
    for worker in workers:
        worker.answer()  # compiled
    rounds = [{count: together(workers[:count]) for count in COUNTS} for _ in range(ROUNDS)]
    print(f"{AGENT}, {NETWORK} network, {PRECISION}, {SEEDS} fused seeds in each worker")
    print("workers,updates_per_second,lowest,highest,of_one_worker")
    for count in COUNTS:
        found = [each[count] for each in rounds]
        gain = statistics.median(each[count] / each[COUNTS[0]] for each in rounds)
        print(
            f"{count},{statistics.median(found):.0f},{min(found):.0f},{max(found):.0f},{gain:.2f}", flush=True
        )
    for worker in workers:
        worker.end()


if __name__ == "__main__":
    learn()
