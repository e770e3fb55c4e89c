"""Workers on this machine: long-lived processes, so that JAX loads once and equal programs compile once."""

import multiprocessing
import os
import signal
import sys
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import jax

from optimist.data import machine
from optimist.envs._processes import isolated, serve
from optimist.errors import OptimistError
from optimist.studies.engines.engine import Ended
from optimist.studies.job import Job
from optimist.training.interrupt import Interrupted
from optimist.training.storage.run_folder import InUseError

PATIENCE = 0.5  # seconds between checks for signals
LEAVING_SECONDS = 60
FEW_CORES = 4


def usual_workers() -> int:
    """One per core; on an accelerator three, because one run alone leaves it idle at times."""
    return machine.cores() if jax.default_backend() == "cpu" else 3


def cores_each(jobs: int) -> int | None:
    """The cores that each of several jobs may use; None is all of them, on a machine with few cores.

    On a machine with many cores the threads and environments of several jobs would slow each other down."""
    cores = machine.cores()
    return max(1, cores // jobs) if cores > FEW_CORES else None


class Worker:
    """A process that runs one job after the other."""

    def __init__(self, context, out: Path):
        self.wire, other_end = context.Pipe()
        # If the engine is killed, the worker saves and exits: otherwise the next engine finds its run in use.
        words = (os.getpid(), __name__, "serve_jobs", other_end, str(out))
        self.process = context.Process(target=serve, args=words, daemon=True)
        with isolated():
            self.process.start()
        other_end.close()
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
    """A pool of at most `workers` processes, each started when it is first needed."""

    def __init__(self, out: Path, workers: int):
        # Several processes share one device: none may reserve all of its memory.
        if workers > 1:
            os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        # A process that was forked from one with JAX's threads would hang.
        self._context: Any = multiprocessing.get_context("spawn")
        self._out, self._size = out, workers
        self._workers: list[Worker] = []

    def free(self) -> int:
        return self._size - sum(worker.job is not None for worker in self._workers)

    def start(self, jobs: list[Job]) -> None:
        cores = cores_each(self._size - self.free() + len(jobs)) if jobs else None
        for job in jobs:
            idle = [worker for worker in self._workers if worker.job is None]
            if not idle:
                idle = [Worker(self._context, self._out)]
                self._workers += idle
            idle[0].begin(job, cores)

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
            return job.perform(out)
        except InUseError:
            if attempt == leaving_seconds:
                raise
            time.sleep(1)


def performed(job: Job, out: Path, leaving_seconds: int = LEAVING_SECONDS) -> str:
    """Run the job, with its output in log.txt; return its error, or ""."""
    log = out / job.name / "log.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as stream, redirect_stdout(stream), redirect_stderr(stream):
        try:
            _performed_when_free(job, out, leaving_seconds)
        except Interrupted:
            sys.exit(0)
        except OptimistError as problem:
            return str(problem)
        except Exception as problem:  # a bug: the other jobs continue, and the traceback is in the log
            traceback.print_exc()
            return f"{type(problem).__name__}: {problem} (see {log})"
    return ""
