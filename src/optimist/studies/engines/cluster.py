"""Workers on a Ray cluster that exists already: every run is a task, with its own share of cores and GPUs.

All nodes share one path: the study's folder, and the logs that were there before. Nothing else travels.
"""

import hashlib
import os
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from optimist.envs._lanes import package
from optimist.envs.atari import ROMS
from optimist.errors import UsageError
from optimist.studies.engines.connection import connect
from optimist.studies.engines.engine import Ended
from optimist.studies.engines.local import PATIENCE, performed
from optimist.studies.job import Job
from optimist.studies.status import FILE
from optimist.training.interrupt import StopRequest
from optimist.training.progress import say

AHEAD = 1000  # runs that wait in the cluster's own queue, where an autoscaler sees them
LEAVING_SECONDS = 180  # a network file system keeps the lock of a node that is gone for 90 s or more


class RayPool:
    """Runs on whatever node has room. Those of a node that is lost are the engine's to begin again elsewhere,
    and go on from their last checkpoints."""

    def __init__(self, out: Path, address: str = "auto", cpus: float = 1, gpus: float = 0):
        _check_shares(cpus, gpus)
        self._ray: Any = package("ray", extra="ray")
        connect(self._ray, address)
        self._out = out.absolute()  # not resolved: a link may lead elsewhere on another node
        self._environment = _environment(cpus, gpus)
        # Ray begins nothing again by itself: the engine counts the attempts.
        self._task = self._ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=0)(_perform)
        self._running: dict[Any, Job] = {}
        self._tell_of_room(cpus, gpus)
        # A signal is heard between waits: inside them Ray turns it into errors of its own.
        self._stop = StopRequest().__enter__()

    def _tell_of_room(self, cpus: float, gpus: float) -> None:
        """Ray itself waits without a word for a node that is large enough."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if not any(node.get("CPU", 0) >= cpus and node.get("GPU", 0) >= gpus for node in nodes):
            say(f"no node has {cpus:g} cores and {gpus:g} GPUs for a run: all wait until one joins")
        if not gpus and any(node.get("GPU", 0) for node in nodes):
            say("the cluster has GPUs that no run will use: --gpus-per-run 0.33 gives one to three")

    def free(self) -> int:
        return AHEAD - len(self._running)

    def start(self, jobs: list[Job]) -> None:
        for job in jobs:
            self._running[self._sent(job)] = job

    def _sent(self, job: Job) -> Any:
        sent = replace(job, data=str(job.data_folder(self._out).absolute())) if job.data else job
        # What it needs is done; its data is a path like any other, wherever the worker stands.
        arguments = (replace(sent, needs=()).as_json(), str(self._out), _mark(self._out), self._environment)
        return self._task.remote(*arguments)

    def wait(self) -> list[Ended]:
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=PATIENCE)
        self._stop.leave(f"{len(self._running)} runs")
        return [self._ended(task) for task in ready]

    def _ended(self, task: Any) -> Ended:
        job, problems = self._running.pop(task), self._ray.exceptions
        try:
            complaint, seconds = self._ray.get(task)
            return Ended(job, complaint, seconds=seconds)
        except problems.RayTaskError as problem:  # not even its log could be opened
            return Ended(job, str(problem).strip().splitlines()[-1])
        except problems.RayError as problem:
            return Ended(job, f"its node or worker is lost ({type(problem).__name__})", worker_died=True)

    def close(self) -> None:
        """Runs that wait are taken back; those at work are asked to save and leave, as by Ctrl-C."""
        try:
            for task in self._running:
                self._ray.cancel(task)
            leaving = list(self._running)
            if leaving:
                self._ray.wait(leaving, num_returns=len(leaving), timeout=LEAVING_SECONDS)
        finally:
            self._stop.__exit__()
            self._ray.shutdown()


def _check_shares(cpus: float, gpus: float) -> None:
    if cpus <= 0:
        raise UsageError(f"a run with {cpus:g} cores: it takes more than none")
    if gpus < 0 or (gpus > 1 and gpus != int(gpus)):
        raise UsageError(f"a run with {gpus:g} GPUs: it takes a share of one, or whole ones")


def _environment(cpus: float, gpus: float) -> dict[str, str]:
    """Variables of a run's process."""
    variables = {"NPROC": str(max(1, int(cpus)))}  # threads of XLA, which would make one for every core
    if 0 < gpus < 1:
        variables["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # or the first run takes all of the GPU's memory
    if os.environ.get(ROMS):
        variables[ROMS] = str(Path(os.environ[ROMS]).absolute())
    return variables


def _mark(out: Path) -> str:
    """Tells the study's folder from another one at the same path, on a disk that is not shared."""
    try:
        return hashlib.sha256((out / FILE).read_bytes()).hexdigest()
    except OSError:
        return ""


def _perform(job: str, out: str, mark: str, environment: dict[str, str]) -> tuple[str, float]:
    """On the node: why it failed, if it did, and the seconds it took."""
    os.environ.update(environment)
    begun, folder = time.monotonic(), Path(out)
    if _mark(folder) != mark:
        return (
            f"{socket.gethostname()} does not see the study in {out}: choose an --out that all nodes share",
            0.0,
        )
    try:
        complaint = performed(Job.from_json(job), folder, LEAVING_SECONDS)
    except SystemExit:  # asked to stop, it saved; a worker that exits would be reported as an accident
        raise KeyboardInterrupt from None
    return complaint, time.monotonic() - begun
