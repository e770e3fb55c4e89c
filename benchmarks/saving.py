"""Speed and memory of saving vector steps that come in parts, and of opening them again.

Each figure is measured in a separate process.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

STEPS = int(os.environ.get("STEPS", 10_000_000))
FEATURES, ACTIONS, PART = 8, 4, 500_000
MIB = 2**20


def save(folder: Path) -> float:
    """The seconds that an Intake takes for all parts; making the parts does not count."""
    from optimist.data import Spec
    from optimist.data.intake import Intake

    random, spent = np.random.default_rng(0), 0.0
    spec = Spec((FEATURES,), "float32", actions=ACTIONS)
    with Intake(folder, spec) as intake:
        for _ in range(0, STEPS, PART):
            frames = random.random((PART + 1, FEATURES), np.float32)
            ends = np.arange(PART) % 200 == 199
            part = {
                "observations": frames[:-1],
                "actions": random.integers(0, ACTIONS, PART),
                "rewards": random.random(PART),
                "terminals": ends & (random.random(PART) < 0.5),
                "truncations": ends,
                "next_observations": frames[1:],
            }
            start = time.perf_counter()
            intake.add(part)
            spent += time.perf_counter() - start
        start = time.perf_counter()
    return spent + time.perf_counter() - start


def save_dataset(folder: Path) -> float:
    """The seconds of `Dataset.save` of the folder's steps into another folder."""
    from optimist.data import open_dataset

    data, start = open_dataset(folder), time.perf_counter()
    data.save(folder.with_name("copy"))
    return time.perf_counter() - start


def open_folder(folder: Path) -> float:
    from optimist.data import open_dataset

    start = time.perf_counter()
    open_dataset(folder)
    return time.perf_counter() - start


def timed(work: str, folder: Path) -> None:
    """Run one of the above and print its seconds and this process's processor time and peak memory."""
    import optimist.data.formats.npz  # noqa: F401  (imported before the clock starts)

    before = time.process_time()
    spent = globals()[work](folder)
    busy = time.process_time() - before
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(json.dumps({"seconds": spent, "cpu": busy, "peak": int(status["VmHWM"].split()[0]) * 1024}))


def measured(work: str, folder: Path) -> dict:
    line = f"from benchmarks.saving import *; timed({work!r}, Path({str(folder)!r}))"
    run = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    figures: dict = json.loads(run.stdout)
    return figures


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "log"
        saved, copied, opened = (measured(work, folder) for work in ("save", "save_dataset", "open_folder"))
        size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{STEPS:,} steps of {FEATURES} float32 features and a discrete action, {size / MIB:,.0f} MiB:")
    print(
        f"saved in {saved['seconds']:.1f} s (promised: 60), {STEPS / saved['seconds']:,.0f} steps a second, "
        f"peak memory {saved['peak'] / MIB:,.0f} MiB (promised: at most 1,024)"
    )
    print(f"saved by Dataset.save in {copied['seconds']:.1f} s, peak memory {copied['peak'] / MIB:,.0f} MiB")
    # If other programs share the machine, processor time is more reliable than the seconds.
    print(
        f"opened in {opened['seconds']:.2f} s (promised: 2 s), {opened['cpu']:.2f} s of processor time over "
        "its threads"
    )
