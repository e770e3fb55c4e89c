"""Memory of training from compressed frames ten times larger than the budget for decoded ones.

Each case trains in a separate process. The figure is the memory of the compressed case minus that of the same
training on a tiny log, which has the same interpreter, network and compiled program.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

MIB = 2**20
BUDGET = 64 * MIB
FRAME = 84 * 84
UPDATES = 60


def game_frames(random: np.random.Generator, count: int) -> np.ndarray:
    """Frames that compress like real games: a still background, a score line, a few moving sprites."""
    background = np.repeat(random.integers(0, 256, (84, 4)), 21, axis=1).astype(np.uint8)
    frames = np.broadcast_to(background, (count, 84, 84)).copy()
    places = np.cumsum(random.integers(-2, 3, (count, 6, 2)), axis=0) % 76
    for number, sprites in enumerate(places):
        for y, x in sprites:
            frames[number, y : y + 8, x : x + 6] = 200
        frames[number, :6] = random.integers(0, 2, (6, 84)) * 255
    return frames[..., None]


def record(path: Path, steps: int) -> None:
    """A log of that many steps, in episodes of 500."""
    from optimist.data import Recorder, Spec

    spec = Spec((84, 84, 1), "uint8", actions=4, stack=4)
    random = np.random.default_rng(0)
    with Recorder(path, spec, lanes=1, shard_steps=8192) as recorder:
        frames = game_frames(random, 501)
        for step in range(steps):
            place = step % 500
            if place == 0:
                frames = game_frames(random, 501)
            ended, action = np.array([place == 499]), random.integers(0, 4, 1).astype(np.int32)
            reward = np.ones(1, np.float32)
            now, then = frames[place][None], frames[place + 1][None]
            recorder.add(now, action, reward, ended, np.array([False]), then)


def train(path: Path, home: str) -> None:
    """Train a DQN and print the peak memory of this process."""
    from optimist.agents import preset
    from optimist.data.dataset import Dataset
    from optimist.training.offline import OfflineTraining
    from optimist.training.settings import Training

    sizes = {"steps": UPDATES, "evaluate_every": UPDATES, "hold_out": 0.0}
    settings = Training(**sizes, feed=home, memory_gib=BUDGET / 2**30)
    with tempfile.TemporaryDirectory() as out:
        OfflineTraining(preset("dqn"), Dataset.open(path), settings, out=out).run()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(json.dumps({"peak": int(status["VmHWM"].split()[0]) * 1024}))


def peak_memory(path: Path, home: str) -> int:
    command = [sys.executable, "-c", f"from benchmarks.memory import *; train(Path({str(path)!r}), {home!r})"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(output.splitlines()[-1])["peak"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small", Path(folder) / "large"
        steps = 10 * BUDGET // FRAME
        record(small, 500)
        record(large, steps)
        stored = sum(file.stat().st_size for file in large.glob("*.arrow"))
        base, compressed, decoded = (
            peak_memory(small, "compressed"),
            peak_memory(large, "compressed"),
            peak_memory(large, "memory"),
        )
    print(
        f"a log of {steps:,} frames: {steps * FRAME / MIB:,.0f} MiB decoded, {stored / MIB:,.0f} MiB on disk"
    )
    print(
        f"peak memory: {base / MIB:,.0f} MiB on a log of 500 steps, {decoded / MIB:,.0f} MiB with all decoded"
    )
    beyond = (compressed - base) / MIB
    print(f"compressed, with {BUDGET / MIB:.0f} MiB for decoded frames: {compressed / MIB:,.0f} MiB,")
    print(f"that is {beyond:,.0f} MiB beyond the small log (promised: at most {BUDGET / MIB + 300:.0f})")
