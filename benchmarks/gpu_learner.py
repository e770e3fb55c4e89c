"""Gradient steps per second of REM with the Atari network on a GPU, by precision, seeds and batch.

`python -m benchmarks gpu_learner` times every row of `ROWS`, and then prints the kernels of one step and
their times. Frames are random, on the device, and stacked inside the program, as in training.

    ROWS=bf16:5:32,tf32:1:256 PROFILED=bf16:5:32 CSV=rows.csv python -m benchmarks gpu_learner

times and profiles these rows only (precision, seeds, batch) and writes the rates to a file.
"""

import collections
import csv
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import jax
import numpy as np

from optimist.agents import preset
from optimist.data import from_arrays
from optimist.data.sampling import Sampler
from optimist.training.feeding import feed_of
from optimist.training.learner import SIDE_BY_SIDE, Learner, advanced

FRAMES, ACTIONS, CHUNK = 20_000, 18, 250
ROUNDS, SECONDS = 5, 1.0  # of each row


class Row(NamedTuple):
    precision: str
    seeds: int
    batch: int


ROWS = (
    *(Row(precision, seeds, 32) for precision in ("tf32", "bf16") for seeds in (1, 5, 10)),
    *(Row(precision, 1, batch) for precision in ("tf32", "bf16") for batch in (64, 128, 256, 512)),
    Row("float32", 1, 32),
)
PROFILED = (Row("tf32", 1, 32), Row("bf16", 1, 32), Row("bf16", 5, 32))
COLUMNS = (*Row._fields, "updates_per_second", "slowest_round", "fastest_round", "seconds_to_compile")


def asked(name: str, usual: tuple[Row, ...]) -> tuple[Row, ...]:
    """The rows that an environment variable names."""
    words = os.environ.get(name)
    if words is None:
        return usual
    parts = [word.split(":") for word in words.split(",") if word]
    return tuple(Row(precision, int(seeds), int(batch)) for precision, seeds, batch in parts)


def random_play():
    random = np.random.default_rng(0)
    return from_arrays(
        observations=random.integers(0, 256, (FRAMES, 84, 84, 1)).astype(np.uint8),
        actions=random.integers(0, ACTIONS, FRAMES).astype(np.int32),
        rewards=random.normal(size=FRAMES).astype(np.float32),
        terminals=random.random(FRAMES) < 0.005,
        truncations=False,
        stack=4,
    )


def training(data, row: Row, **options: Any) -> Callable[[], None]:
    """A compiled function that takes CHUNK steps of every seed; `options` are the compiler's."""
    learner = Learner(preset("rem"), data.spec, precision=row.precision)
    feed = feed_of([Sampler(data, seed=seed, batch=row.batch) for seed in range(row.seeds)], "device")
    state, items = learner.init(tuple(range(row.seeds))), feed.items(0, CHUNK)
    step = jax.jit(
        advanced,
        static_argnames=("learner", "minibatch"),
        donate_argnames="state",
        compiler_options={**SIDE_BY_SIDE, **options} if jax.default_backend() == "gpu" else None,
    )

    def chunk() -> None:
        nonlocal state
        state, losses = step(learner, state, feed.minibatch, feed.resident, items)
        jax.block_until_ready(losses)

    chunk()
    return chunk


def updates_per_second(chunk: Callable[[], None], seeds: int) -> float:
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        chunk()
        done += CHUNK
    return done * seeds / (time.perf_counter() - start)


def kernels(chunk: Callable[[], None]) -> list[tuple[str, float, float]]:
    """(name, runs in a step, microseconds in a step) of every kernel, the longest first."""
    runs: collections.Counter[str] = collections.Counter()
    microseconds: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            chunk()
        [file] = Path(folder).rglob("*.xplane.pb")
        planes = jax.profiler.ProfileData.from_file(str(file)).planes
    lines = [line for plane in planes if "GPU" in plane.name for line in plane.lines if "Stream" in line.name]
    for event in (event for line in lines for event in line.events):
        runs[event.name] += 1
        microseconds[event.name] += event.duration_ns / 1000
    return [(name, runs[name] / CHUNK, spent / CHUNK) for name, spent in microseconds.most_common()]


def timed(data, row: Row) -> list[float]:
    """The values of COLUMNS after those of the row."""
    start = time.perf_counter()
    chunk = training(data, row)
    compiled = time.perf_counter() - start
    rates = [updates_per_second(chunk, row.seeds) for _ in range(ROUNDS)]
    return [median(rates), min(rates), max(rates), compiled]


def main() -> None:
    data, found = random_play(), []
    print(f"REM, 200 heads, Atari network, {ACTIONS} actions, {jax.devices()[0].device_kind}; seeds together")
    for row in asked("ROWS", ROWS):
        found.append([*row, *(round(value, 1) for value in timed(data, row))])
        rate, slowest, fastest, compiled = found[-1][len(row) :]
        print(
            f"{row.precision:8} {row.seeds:3} seeds, batch {row.batch:4}: {rate:9,.0f} updates/s "
            f"({slowest:,.0f} to {fastest:,.0f} in {ROUNDS} rounds; compiled in {compiled:.0f} s)",
            flush=True,
        )
        if path := os.environ.get("CSV"):
            with open(path, "w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([COLUMNS, *found])
    for row in asked("PROFILED", PROFILED) if jax.default_backend() == "gpu" else ():
        # Without graphs, so that the kernels run one after the other and each is seen.
        seen = kernels(training(data, row, xla_gpu_enable_command_buffer=""))
        print(f"\n{row}: {sum(runs for _, runs, _ in seen):.0f} kernels a step, one after the other ", end="")
        print(f"{sum(spent for *_, spent in seen):.0f} microseconds")
        for name, runs, spent in seen[:25]:
            print(f"{spent:8.2f} us {runs:5.1f} x {name[:80]}", flush=True)
