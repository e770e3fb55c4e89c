"""Workers on a SLURM cluster: every run is a job of an array, which waits for the log that it needs.

All nodes see the study's folder under the same path; the runs are in it, or at an address. Results are read
from the run folders, never from what submitit pickles. The study's folder also keeps the numbers of the jobs:
if this process is lost, the same command finds those that still wait or run.
"""

import getpass
import json
import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from optimist.data.disk.files import make_folder, write_whole
from optimist.data.disk.records import json_value, record
from optimist.envs._environment import package
from optimist.envs._processes import VARIABLE, setting, variables
from optimist.errors import UsageError
from optimist.studies.engines._schedule import Detached, Ended, Remote, bring, perform_all
from optimist.studies.engines._slurm_task import Task
from optimist.studies.job import Job
from optimist.studies.status import FILE, failure_of, waves
from optimist.studies.work import modules_of
from optimist.training.terminal import StopRequest, say

__all__ = ["Options", "bring", "run"]
FOLDER = "slurm"  # in the study's folder: submitit's files and jobs.json
AHEAD = 10_000  # jobs in the queue; clusters have limits of their own, and refuse
LOOK_SECONDS = 2.0  # between looks at the folders of runs
ASK_SECONDS = 20.0  # between questions to SLURM, which serves many users
ANSWER_SECONDS = 60  # a busy controller takes long
SAVE_SECONDS = 120  # before the time limit, so that a run can save
LEAVING_SECONDS = 90
TIME_LIMITS = 10_000  # a run may reach the limit this often; it continues each time
MAX_ARRAY = 1001  # SLURM's default of MaxArraySize


@dataclass(frozen=True)
class Options(Remote):
    partition: Annotated[str | None, "the queue; none is the cluster's default"] = None
    time: Annotated[str, "limit of each job as minutes, H:MM or D-HH:MM; a run continues after it"] = "1:00"
    memory_per_run: Annotated[float | None, "GiB of each run; none is the cluster's default"] = None
    cpus_per_run: Annotated[int, "cores of each run"] = 1
    gpus_per_run: Annotated[int, "GPUs of each run"] = 0
    runs_at_once: Annotated[int, "runs of a game, or logs, at the same time"] = 1000
    sbatch: Annotated[str | None, "other options of sbatch, such as account=lab,qos=long"] = None
    detach: Annotated[bool, "leave the runs in the queue and end this command"] = False

    def __post_init__(self):
        super().__post_init__()
        if self.cpus_per_run < 1 or self.gpus_per_run < 0:
            raise UsageError("give each run at least one core, and no GPU or more: --cpus-per-run 1")
        minutes(self.time), pairs(self.sbatch)  # raise for what is neither

    def parameters(self) -> dict[str, Any]:
        """In submitit's words."""
        limit = minutes(self.time)
        optional = {
            "partition": self.partition,
            "mem": f"{int(self.memory_per_run * 1024)}M" if self.memory_per_run else None,
            "gpus_per_node": self.gpus_per_run,
        }
        return {
            "time": limit,
            "cpus_per_task": self.cpus_per_run,
            "array_parallelism": self.runs_at_once,
            "signal_delay_s": min(SAVE_SECONDS, 30 * limit),
            "stderr_to_stdout": True,
            **{name: value for name, value in optional.items() if value},
        }


def minutes(text: str) -> int:
    """ "90" and "1:30" are minutes; days are written as in SLURM, "2-00:00"."""
    days, dash, clock = text.rpartition("-")
    parts = clock.split(":")
    if not re.fullmatch(r"(\d+-)?\d+(:\d\d)?", text) or (dash and len(parts) < 2):
        raise UsageError(f'"{text}" is not a time: write minutes, H:MM or D-HH:MM')
    within = int(parts[0]) * (60 if len(parts) == 2 else 1) + (int(parts[1]) if len(parts) == 2 else 0)
    if not (total := within + 24 * 60 * int(days or 0)):
        raise UsageError("a time limit of 0 leaves no time to run")
    return total


def pairs(text: str | None) -> dict[str, str]:
    parts = [part.partition("=") for part in (text.split(",") if text else ())]
    if not all(name and equals for name, equals, _ in parts):
        raise UsageError(f'"{text}" is not a list of options: write account=lab,qos=long')
    return {name.lstrip("-"): value for name, _, value in parts}


def run(jobs: list[Job], out: Path, options: Options) -> None:
    """Run the jobs in SLURM's queue."""
    perform_all(jobs, out, SlurmPool(out, options))


