"""Soaks: work for a long time with random kills, and look whether memory, open files and threads grow.

`python -m torture.soak training` trains from compressed data; `python -m torture.soak study` runs a study on
a Ray cluster of this machine whose workers are killed at random. MINUTES=60 is their usual length.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from little import played, small_words

MINUTES = float(os.environ.get("MINUTES", 60))
EVERY = 5.0  # seconds between looks
WARM_UP = 0.2  # share of the looks that is not compared: programs are compiled and caches filled

STUDY = """
title = "A soak"
recipe = "small"
seeds = 1
environments = ["minatar/breakout", "minatar/freeway"]
training = { steps = 4000, evaluate_every = 500, episodes = 2, batch = 8, checkpoint_seconds = 1.0 }
[agents]
"DQN" = { agent = "dqn", options = { network = "mlp" } }
"REM" = { agent = "rem", options = { network = "mlp", columns = 4 } }
[collect]
agent = "dqn"
options = { network = "mlp" }
settings = { steps = 2000, lanes = 4, warm_up = 40, batch = 8 }
"""


class Look(NamedTuple):
    """The resources of one process."""

    memory: float  # MiB, without pages of files
    files: int
    threads: int


def look(process: int) -> Look:
    folder = Path(f"/proc/{process}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    opened = len(list((folder / "fd").iterdir()))
    return Look(int(status["RssAnon"].split()[0]) / 1024, opened, int(status["Threads"]))


def watched(process: subprocess.Popen, until: float) -> list[Look]:
    looks = []
    while time.monotonic() < until and process.poll() is None:
        time.sleep(EVERY)
        try:
            looks.append(look(process.pid))
        except (FileNotFoundError, ProcessLookupError, KeyError):
            break
    return looks


def told(name: str, looks: list[Look], seconds: float, more: str = "") -> None:
    calm = looks[int(len(looks) * WARM_UP) :]
    half = len(calm) // 2
    print(f"{name}: {seconds / 60:.0f} minutes, {len(looks)} looks{more}")
    for field in Look._fields:
        first, second = ([getattr(each, field) for each in part] for part in (calm[:half], calm[half:]))
        if first and second:
            before, after = sum(first) / len(first), sum(second) / len(second)
            most = max(first + second)
            print(
                f"  {field}: {before:,.1f} in the first half, {after:,.1f} in the second, at most {most:,.1f}"
            )


def training(folder: Path) -> None:
    """One run for the whole time, from compressed frames, with a checkpoint every five seconds."""
    log = played(folder / "log", rows=3000)
    settings = [
        "--steps",
        10**8,
        "--evaluate-every",
        10**6,
        "--feed",
        "compressed",
        "--checkpoint-seconds",
        5,
    ]
    settings += ["--memory-gib", 0.001, "--batch", 32, *small_words("rem"), "--out", folder / "run"]
    words = [sys.executable, "-m", "optimist", "train", "rem", log, *settings]
    begun = time.monotonic()
    with subprocess.Popen([*map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while not (folder / "run" / "metrics.jsonl").exists() and process.poll() is None:
            time.sleep(1)  # programs are compiled
        begun = time.monotonic()
        looks = watched(process, begun + 60 * MINUTES)
        process.send_signal(signal.SIGTERM)
        _, complaint = process.communicate(timeout=60)
    rows = (folder / "run" / "metrics.jsonl").read_bytes().count(b"\n")
    code = f", {rows:,} rows of metrics, ended with code {process.returncode}"
    told("training from compressed data", looks, time.monotonic() - begun, code)
    print(f"  {complaint.decode().strip().splitlines()[-1]}")


def study(folder: Path) -> None:
    """Studies one after the other on a Ray cluster; a worker is killed every few seconds."""
    os.environ["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="ray-")
    from ray.cluster_utils import Cluster

    (folder / "soak.toml").write_text(STUDY)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 80 * 2**20})
    begun, kills, done, looks = time.monotonic(), 0, 0, list[Look]()
    try:
        while time.monotonic() - begun < 60 * MINUTES:
            out = folder / f"out-{done}"
            words = [sys.executable, "-m", "optimist", "study", "run", folder / "soak.toml", "--out", out]
            words += ["--engine", "ray", "--address", cluster.address]
            process = subprocess.Popen(
                [*map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            while process.poll() is None:
                looks += watched(process, time.monotonic() + random.uniform(5, 20))
                kills += _kill_a_worker(out)
            done += process.returncode == 0
        heads = [look(each.process.pid) for each in cluster.head_node.all_processes["gcs_server"]]
    finally:
        cluster.shutdown()
    told(
        "studies on Ray",
        looks,
        time.monotonic() - begun,
        f", {kills} workers killed, {done} studies finished",
    )
    print(f"  Ray's own head at the end: {heads[0]}")


def _kill_a_worker(out: Path) -> bool:
    """Kill a process that works on a run of this study."""
    holders = list(out.glob("**/.holder"))
    if not holders:
        return False
    try:
        os.kill(int(random.choice(holders).read_text().split()[1]), signal.SIGKILL)
    except (OSError, ValueError, IndexError):
        return False
    return True


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        {"training": training, "study": study}[sys.argv[1]](Path(name))
