"""Workers on this machine: long-lived processes, so that JAX loads once and equal programs compile once."""

import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import MappingProxyType
from typing import Any

from optimist import plugins
from optimist.data import machine
from optimist.envs._processes import isolated, serve, setting
from optimist.errors import OptimistError, UsageError, in_one_line
from optimist.studies.engines.devices import RUNS_PER_GPU_DEFAULT, gpus, least_used, share
from optimist.studies.engines.engine import Ended
from optimist.studies.job import Job
from optimist.studies.job_run import perform_job
from optimist.studies.rates import measured
from optimist.training.storage.run_folder import InUseError
from optimist.training.terminal import Interrupted

PATIENCE = 0.5  # seconds between checks for signals
LEAVING_SECONDS = 60
FEW_CORES = 4
NOTHING: Mapping[str, str] = MappingProxyType({})


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

    def __init__(self, context, out: Path, gpu: str | None = None, environment: Mapping[str, str] = NOTHING):
        self.wire, other_end = context.Pipe()
        # If the engine is killed, the worker saves and exits: otherwise the next engine finds its run in use.
        words = (os.getpid(), __name__, "serve_jobs", other_end, str(out))
        self.process = context.Process(target=serve, args=words, daemon=True)
        with isolated(), setting(environment):
            self.process.start()
        other_end.close()
        self.gpu = gpu
        self.job: Job | None = None

    def begin(self, job: Job, cores: int | None) -> None:
        self.job = job
        self.wire.send((job.as_json(), cores))

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
        # A process that was forked from one with JAX's threads would hang.
        self._context: Any = multiprocessing.get_context("spawn")
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
            idle[0].begin(job, cores)

    def _new_worker(self) -> Worker:
        gpu = least_used(self._gpus, [worker.gpu for worker in self._workers])
        return Worker(self._context, self._out, gpu, share(gpu, self._size, len(self._gpus)))

    def wait(self) -> list[Ended]:
        busy = {worker.wire: worker for worker in self._workers if worker.job is not None}
        ended = [busy[wire].ended() for wire in wait(list(busy), timeout=PATIENCE)]  # type: ignore[index]
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


def local_pool(
    out: Path, jobs: int, workers: int | None = None, runs_per_gpu: int | None = None
) -> LocalPool:
    """A pool for so many jobs on all GPUs of this machine, or on its cores."""
    for name, value in (("--workers", workers), ("--runs-per-gpu", runs_per_gpu)):
        if value is not None and value < 1:
            raise UsageError(f"{name} {value}: choose at least 1")
    found = gpus()
    if runs_per_gpu and not found:
        raise UsageError("--runs-per-gpu: JAX finds no GPU here; leave it out, or choose --workers")
    most = workers or usual_workers(len(found), runs_per_gpu)
    return LocalPool(out, min(most, max(jobs, 1)), found)


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
        wire.send(performed(Job.from_json(job), Path(out)))


def _performed_when_free(job: Job, out: Path, leaving_seconds: int) -> None:
    """Wait until a worker of an earlier engine releases the run, then run the job."""
    for attempt in range(leaving_seconds + 1):
        try:
            return perform_job(job, out)
        except InUseError:
            if attempt == leaving_seconds:
                raise
            time.sleep(1)


def performed(job: Job, out: Path, leaving_seconds: int = LEAVING_SECONDS) -> str:
    """Run the job, with its output in log.txt; return its error, or ""."""
    log = out / job.name / "log.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.is_symlink():
        return f"{log} is a link, which a run does not follow: remove it"
    with log.open("a") as stream, redirect_stdout(stream), redirect_stderr(stream):
        try:
            with measured(job, out):
                _performed_when_free(job, out, leaving_seconds)
        except Interrupted:
            sys.exit(0)
        except Exception as problem:  # the other jobs continue
            traceback.print_exc()
            return _told(problem, log)
    return ""


def _told(problem: Exception, log: Path) -> str:
    """The line about an error, as a command of one run has it; the traceback is in the log."""
    if isinstance(problem, OptimistError):
        line = str(problem)
    else:
        usual = f"{type(problem).__name__}: {in_one_line(problem, 400)} (see {log})"
        line = plugins.failure(problem) or usual
    return line.replace("--debug shows", f"{log} shows")
