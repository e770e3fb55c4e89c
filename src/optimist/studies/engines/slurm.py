"""Workers on a SLURM cluster: every run is a job of an array, which waits for the log that it needs.

All nodes see the study's folder under the same path; the runs are in it, or at an address. Results are read
from the run folders, never from what submitit pickles. The study's folder also keeps the numbers of the jobs:
if this process is lost, the same command finds those that still wait or run.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optimist.data.disk.files import make_folder, write_whole
from optimist.data.disk.records import json_value
from optimist.envs._lanes import package
from optimist.envs._processes import VARIABLE, setting, variables
from optimist.errors import UsageError
from optimist.studies.engines import slurm_queue
from optimist.studies.engines.engine import Detached, Ended, waves
from optimist.studies.engines.places import Address, LocalCopy
from optimist.studies.engines.slurm_task import Task
from optimist.studies.engines.work import modules_of
from optimist.studies.job import Job
from optimist.studies.rates import took
from optimist.studies.status import FAILED
from optimist.training.terminal import StopRequest, say

FOLDER = "slurm"  # in the study's folder: submitit's files and jobs.json
AHEAD = 10_000  # jobs in the queue; clusters have limits of their own, and refuse
LOOK_SECONDS = 2.0  # between looks at the folders of runs
ASK_SECONDS = 20.0  # between questions to SLURM, which serves many users
SAVE_SECONDS = 120  # before the time limit, so that a run can save
LEAVING_SECONDS = 90
TIME_LIMITS = 10_000  # a run may reach the limit this often; it continues each time


@dataclass(frozen=True)
class Shares:
    """What a SLURM job asks for; None is the cluster's default."""

    partition: str | None = None
    minutes: int = 60
    memory_gib: float | None = None
    cpus: int = 1
    gpus: int = 0
    at_once: int = 1000  # jobs of one array that run at the same time
    more: tuple[tuple[str, str], ...] = ()  # other options of sbatch

    def parameters(self) -> dict[str, Any]:
        """In submitit's words."""
        found: dict[str, Any] = {
            "time": self.minutes,
            "cpus_per_task": self.cpus,
            "array_parallelism": self.at_once,
            "signal_delay_s": min(SAVE_SECONDS, 30 * self.minutes),
            "stderr_to_stdout": True,
        }
        found |= {"partition": self.partition} if self.partition else {}
        found |= {"mem": f"{int(self.memory_gib * 1024)}M"} if self.memory_gib else {}
        return found | ({"gpus_per_node": self.gpus} if self.gpus else {})


