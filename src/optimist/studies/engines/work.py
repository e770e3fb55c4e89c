"""One run of a study by itself, for schedulers that start a process for each: `optimist study work`."""

import hashlib
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from optimist import envs, plugins
from optimist.data.disk.files import make_folder
from optimist.errors import DataError, RunError, UsageError, did_you_mean
from optimist.studies.engines.local import performed
from optimist.studies.job import Job
from optimist.studies.preparation import restarted
from optimist.studies.status import FAILED, note_failure, read_jobs
from optimist.studies.status import FILE as STUDY
from optimist.studies.store import CHECKPOINTS, Store, of_another_log
from optimist.training.terminal import Interrupted, StopRequest, say

LOOK_SECONDS = 5  # between looks at the runs that it needs
LEAVING_SECONDS = 180  # a network file system keeps the lock of a lost node for 90 s or more


def find_job(jobs: list[Job], index: int | None, run: str | None) -> Job:
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
    named = map(str, (job.agent, game, *torsos, *loggers))
    return [name.partition(":")[0].strip() for name in named if ":" in name]


def check_trusted(job: Job) -> None:
    """Raise DataError if the folder names a module that the user did not allow."""
    for module in modules_of(job):
        if not plugins.trusted("agents", f"{module}:"):
            raise DataError(f'{job.name} imports the module "{module}"; if you trust it: --allow {module}')


def work(out: Path, *, index: int | None = None, run: str | None = None, restart: bool = False) -> Job:
    """Run one job of the study in `out`, after those that it needs, from its last checkpoint. RunError if it
    fails, Interrupted if it was stopped and saved."""
    jobs = read_jobs(out)[1]
    job = find_job(jobs, index, run)
    check_trusted(job)
    if restart:  # a run may be done until its log is another one
        _await_needed(job, {each.name: each for each in jobs}, out)
    if job.done(out):
        say(f"{job.name} is done already")
        return job
    _await_needed(job, {each.name: each for each in jobs}, out)
    if restart:
        [job] = restarted([job], out)
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
    return job


def work_at(
    address: str, scratch: Path, *, index: int | None = None, run: str | None = None, restart: bool = False
) -> Job:
    """The same for a study at an address, such as s3://bucket/study: what the run needs is brought to a local
    folder, and what it writes is sent back, from time to time and at its end. The local folder keeps logs,
    for the runs that come next, and no runs."""
    store, local = Store(address), scratch / hashlib.sha256(address.encode()).hexdigest()[:16]
    make_folder(local)
    alone = FileLock(local / "bringing.lock")  # runs on one machine that start together bring a log once
    with alone:
        store.bring_file(STUDY, local)
        jobs = read_jobs(local)[1]
    job = find_job(jobs, index, run)
    needed = [each for each in jobs if each.name in job.needs]

    def missing() -> list[str]:
        with alone:
            return [each.name for each in needed if not _brought(each, store, local)]

    _wait_while(job, missing, lambda name: store.has(f"{name}/{FAILED}"))
    store.bring(job.name, local / job.name, exactly=True)
    with store.kept_up(local / job.name, job.name):
        work(local, run=job.name, restart=restart)
    if not job.collects:
        shutil.rmtree(local / job.name)
    return job


def _brought(job: Job, store: Store, local: Path) -> bool:
    """Bring the log of a job; False if it is not done yet. One that is recorded anew replaces that of before,
    which may have the same sizes."""
    if not store.has((job.run_folder(Path()) / "DONE").as_posix()):
        return False
    log = Store(f"{store.address}/{job.name}")
    again = of_another_log(log, local / job.name)
    log.bring("", local / job.name, without=(CHECKPOINTS, "policies"), anew=again)
    return job.done(local)


def _await_needed(job: Job, jobs: dict[str, Job], out: Path) -> None:
    """Wait until the folder has the runs that it needs."""
    try:
        _wait_while(
            job,
            lambda: [name for name in job.needs if not jobs[name].done(out)],
            lambda name: (out / name / FAILED).exists(),
        )
    except RunError:
        note_failure(job, out, f"{', '.join(job.needs)} failed")
        raise


def _wait_while(job: Job, missing: Callable[[], list[str]], failed: Callable[[str], bool]) -> None:
    """Wait while runs that it needs are missing; RunError if one of them failed."""
    told = False
    with StopRequest() as stop:
        while waiting := missing():
            if lost := [name for name in waiting if failed(name)]:
                raise RunError(f"{job.name}: {', '.join(lost)} failed; run that first")
            if not told:
                say(f"{job.name} waits for {', '.join(waiting)}")
                told = True
            time.sleep(LOOK_SECONDS if not stop.received else 0)
            stop.leave(f"the wait for {waiting[0]}")
