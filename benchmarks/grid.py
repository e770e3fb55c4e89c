"""The paper's whole grid rehearsed: 60 games x 6 agents x 5 seeds on Ray or SLURM, with training of seconds.

`python -m benchmarks grid` runs all of it on a Ray cluster of raylets on this machine, loses the head and the
command half-way, and starts again. `OPTIMIST_GRID=slurm` runs it on a SLURM cluster of this machine instead
(tests/support/slurm_cluster.py says what that needs): half-way a running job is put back into the queue, and
the controller and the command are killed. `OPTIMIST_GRID_GAMES=6` takes fewer games.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.grid_games import SPEC, Chains
from optimist.data import Recorder

ROOT = Path(__file__).parents[1]
NODES = 2
CONTROLLER_SECONDS = 20  # without a controller
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
RUNS_PER_GAME = 7  # six agents and random play


def main() -> None:
    games = int(os.environ.get("OPTIMIST_GRID_GAMES", "60"))
    # The workers import the stand-in games, and never search the current folder.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory(prefix="grid-") as folder:
        study, out = written_study(Path(folder), games), Path(folder) / "out"
        rehearse = on_slurm if os.environ.get("OPTIMIST_GRID") == "slurm" else on_ray
        rehearse(study, out, RUNS_PER_GAME * games)
        print_report(out)


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


def begin(study: Path, out: Path, *words: str) -> subprocess.Popen:
    line = [sys.executable, "-m", "optimist", "study", "run", str(study), "--out", str(out), *words]
    with (study.parent / "told.txt").open("a") as told:
        return subprocess.Popen(line, stdout=told, stderr=told)


def await_end(command: subprocess.Popen, study: Path) -> None:
    assert command.wait() == 0, (study.parent / "told.txt").read_text()[-2000:]


def await_runs(count: int, out: Path, command: subprocess.Popen | None = None) -> None:
    while len(ends(out)) < count:
        assert command is None or command.poll() is None, "the command has ended"
        time.sleep(1)


def ends(out: Path) -> dict[Path, int]:
    """When each finished run ended, in nanoseconds of the clock."""
    return {path.parent: path.stat().st_mtime_ns for path in out.rglob("DONE")}


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


def on_ray(study: Path, out: Path, total: int) -> None:
    with stopwatch("the first half"), ray_cluster() as address:
        running = begin(study, out, "--engine", "ray", "--address", address)
        await_runs(total // 2, out, running)
    running.kill()  # after the head and its nodes
    running.wait()
    before, lost = ends(out), time.time()
    print(f"{len(before)} of {total} runs were done when the head, its nodes and the command were killed")
    with stopwatch("the second half"), ray_cluster() as address:
        running = begin(study, out, "--engine", "ray", "--address", address)
        with stopwatch("from the same command to its first finished run"):
            await_runs(len(before) + 1, out, running)
        await_end(running, study)
    finish(out, total, before, lost)


def on_slurm(study: Path, out: Path, total: int) -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    from slurm_cluster import SlurmCluster

    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        cluster = SlurmCluster(Path(folder))
        os.environ["SLURM_CONF"] = str(cluster.configuration)
        cluster.start()
        try:
            with stopwatch("until all runs are in the queue"):
                await_end(begin(study, out, "--engine", "slurm", "--detach", "yes"), study)
            running = begin(study, out, "--engine", "slurm")
            with stopwatch("the first half"):
                await_runs(total // 2, out, running)
            active: list[str] = []
            while not active:  # between two jobs of a node none may run
                active = cluster.asked("squeue", "--noheader", "--array", "--states=R", "--format=%i").split()
            cluster.asked("scontrol", "requeue", active[0])
            cluster.stop_controller()
            running.kill()
            running.wait()
            before, lost = ends(out), time.time()
            print(f"{len(before)} of {total} runs were done when the controller and the command were killed")
            time.sleep(CONTROLLER_SECONDS)
            cluster.start_controller()
            with stopwatch("the second half"):
                await_end(begin(study, out, "--engine", "slurm"), study)
        finally:
            cluster.stop()
    finish(out, total, before, lost)


@contextlib.contextmanager
def stopwatch(what: str) -> Iterator[None]:
    begun = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - begun:.0f} s", flush=True)


def finish(out: Path, total: int, before: dict[Path, int], lost: float) -> None:
    """Check that all runs were done once, and print what they took and what was between them."""
    after = ends(out)
    assert len(after) == total
    assert all(after[run] == end for run, end in before.items()), "a run was done twice"
    for half, kept in (("before", lambda end: end <= lost), ("after", lambda end: end > lost)):
        print_times(f"{half} the loss", out, kept)


def print_times(when: str, out: Path, kept: Callable[[float], bool]) -> None:
    times = {
        path: (path.stat().st_mtime, path.with_name("config.toml").stat().st_mtime)
        for path in out.rglob("DONE")
    }
    runs = [(end, end - begun) for end, begun in times.values() if kept(end)]
    window = max(end for end, _ in runs) - min(end - seconds for end, seconds in runs)
    spent = [seconds for _, seconds in runs]
    figures = {
        "runs": len(runs),
        "median seconds of a run": statistics.median(spent),
        "mean": statistics.mean(spent),
        "longest": max(spent),
        "seconds of a node between two runs": NODES * window / len(runs) - statistics.mean(spent),
    }
    print_figures(when, figures)


def print_report(out: Path) -> None:
    begun = time.monotonic()
    line = [sys.executable, "-m", "optimist", "study", "report", str(out)]
    subprocess.run(line, check=True, capture_output=True)
    figures = {
        "seconds": time.monotonic() - begun,
        "MiB of the page": (out / "report.html").stat().st_size / 2**20,
        "MiB of the study": sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 2**20,
    }
    print_figures("the report", figures)


def print_figures(what: str, figures: dict[str, float]) -> None:
    print(f"{what}: {json.dumps({name: round(figure, 2) for name, figure in figures.items()})}", flush=True)
