"""Speed and memory of importing DQN Replay logs, beside the speed of gunzip alone.

The logs have real Atari frames of random play; each figure is measured in a separate process.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np

GAME, LANES = "atari/Breakout", 8
FRAMES = int(os.environ.get("FRAMES", 100_000))
MIB = 2**20


def make_logs(folder: Path) -> None:
    """Record random play and export it as four windows."""
    from optimist import envs
    from optimist.data import Recorder, open_dataset
    from optimist.data.formats import dqn_replay

    play, random = envs.make(GAME, lanes=LANES, seed=0), np.random.default_rng(0)
    frame = play.reset()
    with Recorder(folder / "played", play.spec, lanes=LANES) as recorder:
        for _ in range(FRAMES // LANES):
            action = random.integers(play.spec.actions, size=LANES)
            taken = play.step(action)
            recorder.add(frame, action, taken.reward, taken.terminal, taken.truncated, taken.next_observation)
            frame = taken.observation
    options = dqn_replay.WriteOptions(capacity=FRAMES // 4)
    dqn_replay.write(open_dataset(folder / "played"), folder / "logs", options)


def gunzip(folder: Path) -> None:
    """Inflate every file in blocks and discard them."""
    for path in sorted((folder / "logs" / "replay_logs").iterdir()):
        stream = zlib.decompressobj(31)
        with open(path, "rb") as file:
            while compressed := file.read(1 << 18):
                while compressed:
                    stream.decompress(compressed, 1 << 21)
                    compressed = stream.unconsumed_tail


def convert(folder: Path) -> None:
    from optimist.data import formats

    with tempfile.TemporaryDirectory(dir=folder) as out:
        formats.find("dqn-replay").read(folder / "logs", Path(out) / "data")


def timed(work: str, folder: Path) -> None:
    """Run one of the above and print its seconds and this process's peak memory."""
    import optimist.data.formats.dqn_replay  # noqa: F401  (imported before the clock starts)

    start, before = time.perf_counter(), time.process_time()
    globals()[work](folder)
    spent, busy = time.perf_counter() - start, time.process_time()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(
        json.dumps({"seconds": spent, "cpu": busy - before, "peak": int(status["VmHWM"].split()[0]) * 1024})
    )


def measured(work: str, folder: Path, times: int = 3) -> dict:
    """The fastest of a few runs, the one with the least disturbance."""
    line = f"from benchmarks.imports import *; timed({work!r}, Path({str(folder)!r}))"
    runs = [
        subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True).stdout
        for _ in range(times)
    ]
    return min(map(json.loads, runs), key=lambda run: run["seconds"])


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_logs(folder)
        whole = sum(path.stat().st_size for path in (folder / "logs" / "replay_logs").iterdir())
        plain, full = (measured(work, folder) for work in ("gunzip", "convert"))
    print(f"DQN Replay logs of {FRAMES:,} {GAME} frames, {whole / MIB:.0f} MiB: gunzip alone with zlib")
    print(f"takes {plain['seconds']:.2f} s, and the import {full['seconds']:.2f} s")
    print(f"({FRAMES / full['seconds']:,.0f} frames a second); it inflates all frames but the first twice")
    # If other programs share the machine, CPU time is more reliable than the seconds above.
    print(f"seconds of processor time: gunzip {plain['cpu']:.2f}, import {full['cpu']:.2f} over its threads")
    print(f"peak memory of the import: {full['peak'] / MIB:,.0f} MiB (promised: at most 1,024)")
