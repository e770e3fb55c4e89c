"""The list of a study's runs, and their progress, read from the run folders alone."""

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from optimist.data.disk.files import make_folder, remove, write_whole
from optimist.data.disk.records import json_value, record
from optimist.errors import RunError, some_of
from optimist.studies.job import Job, Standing
from optimist.training.storage.rows import METRICS

FILE = "study.json"  # in the study's folder: its title, settings and jobs
FAILED = "FAILED"  # in a job's folder: the error of its last attempt
NAMED = 3  # runs that an error names; it counts the others
ACTIVE_SECONDS = 120  # a run that wrote no metrics for longer has stopped


@dataclass(frozen=True)
class StudyRecord:
    """The content of study.json."""

    title: str
    jobs: list[Job]
    read_at: dict[str, int] = field(default_factory=dict)  # as the study's file has it
    figures: tuple[str, ...] = ()  # those that the study's file names
    command: str = ""  # the command that runs the study
    normaliser: str = ""  # of the report, unless --normaliser names another
    selects: bool = True  # whether the report has policies that were chosen by the logs


@dataclass(frozen=True)
class JobStatus:
    """The progress of one run."""

    name: str
    state: str  # done, running, failed, stopped, waiting, or by other settings
    step: int
    steps: int
    rate: float | None = None  # steps per second since it was last started
    seconds_left: float | None = None
    complaint: str = ""  # why it failed


def write_jobs(out: Path, title: str, jobs: list[Job], **more: Any) -> None:
    """Write study.json, with every setting of its jobs as it is resolved now; `more` is what else it has."""
    make_folder(out)
    study = asdict(StudyRecord(title, [], **more))
    content = {**study, "jobs": [job.written_down() for job in jobs]}
    write_whole(out / FILE, json.dumps(content, indent=1).encode())


def read_record(out: Path) -> StudyRecord:
    if not (out / FILE).exists():
        raise RunError(f"{out} is not a study's folder: it has no {FILE}; name the --out of a study")
    try:
        study = record(StudyRecord, json_value((out / FILE).read_bytes()))
        for job in study.jobs:
            job.check_record()
        names = {job.name for job in study.jobs}
        if missing := {name for job in study.jobs for name in job.needs} - names:
            raise ValueError(f"no run {', '.join(missing)}")
    except ValueError as problem:
        raise RunError(
            f"{out / FILE} is damaged ({problem}): the command that runs the study rewrites it"
        ) from problem
    return study


def standings(jobs: Iterable[Job], out: Path) -> dict[str, Standing]:
    """What the folder of each job holds, by the job's name."""
    return {job.name: job.standing(out) for job in jobs}


def outdated(jobs: list[Job], now: Mapping[str, Standing]) -> dict[str, list[str]]:
    """The jobs whose folders hold another run, by name, with the reasons: the run has other settings, or it
    learned from another log, because its own log is not recorded yet."""
    reasons = {}
    for job in jobs:
        logs = [
            f"{name}: it learned from another log, this one is not recorded yet"
            for name in job.needs
            if name in now and not now[name].done
        ]
        reasons[job.name] = now[job.name].changes or (logs if now[job.name].begun else [])
    return {name: why for name, why in reasons.items() if why}


def restarted(jobs: list[Job], now: Mapping[str, Standing]) -> list[Job]:
    """The same jobs; those with an outdated run in their folder start again."""
    anew = outdated(jobs, now)
    return [replace(job, restart=True) if job.name in anew else job for job in jobs]


def check_settings(jobs: list[Job], out: Path, now: Mapping[str, Standing]) -> None:
    """Raise RunError if the folder holds outdated runs: the report would count them as this study's."""
    if runs := outdated(jobs, now):
        named = some_of([f"{name} has {'; '.join(changed)}" for name, changed in runs.items()], NAMED)
        raise RunError(
            f"{len(runs)} of {len(jobs)} runs in {out} were made with other settings: {named}. Choose "
            "another --out, or start these again with --restart"
        )


def waves(jobs: Iterable[Job], known: Collection[str] = ()) -> Iterator[list[Job]]:
    """The jobs, each after those that it needs: first those that need only known ones, then those that need
    only these too, and so on. A job that needs an unknown one is left out."""
    left, known = list(jobs), set(known)
    while wave := [job for job in left if set(job.needs) <= known]:
        yield wave
        left = [job for job in left if not set(job.needs) <= known]
        known |= {job.name for job in wave}


def note_failure(job: Job, out: Path, complaint: str) -> None:
    """Keep the error of a job for later reports; an empty complaint deletes an earlier one."""
    file = out / job.name / FAILED
    if complaint:
        make_folder(file.parent)
        write_whole(file, complaint.encode())
    else:
        remove(file)


def failure_of(job: Job, out: Path) -> str:
    """The error of its last attempt; "" if there is none."""
    file = out / job.name / FAILED
    return file.read_text("utf-8", errors="replace") if file.exists() else ""


def job_status(job: Job, out: Path, standing: Standing | None = None) -> JobStatus:
    """The state of a run; the rate is its steps over the time from config.toml to the newest metrics."""
    folder, steps = job.run_folder(out), job.steps()
    standing = standing or job.standing(out)
    if standing.done:
        return JobStatus(job.name, "done", steps, steps)
    if standing.changes:
        return JobStatus(job.name, "by other settings", 0, steps, complaint="; ".join(standing.changes))
    step = steps_done(job, out)
    if complaint := failure_of(job, out):
        return JobStatus(job.name, "failed", step, steps, complaint=complaint)
    metrics = folder / METRICS
    if not metrics.exists():
        return JobStatus(job.name, "waiting", 0, steps)
    written = metrics.stat().st_mtime
    if not (folder / ".holder").exists() or time.time() - written >= ACTIVE_SECONDS:
        return JobStatus(job.name, "stopped", step, steps)
    begun = (folder / "config.toml").stat().st_mtime
    rate = step / max(written - begun, 1e-9) if step else None
    return JobStatus(job.name, "running", step, steps, rate, (steps - step) / rate if rate else None)


def steps_done(job: Job, out: Path) -> int:
    """The step of the last complete row of its metrics; only the end of the file is read."""
    metrics = job.run_folder(out) / METRICS
    if not metrics.exists():
        return 0
    with metrics.open("rb") as stream:
        stream.seek(max(0, metrics.stat().st_size - 4096))
        whole = stream.read().split(b"\n")[:-1]
    try:
        return int(json_value(whole[-1])["step"])
    except (IndexError, ValueError, TypeError, KeyError, OverflowError):
        return 0
