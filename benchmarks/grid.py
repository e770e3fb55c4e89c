"""The paper's whole grid rehearsed: 60 games x 6 agents x 5 seeds on Ray or SLURM, with training of seconds.

`python -m benchmarks grid` runs all of it on a Ray cluster of raylets on this machine, loses the head and the
command half-way, and starts again. `OPTIMIST_GRID=slurm` runs it on a SLURM cluster of this machine instead
(tests/slurm_cluster.py says what that needs). `OPTIMIST_GRID_GAMES=6` takes fewer games.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.grid_games import SPEC, Chains
from optimist.data import Recorder
from optimist.studies.rates import FILE, took
from optimist.studies.status import read_jobs

NODES = 2
STUDY = """
title = "The grid, rehearsed"
recipe = "small"
seeds = 5
environments = [{games}]
data = "{log}"
training = {{ steps = 200, evaluate_every = 100, episodes = 2, batch = 8 }}
[agents]
"DQN (Nature)" = {{ agent = "dqn", options = {{ network = "mlp" }} }}
"DQN (Adam)" = {{ agent = "dqn", preset = "adam", options = {{ network = "mlp" }} }}
"C51" = {{ agent = "c51", options = {{ network = "mlp" }} }}
"QR-DQN" = {{ agent = "qr_dqn", options = {{ network = "mlp", columns = 20 }} }}
"Ensemble-DQN" = {{ agent = "ensemble_dqn", options = {{ network = "mlp", columns = 20 }} }}
"REM" = {{ agent = "rem", options = {{ network = "mlp", columns = 20 }} }}
"""


def main() -> None:
    games = int(os.environ.get("OPTIMIST_GRID_GAMES", "60"))
    with tempfile.TemporaryDirectory(prefix="grid-") as folder:
        study = written_study(Path(folder), games)
        rehearse = on_slurm if os.environ.get("OPTIMIST_GRID") == "slurm" else on_ray
        rehearse(study, Path(folder) / "out")


def written_study(folder: Path, games: int) -> Path:
    log, random, lanes = folder / "log", np.random.default_rng(0), 4
    play = Chains.make("log", seeds=list(range(lanes)))
    with Recorder(log, SPEC, lanes=lanes, provenance={}) as recorder:
        frame = play.reset()
        for _ in range(500):
            action = random.integers(2, size=lanes)
            step = play.step(action)
            recorder.add(frame, action, step.reward, step.terminal, step.truncated, step.next_observation)
            frame = step.observation
    names = ", ".join(f'"benchmarks.grid_games:Chains/game{number}"' for number in range(games))
    (folder / "grid.toml").write_text(STUDY.format(games=names, log=log))
    return folder / "grid.toml"


def command(study: Path, out: Path, *words: str) -> subprocess.Popen:
    line = [sys.executable, "-m", "optimist", "study", "run", str(study), "--out", str(out), *words]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def done(out: Path) -> int:
    return len(list(out.rglob("DONE")))


@contextlib.contextmanager
def ray_cluster() -> Iterator[str]:
    """A head that only manages, and nodes with room for one run each."""
    from ray.cluster_utils import Cluster

    small = {"object_store_memory": 80 * 2**20}
    head = {"num_cpus": 0, "include_dashboard": False, **small}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(NODES):
        cluster.add_node(num_cpus=1, **small)
    try:
        yield cluster.address
    finally:
        cluster.shutdown()


def on_ray(study: Path, out: Path) -> None:
    begun, total = time.monotonic(), 0
    with ray_cluster() as address:
        running = command(study, out, "--engine", "ray", "--address", address)
        while running.poll() is None and done(out) < 30:
            time.sleep(0.5)
        total = len(read_jobs(out)[1])
        while running.poll() is None and done(out) < total // 2:
            time.sleep(0.5)
        print(f"{done(out)} of {total} runs were done when the head and the command were killed", flush=True)
        running.kill()
        running.communicate()
    first, before = time.monotonic() - begun, {path: path.stat().st_mtime_ns for path in out.rglob("DONE")}
    with ray_cluster() as address:
        again = time.monotonic()
        running = command(study, out, "--engine", "ray", "--address", address)
        while running.poll() is None and done(out) <= len(before):
            time.sleep(0.1)
        print(f"the first run was done {time.monotonic() - again:.0f} s after the same command", flush=True)
        told, _ = running.communicate()
        assert running.returncode == 0, told
        second = time.monotonic() - again
    assert all(path.stat().st_mtime_ns == mark for path, mark in before.items()), "a run was done twice"
    report(out, first + second, total)


def on_slurm(study: Path, out: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from slurm_cluster import SlurmCluster, missing

    assert not missing(), f"this machine lacks {missing()}"
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        cluster = SlurmCluster(Path(folder))
        os.environ["SLURM_CONF"] = str(cluster.configuration)
        cluster.start()
        try:
            begun = time.monotonic()
            left = command(study, out, "--engine", "slurm", "--detach")
            told, _ = left.communicate()
            assert left.returncode == 0, told
            print(f"in the queue after {time.monotonic() - begun:.0f} s", flush=True)
            total = len(read_jobs(out)[1])
            while done(out) < total // 2:
                time.sleep(1)
            cluster.stop_controller()
            print(f"{done(out)} of {total} runs were done when the controller was killed", flush=True)
            time.sleep(20)
            cluster.start_controller()
            running = command(study, out, "--engine", "slurm")
            told, _ = running.communicate()
            assert running.returncode == 0, told
            report(out, time.monotonic() - begun, total)
        finally:
            cluster.stop()


def report(out: Path, seconds: float, total: int) -> None:
    """Print what the runs took, what was between them, and how long the report takes."""
    spent = [took(path.parent).seconds for path in out.rglob(FILE)]
    between = NODES * seconds / total - sum(spent) / len(spent)
    begun = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "optimist", "study", "report", str(out)], check=True, capture_output=True
    )
    figures = {
        "runs": total,
        "minutes": round(seconds / 60, 1),
        "seconds a run": round(sum(spent) / len(spent), 2),
        "seconds between runs of a node": round(between, 2),
        "seconds of the report": round(time.monotonic() - begun, 1),
        "MiB": round(sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 2**20),
    }
    print(json.dumps(figures), flush=True)