class SlurmPool:
    """A pool whose jobs are in SLURM's queue. SLURM starts a lost node's jobs elsewhere."""

    keeps_order = True

    def __init__(
        self,
        out: Path,
        shares: Shares,
        *,
        restart: bool = False,
        detach: bool = False,
        store: Address | None = None,
    ):
        with setting({"SUBMITIT_LOG_LEVEL": "NOCONFIG"}):  # or it would replace all handlers of logging
            self._submitit: Any = package("submitit", extra="slurm")
        self._alive = slurm_queue.queued()  # raises if this is no SLURM cluster
        self._largest = slurm_queue.largest_array()
        self._out, self._shares, self._restart, self._detach = out.absolute(), shares, restart, detach
        self._store, self._copy = store, LocalCopy(store.address, self._out) if store else None
        self._before = _read_ids(self._out)
        self._running: dict[str, Job] = {}
        self._ids: dict[str, str] = dict(self._before)
        self._failed: set[str] = set()
        self._asked = time.monotonic()
        self._stop = StopRequest().__enter__()

    def free(self) -> int:
        return AHEAD - len(self._running)

    def start(self, jobs: list[Job]) -> None:
        adopted = [job for job in jobs if self._before.pop(job.name, None) in self._alive]
        if adopted:
            say(f"{len(adopted)} runs are in SLURM's queue already")
        self._running |= {job.name: job for job in adopted}
        left = [job for job in jobs if job.name not in self._running]
        known = {name for job in jobs for name in job.needs} - {job.name for job in left}
        if left and self._copy:
            self._copy.send_list()
        for wave in waves(left, known):
            for needed, together in _alike(wave, self._waited_for):
                for first in range(0, len(together), self._largest):
                    self._submit(together[first : first + self._largest], needed)
        if jobs:
            make_folder(self._out / FOLDER)
            write_whole(self._out / FOLDER / "jobs.json", json.dumps(self._ids, indent=1).encode())

    def _waited_for(self, job: Job) -> tuple[str, ...]:
        return tuple(self._ids[name] for name in job.needs if name in self._running)

    def _submit(self, jobs: list[Job], needed: tuple[str, ...]) -> None:
        """One array of jobs that wait for the same ones."""
        executor = self._submitit.SlurmExecutor(self._out / FOLDER, max_num_timeout=TIME_LIMITS)
        more: dict[str, Any] = {"requeue": True, "kill-on-invalid-dep": "yes", **dict(self._shares.more)}
        more |= {"dependency": "afterok:" + ":".join(needed)} if needed else {}
        name = f"optimist-{self._out.name}"
        executor.update_parameters(**self._shares.parameters(), job_name=name, additional_parameters=more)
        with setting(self._environment()), self._refusals(), executor.batch():
            sent = [executor.submit(task(job, self._out, self._store, self._restart)) for job in jobs]
        for job, given in zip(jobs, sent, strict=True):
            self._ids[job.name], self._running[job.name] = given.job_id, job

    def _environment(self) -> dict[str, str]:
        """sbatch gives the variables of this process to the job."""
        found = {"PYTHONPATH": variables()["PYTHONPATH"], VARIABLE: "1", "NPROC": str(self._shares.cpus)}
        return found | ({} if self._shares.gpus else {"JAX_PLATFORMS": "cpu"})

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        """SLURM's reason for a refusal, in one line."""
        try:
            yield
        except self._submitit.core.utils.FailedJobError as problem:
            lines = [line for line in str(problem).splitlines() if "error:" in line] or [str(problem)]
            raise UsageError(
                f"SLURM refuses the jobs: {lines[-1].partition('error: ')[2] or lines[-1]}"
            ) from None

    def wait(self) -> list[Ended]:
        if self._detach:
            raise Detached
        time.sleep(0 if self._stop.received else LOOK_SECONDS)
        self._stop.leave(f"{len(self._running)} runs")
        gone = self._gone()
        if self._copy:
            for name in gone:
                self._copy.bring(name)
        ended = [
            found for job in list(self._running.values()) if (found := self._ended(job, job.name in gone))
        ]
        for each in ended:
            del self._running[each.job.name]
            self._failed |= {each.job.name} if each.complaint and not each.worker_died else set()
        return ended

    def _gone(self) -> set[str]:
        """The runs that are no longer in the queue; SLURM is asked from time to time."""
        if time.monotonic() - self._asked < ASK_SECONDS:
            return set()
        self._asked = time.monotonic()
        self._alive = slurm_queue.queued()
        return {name for name in self._running if self._ids[name] not in self._alive}

    def _ended(self, job: Job, gone: bool) -> Ended | None:
        """What became of a run, by the files in its folder."""
        if (job.run_folder(self._out) / "DONE").exists() and job.done(self._out):
            return Ended(job, seconds=took(self._out / job.name).seconds or None)
        failed = self._out / job.name / FAILED
        if failed.exists() and (complaint := failed.read_text("utf-8", errors="replace")):
            return Ended(job, complaint)
        if unmet := [name for name in job.needs if name in self._failed]:
            return Ended(job, f"{', '.join(unmet)} failed")
        if not gone:
            return None
        output = f"its SLURM job {self._ids[job.name]} ended (see {self._out / FOLDER})"
        return Ended(job, output, worker_died=True)

    def close(self) -> None:
        """Cancel what is in the queue; runs that are active save and stop. A detached study stays there."""
        try:
            left = {self._ids[name] for name in self._running}
            if left and not self._detach:
                slurm_queue.cancel(left)
                _await_leaving(left)
        finally:
            self._stop.__exit__()


def task(job: Job, out: Path, store: Address | None = None, restart: bool = False) -> Task:
    """What the node runs."""
    words = [store.address if store else str(out), "--run", job.name]
    words += ["--scratch", str(store.scratch)] if store and store.scratch else []
    words += ["--restart"] if restart else []
    for module in modules_of(job):
        words += ["--allow", module]
    return Task(tuple(words), os.getcwd())


def _await_leaving(jobs: set[str]) -> None:
    deadline = time.monotonic() + LEAVING_SECONDS
    while jobs & slurm_queue.queued() and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)


def _alike(jobs: list[Job], waited_for: Any) -> Iterator[tuple[tuple[str, ...], list[Job]]]:
    """The jobs that wait for the same ones, together."""
    groups: dict[tuple[str, ...], list[Job]] = {}
    for job in jobs:
        groups.setdefault(waited_for(job), []).append(job)
    yield from groups.items()


def _read_ids(out: Path) -> dict[str, str]:
    """The numbers of the jobs that an earlier process submitted."""
    try:
        return {
            str(name): str(number)
            for name, number in json_value((out / FOLDER / "jobs.json").read_text("utf-8")).items()
        }
    except (OSError, ValueError, AttributeError):
        return {}
