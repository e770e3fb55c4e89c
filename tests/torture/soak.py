"""Soaks: work for a long time, and look whether memory, open files and threads grow.

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
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from little import outcome, played, small_words

MINUTES = float(os.environ.get("MINUTES", 60))
EVERY = 5.0  # seconds between looks
WARM_UP = 0.2  # share of the looks that is not compared: programs are compiled and caches filled

BETWEEN_KILLS = (1, 6)  # runs that end; by the clock, a slow machine would end none
RUNS = 1000  # of the study; more than end in an hour

STUDY = """
title = "A soak"
recipe = "small"
seeds = 1
environments = ["minatar/breakout"]
training = { steps = 1000, evaluate_every = 250, episodes = 2, batch = 8, checkpoint_seconds = 1.0 }
[collect]
agent = "dqn"
options = { network = "mlp" }
settings = { steps = 1000, lanes = 4, warm_up = 40, batch = 8 }
[agents]
"""
AGENT = 'REM-{} = {{ agent = "rem", options = {{ network = "mlp", columns = 4 }} }}\n'


class Look(NamedTuple):
    """The resources of processes."""

    memory: float  # MiB, without pages of files
    files: int
    threads: int


def look(process: int) -> Look | None:
    """The resources of one process; None if it has ended."""
    folder = Path(f"/proc/{process}")
    try:
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        opened = len(list((folder / "fd").iterdir()))
        return Look(int(status["RssAnon"].split()[0]) / 1024, opened, int(status["Threads"]))
    except (FileNotFoundError, ProcessLookupError, KeyError):
        return None


def together(processes: Iterable[int]) -> Look:
    """The sum over all of them that have not ended."""
    found = [each for each in map(look, processes) if each]
    return Look(*map(sum, zip(*found, strict=True))) if found else Look(0.0, 0, 0)


def descendants(process: int) -> list[int]:
    """The processes below this one."""
    found = []
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(word) for word in thread.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += [each for child in children for each in (child, *descendants(child))]
    return found


def told(name: str, looks: list[Look]) -> None:
    """Print the means of both halves of the looks."""
    calm = looks[int(len(looks) * WARM_UP) :]
    half = len(calm) // 2
    for field in Look._fields:
        first, second = ([getattr(each, field) for each in part] for part in (calm[:half], calm[half:]))
        if first and second:
            before, after = sum(first) / len(first), sum(second) / len(second)
            most = max(first + second)
            print(
                f"  {field} of {name}: {before:,.1f} in the first half, {after:,.1f} in the second, "
                f"at most {most:,.1f}"
            )


def training(folder: Path) -> None:
    """One run for the whole time, from compressed frames, with a checkpoint every five seconds."""
    log = played(folder / "log", rows=3000)
    settings = f"--steps {10**8} --evaluate-every {10**6} --feed compressed --checkpoint-seconds 5 --batch 32"
    words = [sys.executable, "-m", "optimist", "train", "rem", log, *settings.split(), "--memory-gib", 0.001]
    words += [*small_words("rem"), "--out", folder / "run"]
    begun = time.monotonic()
    with subprocess.Popen([*map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while not (folder / "run" / "metrics.jsonl").exists() and process.poll() is None:
            time.sleep(1)  # programs are compiled
        begun, looks = time.monotonic(), list[Look]()
        while time.monotonic() - begun < 60 * MINUTES and (seen := look(process.pid)):
            looks.append(seen)
            time.sleep(EVERY)
        process.send_signal(signal.SIGTERM)
        _, complaint = process.communicate(timeout=60)
    rows = (folder / "run" / "metrics.jsonl").read_bytes().count(b"\n")
    print(
        f"training from compressed data: {(time.monotonic() - begun) / 60:.0f} minutes, {len(looks)} looks, "
        f"{rows:,} rows of metrics, ended with code {process.returncode}"
    )
    told("the command", looks)
    print(f"  {complaint.decode().strip().splitlines()[-1]}")


def study(folder: Path) -> None:
    """A study on a Ray cluster, whose workers are killed now and then. Its runs differ only in their labels,
    so every run must end with the same bits, killed or not."""
    (folder / "ray").mkdir()
    os.environ |= {"RAY_TMPDIR": str(folder / "ray"), "RAY_raylet_start_wait_time_s": "300"}  # a busy machine
    from ray.cluster_utils import Cluster

    (folder / "soak.toml").write_text(STUDY + "".join(map(AGENT.format, range(RUNS))))
    out = folder / "out"
    words = ["study", "run", folder / "soak.toml", "--out", out, "--engine", "ray"]
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 80 * 2**20})
    rays = [each.pid for each in _programs(cluster)]
    words += ["--address", cluster.address]
    commands, clusters, starts, kills = list[Look](), list[Look](), 0, 0
    begun = time.monotonic()
    over, kill_at = begun + 60 * MINUTES, BETWEEN_KILLS[0]
    with open(folder / "said.txt", "w+") as said:
        command = [sys.executable, "-m", "optimist", *map(str, words)]
        process = None
        try:
            while time.monotonic() < over:
                if process is None or process.poll() is not None:  # the same command continues
                    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
                    starts += 1
                workers = [each for ray in rays for each in descendants(ray)]
                commands.append(together([process.pid]))
                clusters.append(together([*rays, *workers]))
                done = len(list(out.glob("runs/*/*/*/DONE")))
                if done >= kill_at and _kill_one(out, workers):
                    kills, kill_at = kills + 1, done + random.randint(*BETWEEN_KILLS)
                time.sleep(EVERY)
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=300)
        finally:
            if process is not None:
                process.kill()
            cluster.shutdown()
        said.seek(0)
        lines = [line for line in said.read().splitlines() if line.strip()]
    ended = [outcome(done.parent) for done in out.glob("runs/*/*/*/DONE")]
    different = sum(each != ended[0] for each in ended)
    print(
        f"a study on Ray: {(time.monotonic() - begun) / 60:.0f} minutes, {len(commands)} looks, "
        f"{kills} workers killed, {sum('another worker continues it' in line for line in lines)} runs "
        f"continued by another, {sum(' failed: ' in line for line in lines)} lost three workers\n"
        f"  {len(ended)} runs ended, {different} of them with other bits than the first; the command was "
        f"started {starts} times and ended with code {process.returncode}"
    )
    told("the command", commands)
    told("the cluster", clusters)
    print(f"  {lines[-1]}")


def _programs(cluster) -> list:
    """The programs of Ray on this machine; workers are their children."""
    return [each.process for several in cluster.head_node.all_processes.values() for each in several]


def _kill_one(out: Path, workers: list[int]) -> bool:
    """Kill a worker that holds the folder of a training; all of them need the log."""
    holders = [holder for file in out.glob("runs/*/*/*/.holder") if (holder := _holder(file)) in workers]
    if holders:
        with suppress(ProcessLookupError):
            os.kill(random.choice(holders), signal.SIGKILL)
    return bool(holders)


def _holder(file: Path) -> int | None:
    """The process that a file names; None if the file is gone."""
    with suppress(FileNotFoundError):
        return int(file.read_text().split()[1])
    return None


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        {"training": training, "study": study}[sys.argv[1]](Path(name))
