"""One run of a study by itself: `optimist study work`, and what the workers of every engine do."""

import hashlib
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from filelock import FileLock

from optimist import envs, plugins
from optimist.data.disk.files import make_folder
from optimist.data.machine import cache_folder
from optimist.errors import DataError, OptimistError, RunError, UsageError, did_you_mean, in_one_line
from optimist.studies.job import Job, perform_job
from optimist.studies.status import FAILED, note_failure, read_record, restarted
from optimist.studies.status import FILE as STUDY
from optimist.studies.store import CHECKPOINTS, Store, is_address, of_another_log
from optimist.training.storage.run_folder import InUseError
from optimist.training.terminal import Interrupted, StopRequest, say

LOOK_SECONDS = 5  # between looks at the runs that it needs
LEAVING_SECONDS = 180  # a network file system keeps the lock of a lost node for 90 s or more


def work(
    study: str | Path,
    *,
    index: int | None = None,
    run: str | None = None,
    restart: bool = False,
    scratch: Path | None = None,
) -> None:
    """Run one job of a study, after those that it needs, from its last checkpoint. RunError if it fails,
    Interrupted if it was stopped and saved. `study` is a folder or an address; then the local folder
    `scratch` holds what is worked on, by default in the user's cache."""
    if is_address(str(study)):
        _work_at(str(study), scratch or cache_folder() / "work", index, run, restart)
        return
    if scratch:
        raise UsageError("--scratch is for a study at an address; leave it out, the study is a folder here")
    jobs = read_record(Path(study)).jobs
    _work_in(Path(study), jobs, job_named(jobs, index, run), restart)


def job_named(jobs: list[Job], index: int | None, run: str | None) -> Job:
    """The job with this place in the list, from 0, or of this name."""
    if (index is None) == (run is None):
        raise UsageError("name one run: --index N, or --run NAME as optimist study status shows it")
    if run is not None:
        named = {job.name: job for job in jobs}
        if run not in named:
            raise UsageError(f'the study has no run "{run}": {did_you_mean(run, named)}')
        return named[run]
    assert index is not None
    if not 0 <= index < len(jobs):
        raise UsageError(f"--index {index}: the study has {len(jobs)} runs, 0 to {len(jobs) - 1}")
    return jobs[index]


def modules_of(job: Job) -> list[str]:
    """The modules outside this package that a job's agent, environment, torso and loggers name: "x" in
    "x:Agent", "x:Family/game" and "gym/x:Id"."""
    game = envs.base_name(job.environment).removeprefix("gym/")
    network = job.options.get("network", "")
    torsos = [network.get("torso", "") if isinstance(network, dict) else network]
    torsos.append(job.options.get("network.torso", ""))
    loggers = job.settings.get("loggers", "")
    loggers = loggers if isinstance(loggers, list) else str(loggers).split(",")
    names = map(str, (job.agent, game, *torsos, *loggers))
    return [name.partition(":")[0].strip() for name in names if ":" in name]


def check_trusted(job: Job) -> None:
    """Raise DataError if the folder names a module that the user did not allow."""
    for module in modules_of(job):
        if not plugins.trusted("agents", f"{module}:"):
            raise DataError(f'{job.name} imports the module "{module}"; if you trust it: --allow {module}')


def _work_in(out: Path, jobs: list[Job], job: Job, restart: bool) -> None:
    check_trusted(job)
    needed = [each for each in jobs if each.name in job.needs]
    if restart:  # a run may be done until its log is another one
        _await_needed(job, needed, out)
    if job.done(out):
        say(f"{job.name} is done already")
        return
    _await_needed(job, needed, out)
    if restart:
        [job] = restarted([job], {job.name: job.standing(out)})
    note_failure(job, out, "")
    begun = time.monotonic()
    say(f"{job.name} begins; its output is in {out / job.name / 'log.txt'}")
    try:
        complaint = performed(job, out, LEAVING_SECONDS)
    except SystemExit:
        raise Interrupted(f"{job.name} is stopped and saved; it continues", signal.SIGTERM) from None
    if complaint:
        note_failure(job, out, complaint)
        raise RunError(f"{job.name}: {complaint}")
    say(f"{job.name} is done after {time.monotonic() - begun:,.0f} s")