class SlurmPool:
    """A pool whose jobs are in SLURM's queue. SLURM starts a lost node's jobs elsewhere."""

    keeps_order = True

    def __init__(self, out: Path, options: Options):
        with setting({"SUBMITIT_LOG_LEVEL": "NOCONFIG"}):  # or it would replace all handlers of logging
            self._submitit: Any = package("submitit", extra="slurm")
        self._alive = queued()  # raises if this is no SLURM cluster
        self._largest = largest_array()
        self._out, self._options, self._place = out.absolute(), options, options.place
        self._before = read_ids(self._out)
        self._running: dict[str, Job] = {}
        self._ids: dict[str, str] = dict(self._before)
        self._failed: set[str] = set()
        self._asked = time.monotonic()
        self._stop = StopRequest().__enter__()

    def free(self) -> int:
        return AHEAD - len(self._running)

    def start(self, jobs: list[Job]) -> None:
        """Submit the jobs in arrays: one for those that wait for the same logs, or several if SLURM's are
        shorter. Those that an earlier process submitted are adopted."""
        adopted = [job for job in jobs if self._before.pop(job.name, None) in self._alive]
        if adopted:
            say(f"{len(adopted)} runs are in SLURM's queue already")
        self._running |= {job.name: job for job in adopted}
        left = [job for job in jobs if job.name not in self._running]
        known = {name for job in jobs for name in job.needs} - {job.name for job in left}
        if left and self._place:
            self._place.send_file(FILE, self._out)
        for wave in waves(left, known):
            groups: dict[tuple[str, ...], list[Job]] = {}
            for job in wave:
                needed = tuple(self._ids[name] for name in job.needs if name in self._running)
                groups.setdefault(needed, []).append(job)
            for needed, together in groups.items():
                for first in range(0, len(together), self._largest):
                    self._submit(together[first : first + self._largest], needed)
        if jobs:
            make_folder(self._out / FOLDER)
            write_whole(self._out / FOLDER / "jobs.json", json.dumps(self._ids, indent=1).encode())

    def _submit(self, jobs: list[Job], needed: tuple[str, ...]) -> None:
        """One array of jobs that wait for the same ones."""
        executor = self._submitit.SlurmExecutor(self._out / FOLDER, max_num_timeout=TIME_LIMITS)
        more: dict[str, Any] = {"requeue": True, "kill-on-invalid-dep": "yes", **pairs(self._options.sbatch)}
        more |= {"dependency": "afterok:" + ":".join(needed)} if needed else {}
        name = f"optimist-{self._out.name}"
        executor.update_parameters(**self._options.parameters(), job_name=name, additional_parameters=more)
        # sbatch gives the variables of this process to the job.
        given = {"PYTHONPATH": variables()["PYTHONPATH"], VARIABLE: "1"}
        given |= {"NPROC": str(self._options.cpus_per_run)}
        given |= {} if self._options.gpus_per_run else {"JAX_PLATFORMS": "cpu"}
        try:
            with setting(given), executor.batch():
                sent = [executor.submit(task(job, self._out, self._options)) for job in jobs]
        except self._submitit.core.utils.FailedJobError as problem:
            lines = [line for line in str(problem).splitlines() if "error:" in line] or [str(problem)]
            reason = lines[-1].partition("error: ")[2] or lines[-1]
            raise UsageError(f"SLURM refuses the jobs: {reason}") from None
        for job, submitted in zip(jobs, sent, strict=True):
            self._ids[job.name], self._running[job.name] = submitted.job_id, job

    def wait(self) -> list[Ended]:
        """What became of the runs, by the files in their folders; SLURM is asked from time to time which of
        them are no longer in its queue."""
        if self._options.detach:
            raise Detached
        time.sleep(0 if self._stop.received else LOOK_SECONDS)
        self._stop.leave(f"{len(self._running)} runs")
        gone = set[str]()
        if time.monotonic() - self._asked >= ASK_SECONDS:
            self._asked, self._alive = time.monotonic(), queued()
            gone = {name for name in self._running if self._ids[name] not in self._alive}
        if self._place:
            for name in gone:
                self._place.bring(name, self._out / name, exactly=True)
        looks = [self._ended(job, job.name in gone) for job in self._running.values()]
        ended = [each for each in looks if each]
        for each in ended:
            del self._running[each.job.name]
            self._failed |= {each.job.name} if each.complaint and not each.worker_died else set()
        return ended

    def _ended(self, job: Job, gone: bool) -> Ended | None:
        if (job.run_folder(self._out) / "DONE").exists() and job.done(self._out):
            return Ended(job)
        if complaint := failure_of(job, self._out):
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
            if left and not self._options.detach:
                answer("scancel", "--quiet", *left)  # SIGTERM, and some time to save
                deadline = time.monotonic() + LEAVING_SECONDS
                while left & queued() and time.monotonic() < deadline:
                    time.sleep(LOOK_SECONDS)
        finally:
            self._stop.__exit__()


def task(job: Job, out: Path, options: Options) -> Task:
    """What the node runs."""
    words = [options.store or str(out), "--run", job.name]
    words += ["--scratch", str(options.scratch_folder)] if options.scratch else []
    words += ["--restart"] if job.restart else []
    for module in modules_of(job):
        words += ["--allow", module]
    return Task(tuple(words), os.getcwd())


def read_ids(out: Path) -> dict[str, str]:
    """The numbers of the jobs that an earlier process submitted."""
    try:
        return record(dict[str, str], json_value((out / FOLDER / "jobs.json").read_bytes()))
    except (OSError, ValueError):
        return {}


def answer(*command: str) -> str:
    """The output of one of SLURM's commands; UsageError in one line if it fails."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS)
    except FileNotFoundError:
        raise UsageError(
            f"{command[0]} is not installed: run this on a node of a SLURM cluster, such as its login node"
        ) from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"SLURM does not answer {command[0]} within {ANSWER_SECONDS} s: try again") from None
    if ended.returncode:
        reason = " ".join(ended.stderr.split()) or f"code {ended.returncode}"
        raise UsageError(f"SLURM refuses {command[0]}: {reason}")
    return ended.stdout


def queued() -> set[str]:
    """The user's jobs that wait, run or are just ending: "12", or "12_3" in an array."""
    return set(
        answer("squeue", "--noheader", "--array", "--format=%i", f"--user={getpass.getuser()}").split()
    )


def largest_array() -> int:
    """The number of jobs that one array may have."""
    found = re.search(r"MaxArraySize\s*=\s*(\d+)", answer("scontrol", "show", "config"))
    return max(1, (int(found[1]) if found else MAX_ARRAY) - 1)
