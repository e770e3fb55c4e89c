"""Workers on this machine: processes that stay, so that JAX loads once and equal programs compile once."""

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

from optimist.envs._processes import isolated, serve
from optimist.errors import OptimistError
from optimist.studies.engines.engine import Ended
from optimist.studies.job import Job
from optimist.training.interrupt import Interrupted
from optimist.training.storage.run_folder import InUseError

PATIENCE = 0.5  # seconds between looks at the signals
LEAVING_SECONDS = 60
FEW_CORES = 4


def usual_workers() -> int:
    """As many as there are cores; on an accelerator three, whose gaps fill each other."""
    return len(os.sched_getaffinity(0)) if jax.default_backend() == "cpu" else 3


def cores_each(jobs: int) -> int | None:
    """How many cores a job may use, on a machine with many: threads and environments of several jobs would
    slow each other down. On a machine with few cores every job may use all."""
    cores = len(os.sched_getaffinity(0))
    return max(1, cores // jobs) if cores > FEW_CORES else None


class Worker:
    """A process that performs one job after the other."""

    def __init__(self, context, out: Path):
        self.wire, other_end = context.Pipe()
        # A worker whose engine was killed saves and leaves, or the next engine would find its run in use.
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
        """What it says of its job, or that it is gone."""
        assert self.job is not None
        job, self.job = self.job, None
        try:
            return Ended(job, self.wire.recv())
        except (EOFError, ConnectionResetError):
            self.process.join()
            return Ended(job, f"its process ended with code {self.process.exitcode}", worker_died=True)


class LocalPool:
    """As many worker processes as asked for, started when there is work for them."""

    def __init__(self, out: Path, workers: int):
        # Several programs share one device: none may take all of its memory at once.
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
        """Idle workers go home; busy ones are asked to save and leave."""
        for worker in self._workers:
            if worker.job is not None and worker.process.pid:
                os.kill(worker.process.pid, signal.SIGTERM)
            worker.wire.close()
        for worker in self._workers:
            worker.process.join()


def serve_jobs(wire: Connection, out: str) -> None:
    """The worker's side: jobs come in as text, complaints go out, an empty one for none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the engine passes it on as SIGTERM
    while True:
        try:
            job, cores = wire.recv()
        except EOFError:
            return
        if cores is not None:
            os.environ["NPROC"] = str(cores)  # `free_cores` starts from it, and so does XLA at its first job
        wire.send(performed(Job.from_json(job), Path(out)))


def _performed_when_free(job: Job, out: Path, leaving_seconds: int) -> None:
    """Wait for a worker of an earlier engine that still holds the run, and then perform the job."""
    for attempt in range(leaving_seconds + 1):
        try:
            return job.perform(out)
        except InUseError:
            if attempt == leaving_seconds:
                raise
            time.sleep(1)


def performed(job: Job, out: Path, leaving_seconds: int = LEAVING_SECONDS) -> str:
    """Why it failed, if it did; what it prints goes into a file beside its results."""
    log = out / job.name / "log.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as stream, redirect_stdout(stream), redirect_stderr(stream):
        try:
            _performed_when_free(job, out, leaving_seconds)
        except Interrupted:
            sys.exit(0)
        except OptimistError as problem:
            return str(problem)
        except Exception as problem:  # a bug: the others' work goes on, and its trace is in the log
            traceback.print_exc()
            return f"{type(problem).__name__}: {problem} (see {log})"
    return ""