def _work_at(address: str, scratch: Path, index: int | None, run: str | None, restart: bool) -> None:
    """The same for a study at an address: what the run needs is brought to a local folder, and what it writes
    is sent back, from time to time and at its end. The local folder keeps logs, for the runs that come next,
    and no runs."""
    store, local = Store(address), scratch / hashlib.sha256(address.encode()).hexdigest()[:16]
    make_folder(local)
    alone = FileLock(local / "bringing.lock")  # runs on one machine that start together bring a log once
    with alone:
        store.bring_file(STUDY, local)
        jobs = read_record(local).jobs
    job = job_named(jobs, index, run)
    needed = [each for each in jobs if each.name in job.needs]

    def missing() -> list[str]:
        with alone:
            return [each.name for each in needed if not _brought(each, store, local)]

    _wait_while(job, missing, lambda name: store.has(f"{name}/{FAILED}"))
    store.bring(job.name, local / job.name, exactly=True)
    with store.kept_up(local / job.name, job.name):
        _work_in(local, jobs, job, restart)
    if not job.collects:
        shutil.rmtree(local / job.name)


def _brought(job: Job, store: Store, local: Path) -> bool:
    """Bring the log of a job; False if it is not done yet. One that is recorded anew replaces that of before,
    which may have the same sizes."""
    if not store.has((job.run_folder(Path()) / "DONE").as_posix()):
        return False
    log = Store(f"{store.address}/{job.name}")
    again = of_another_log(log, local / job.name)
    log.bring("", local / job.name, without=(CHECKPOINTS, "policies"), anew=again)
    return job.done(local)


def _await_needed(job: Job, needed: list[Job], out: Path) -> None:
    """Wait until the folder has the runs that it needs."""

    def missing() -> list[str]:
        return [each.name for each in needed if not each.done(out)]

    try:
        _wait_while(job, missing, lambda name: (out / name / FAILED).exists())
    except RunError:
        note_failure(job, out, f"{', '.join(job.needs)} failed")
        raise


def _wait_while(job: Job, missing: Callable[[], list[str]], failed: Callable[[str], bool]) -> None:
    """Wait while runs that it needs are missing; RunError if one of them failed."""
    waits = False
    with StopRequest() as stop:
        while waiting := missing():
            if lost := [name for name in waiting if failed(name)]:
                raise RunError(f"{job.name}: {', '.join(lost)} failed; run that first")
            if not waits:
                say(f"{job.name} waits for {', '.join(waiting)}")
                waits = True
            time.sleep(LOOK_SECONDS if not stop.received else 0)
            stop.leave(f"the wait for {waiting[0]}")


def performed(job: Job, out: Path, leaving_seconds: int) -> str:
    """Run the job, with its output in log.txt; return its error as a command of one run has it, or "". A
    worker of an earlier engine that was lost may hold the run for some seconds."""
    log = out / job.name / "log.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.is_symlink():
        return f"{log} is a link, which a run does not follow: remove it"
    line = ""
    with log.open("a") as stream, redirect_stdout(stream), redirect_stderr(stream):
        for left in range(leaving_seconds, -1, -1):
            try:
                perform_job(job, out)
            except InUseError as problem:
                line = str(problem)
                time.sleep(min(left, 1))
                continue
            except Interrupted:
                sys.exit(0)
            except Exception as problem:  # the other jobs continue
                traceback.print_exc()
                usual = f"{type(problem).__name__}: {in_one_line(problem, 400)} (see {log})"
                own = str(problem) if isinstance(problem, OptimistError) else plugins.failure(problem)
                return (own or usual).replace("--debug shows", f"{log} shows")
            return ""
    return line
