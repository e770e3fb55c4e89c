"""Updates per second by the home of an Atari log: on the device, decoded or packed, in memory, or on disk.

REM with 200 heads, the Atari network, batch 32, PRECISION. A short log of real frames of GAMES has DECODED
steps, each shard with its own colours and shift; it is the log of the two homes that decode everything. Hard
links repeat its shards to STEPS steps for the other two. The rounds of all homes take turns. The packed home
is compared with the log, transition by transition, also at its end.
"""

import os
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import jax
import numpy as np

from benchmarks.repeated import repeated
from benchmarks.streaming import write_dataset
from optimist.agents import preset
from optimist.data import Dataset, Sampler, transitions
from optimist.studies.bench import updating
from optimist.training.feeding import DeviceFeed, Feed, StreamedFeed
from optimist.training.learner import Learner

STEPS = int(os.environ.get("STEPS", 5_000_000))
DECODED = int(os.environ.get("DECODED", 131_072))
GAMES = tuple(os.environ.get("GAMES", "Pong,Seaquest").split(","))
PRECISION = os.environ.get("PRECISION", "bf16")
CHUNK, ROUNDS = int(os.environ.get("CHUNK", 250)), 5  # updates in a program, as in training
SECONDS = float(os.environ.get("SECONDS", 0.6))  # of a home in a round
COMPARED = 2_000  # transitions
GIB = 2**30


def homes(short: Dataset, long: Dataset) -> dict[str, Feed]:
    of_short, of_long = [Sampler(short)], [Sampler(long)]
    found: dict[str, Feed] = {"device": DeviceFeed(of_short)}
    start, cpu = time.perf_counter(), time.process_time()
    found["packed"] = DeviceFeed(of_long, packed=True)
    jax.block_until_ready(found["packed"].resident)
    frames, rows = (
        sum(array.nbytes for array in part) for part in map(jax.tree.leaves, found["packed"].resident)
    )
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    count = long.timeline.frame_count
    print(
        f"packed: {frames / count:,.0f} bytes per frame, {frames / GIB:.2f} GiB, rows {rows / GIB:.2f} GiB;"
    )
    print(f"made in {seconds:.1f} s, {cpu / count * 1e6:.1f} us of processor time per frame", flush=True)
    found["memory"] = StreamedFeed(of_short, kept=short.timeline.frame_count)
    found["compressed"] = StreamedFeed(of_long, kept=0)
    return found


def compare(home: Feed, log: Dataset) -> None:
    """Raise AssertionError unless the packed home gives the transitions of the log."""
    positions = np.append(np.random.default_rng(0).integers(0, len(log), COMPARED), len(log) - 1)
    here = jax.jit(home.minibatch)(home.resident, positions.astype(np.int32))
    for one, other in zip(here, transitions(Sampler(log), positions, log.timeline.frames), strict=True):
        np.testing.assert_array_equal(one, other)
    print(f"{len(positions):,} transitions are the same, packed and from disk")


def rate(do: Callable[[], int]) -> float:
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        done += do()
    return done / (time.perf_counter() - start)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "short", Path(folder) / "long"
        for path in paths:
            path.mkdir()
        write_dataset(paths[0], DECODED, GAMES)
        repeated(*paths, STEPS)
        short, long = map(Dataset.open, paths)
        stored = long.timeline.source.frame_bytes / long.timeline.frame_count
        print(f"{len(long):,} steps of {', '.join(GAMES)}, {stored:.0f} bytes per frame on disk")
        learner, found = Learner(preset("rem"), short.spec, precision=PRECISION), homes(short, long)
        compare(found["packed"], long)
        work = [
            updating(learner, home, seeds=1, steps=min(CHUNK, home.steps_at_once)) for home in found.values()
        ]
        with ThreadPoolExecutor() as pool:  # programs of several homes are compiled at the same time
            list(pool.map(lambda do: do(), work))
        rates = np.array([[rate(do) for do in work] for _ in range(ROUNDS)])
    print(f"REM, batch 32, {PRECISION}, {jax.devices()[0].device_kind}, {os.cpu_count()} cores")
    for name, column, share in zip(found, rates.T, (rates / rates[:, :1]).T, strict=True):
        print(f"{name:10} {median(column):9,.1f} updates/s, {median(share):6.1%} of those from the device")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"peak memory of the process: {peak / GIB:.2f} GiB")
    used = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
    if used:
        print(f"peak memory of the device: {used / GIB:.2f} GiB")
