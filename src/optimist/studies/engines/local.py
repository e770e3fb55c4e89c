"""Workers on this machine: long-lived processes, so that JAX loads once and equal programs compile once."""

import importlib.util
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Annotated, Any

from optimist.data import machine
from optimist.envs._processes import isolated, serve, setting, variables
from optimist.errors import UsageError
from optimist.studies.engines._schedule import Ended, perform_all
from optimist.studies.job import Job
from optimist.studies.work import performed
from optimist.training.memory import RUNS_PER_GPU, RUNS_PER_MACHINE

PATIENCE = 0.5  # seconds between checks for signals
LEAVING_SECONDS = 60
FEW_CORES = 4
VISIBLE = "CUDA_VISIBLE_DEVICES"
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
RUNS_PER_GPU_DEFAULT = 3  # one run alone leaves a GPU idle at times
ANSWER_SECONDS = 120  # for JAX to find the devices; a cold file system takes long
PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin")
# JAX is asked in another process: in this one it would reserve memory on a GPU until the study ends.
QUESTION = "import jax; print(jax.default_backend(), jax.local_device_count())"


@dataclass(frozen=True)
class Options:
    workers: Annotated[int | None, "processes; none is one per core, or three per GPU"] = None
    runs_per_gpu: Annotated[int | None, "runs that share one GPU; all GPUs are used; none is 3"] = None

    def __post_init__(self):
        for name, value in (("workers", self.workers), ("runs_per_gpu", self.runs_per_gpu)):
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}: choose at least 1")


def run(jobs: list[Job], out: Path, options: Options) -> None:
    """Run the jobs on all GPUs of this machine, or on its cores."""
    perform_all(jobs, out, pool(out, len(jobs), options))


def pool(out: Path, jobs: int, options: Options) -> "LocalPool":
    """Workers for so many jobs."""
    devices = gpus()
    if options.runs_per_gpu and not devices:
        raise UsageError("--runs-per-gpu: JAX finds no GPU here; leave it out, or choose --workers")
    most = options.workers or usual_workers(len(devices), options.runs_per_gpu)
    return LocalPool(out, min(most, max(jobs, 1)), devices)


def usual_workers(gpus: int = 0, runs_per_gpu: int | None = None) -> int:
    """One per core; on a machine with GPUs so many per GPU."""
    return gpus * (runs_per_gpu or RUNS_PER_GPU_DEFAULT) if gpus else machine.cores()


def cores_each(jobs: int) -> int | None:
    """The cores that each of several jobs may use; None is all of them, on a machine with few cores.

    On a machine with many cores the threads and environments of several jobs would slow each other down."""
    cores = machine.cores()
    return max(1, cores // jobs) if cores > FEW_CORES else None


class Worker:
    """A process that runs one job after the other, on one GPU if the machine has any."""

    job: Job | None = None

    def __init__(self, out: Path, gpu: str | None, environment: dict[str, str]):
        # A process that was forked from one with JAX's threads would hang.
        context = multiprocessing.get_context("spawn")
        self.wire, other_end = context.Pipe()
        # If the engine is killed, the worker saves and exits: otherwise the next engine finds its run in use.
        words = (os.getpid(), __name__, "serve_jobs", other_end, str(out))
        self.process, self.gpu = context.Process(target=serve, args=words, daemon=True), gpu
        with isolated(), setting(environment):
            self.process.start()
        other_end.close()

    def ended(self) -> Ended:
        """The result of its job, or that its process died."""
        assert self.job is not None
        job, self.job = self.job, None
        try:
            return Ended(job, self.wire.recv())
        except (EOFError, ConnectionResetError):
            self.process.join()
            return Ended(job, f"its process ended with code {self.process.exitcode}", worker_died=True)


class LocalPool:
    """A pool of at most `workers` processes, each started when it is first needed; GPUs are given to them in
    turn."""

    keeps_order = False

    def __init__(self, out: Path, workers: int, gpus: Sequence[str] = ()):
        self._out, self._size, self._gpus = out, workers, list(gpus)
        self._workers: list[Worker] = []

    def free(self) -> int:
        return self._size - sum(worker.job is not None for worker in self._workers)

    def start(self, jobs: list[Job]) -> None:
        cores = cores_each(self._size - self.free() + len(jobs)) if jobs else None
        for job in jobs:
            idle = [worker for worker in self._workers if worker.job is None]
            if not idle:
                idle = [self._new_worker()]
                self._workers += idle
            idle[0].job = job
            idle[0].wire.send((job.as_json(), cores))

    def _new_worker(self) -> Worker:
        gpu = least_used(self._gpus, [worker.gpu for worker in self._workers])
        return Worker(self._out, gpu, share(gpu, self._size, len(self._gpus)))

    def wait(self) -> list[Ended]:
        busy: dict[Any, Worker] = {worker.wire: worker for worker in self._workers if worker.job is not None}
        ended = [busy[wire].ended() for wire in wait(list(busy), timeout=PATIENCE)]
        self._workers = [worker for worker in self._workers if worker.process.is_alive()]
        return ended

    def close(self) -> None:
        """Stop the idle workers; ask the busy ones to save and stop."""
        for worker in self._workers:
            if worker.job is not None and worker.process.pid:
                os.kill(worker.process.pid, signal.SIGTERM)
            worker.wire.close()
        for worker in self._workers:
            worker.process.join()


def serve_jobs(wire: Connection, out: str) -> None:
    """The worker's loop: receive jobs as JSON, send back the error of each, or ""."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the engine sends SIGTERM
    while True:
        try:
            job, cores = wire.recv()
        except EOFError:
            return
        if cores is not None:
            os.environ["NPROC"] = str(cores)  # `free_cores` starts from it, and so does XLA at its first job
        wire.send(performed(Job.from_json(job), Path(out), LEAVING_SECONDS))


def gpus() -> list[str]:
    """The GPUs that JAX would use here, by their names for CUDA_VISIBLE_DEVICES; empty on a CPU."""
    if os.environ.get("JAX_PLATFORMS") == "cpu" or not any(map(importlib.util.find_spec, PLUGINS)):
        return []
    try:
        answer = subprocess.run(
            [sys.executable, "-P", "-c", QUESTION],
            env={**variables(), PREALLOCATE: "false"},
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
        )
        backend, count = answer.stdout.split()
    except (subprocess.TimeoutExpired, ValueError):
        return []
    chosen = [name.strip() for name in os.environ.get(VISIBLE, "").split(",") if name.strip()]
    return (chosen or [str(number) for number in range(int(count))])[: int(count)] if backend == "gpu" else []


def least_used(gpus: list[str], in_use: list[str | None]) -> str | None:
    """The GPU for one more worker: the first of those with the fewest workers; None without GPUs."""
    return min(gpus, key=in_use.count) if gpus else None


def share(gpu: str | None, runs: int, gpus: int) -> dict[str, str]:
    """Environment variables of one of `runs` workers, which share this machine and its GPUs."""
    shared = {RUNS_PER_MACHINE: str(runs)}
    if gpu is not None:
        shared |= {VISIBLE: gpu, RUNS_PER_GPU: str(-(-runs // gpus))}
    if runs > gpus:  # several processes share one device: none may reserve all of its memory
        shared[PREALLOCATE] = os.environ.get(PREALLOCATE, "false")
    return shared
