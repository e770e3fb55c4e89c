"""Speed and memory of importing tables and Minari datasets, beside pyarrow and h5py reading the same columns.

The logs have random vectors; each figure is measured in a separate process, the fastest of a few.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

STEPS = int(os.environ.get("STEPS", 2_000_000))
FEATURES, ACTIONS, EPISODE = 16, 4, 1000
MIB = 2**20
COLUMNS = ("action", "reward", "terminal", "truncated")


def make_logs(folder: Path) -> None:
    """The same log as a recording, as an exported table and Minari dataset, and as two tables of a user:
    with lists of features, and with a column for each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from optimist.data import Spec, formats, open_dataset
    from optimist.data.intake import Intake

    random = np.random.default_rng(0)
    ends = np.arange(STEPS) % EPISODE == EPISODE - 1
    is_terminal = random.random(STEPS) < 0.5
    log = {
        "observations": random.normal(size=(STEPS, FEATURES)).astype(np.float32),
        "actions": random.integers(0, ACTIONS, STEPS),
        "rewards": random.normal(size=STEPS).astype(np.float32),
        "terminals": ends & is_terminal,
        "truncations": ends & ~is_terminal,
    }
    with Intake(folder / "recording", Spec((FEATURES,), "float32", actions=ACTIONS)) as intake:
        intake.add(log)
    for name, out in (("parquet", "exported.parquet"), ("minari", "minari")):
        found = formats.find(name)
        found.write(open_dataset(folder / "recording"), folder / out, found.WriteOptions())
    rest = {name: log[f"{name}s"] for name in ("action", "reward", "terminal")}
    rest["truncated"] = log["truncations"]
    offsets = np.arange(0, (STEPS + 1) * FEATURES, FEATURES, dtype=np.int32)
    lists = pa.ListArray.from_arrays(offsets, log["observations"].ravel())
    features = {f"feature_{number}": log["observations"][:, number] for number in range(FEATURES)}
    pq.write_table(pa.table({"observation": lists, **rest}), folder / "lists.parquet")
    pq.write_table(pa.table({**features, **rest}), folder / "columns.parquet")


def read_table(path: Path) -> None:
    """Read the columns that the import uses, and discard them."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    names = [name for name in file.schema_arrow.names if name not in ("episode", "final_observation")]
    for _ in file.iter_batches(batch_size=2**17, columns=names):
        pass


def read_minari(path: Path) -> None:
    import h5py

    names = ("observations", "actions", "rewards", "terminations", "truncations")
    with h5py.File(path / "data" / "main_data.hdf5") as file:
        for number in range(len(file)):
            for name in names:
                file[f"episode_{number}"][name][()]


def convert(path: Path) -> None:
    from optimist.data import formats

    found = formats.find("minari" if path.is_dir() else "parquet")
    options = {"observations": "feature_*"} if path.stem == "columns" else {}
    with tempfile.TemporaryDirectory(dir=path.parent) as out:
        found.read(path, Path(out) / "data", found.ReadOptions(**options), None)


def timed(work: str, path: Path) -> None:
    """Run one of the above and print its seconds and this process's peak memory."""
    import h5py  # noqa: F401  (all imported before the clock starts)
    import pyarrow.parquet  # noqa: F401

    import optimist.data.formats.minari
    import optimist.data.formats.parquet  # noqa: F401

    start, before = time.perf_counter(), time.process_time()
    globals()[work](path)
    spent, busy = time.perf_counter() - start, time.process_time() - before
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(json.dumps({"seconds": spent, "cpu": busy, "peak": int(status["VmHWM"].split()[0]) * 1024}))


def measured(work: str, path: Path, times: int = 3) -> dict:
    line = f"from benchmarks.formats import *; timed({work!r}, Path({str(path)!r}))"
    runs = [
        subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True).stdout
        for _ in range(times)
    ]
    return min(map(json.loads, runs), key=lambda run: run["seconds"])


def main() -> None:
    print(f"imports of {STEPS:,} steps of {FEATURES} features, beside reading the same columns alone:")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_logs(folder)
        logs = {
            "a table with lists": "lists.parquet",
            "a table with a column for each feature": "columns.parquet",
            "a table that optimist exported": "exported.parquet",
            "a Minari dataset": "minari",
        }
        for words, file in logs.items():
            path = folder / file
            alone = measured("read_minari" if path.is_dir() else "read_table", path)
            ours = measured("convert", path)
            speed, busy = alone["seconds"] / ours["seconds"], alone["cpu"] / ours["cpu"]
            print(
                f"  {words}: {STEPS / ours['seconds']:,.0f} steps a second, {speed:.0%} of reading alone "
                f"(promised: 50%), {busy:.0%} by processor time; peak memory {ours['peak'] / MIB:,.0f} MiB"
            )
