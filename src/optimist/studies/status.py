"""The progress of a study, run by run, read from the run folders alone."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from optimist.data.disk.files import make_folder, remove, write_whole
from optimist.data.disk.records import json_value
from optimist.errors import RunError
from optimist.studies.job import Job
from optimist.training.values import fits, in_words

FILE = "study.json"  # in the study's folder: its title, settings and jobs
FAILED = "FAILED"  # in a job's folder: the error of its last attempt


@dataclass(frozen=True)
class StudyRecord:
    """The content of study.json; files of older versions lack some fields."""

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
    rate: float | None  # steps per second since it was last started
    seconds_left: float | None
    complaint: str = ""  # why it failed


def write_jobs(
    out: Path,
    title: str,
    jobs: list[Job],
    *,
    read_at: Mapping[str, int] | None = None,
    figures: Sequence[str] = (),
    command: str = "",
    normaliser: str = "",
    selects: bool = True,
) -> None:
    make_folder(out)
    record: dict[str, Any] = {"title": title, "command": command, "read_at": dict(read_at or {})}
    record |= {"figures": list(figures), "normaliser": normaliser, "selects": selects}
    record |= {"jobs": [json.loads(job.written_down()) for job in jobs]}
    write_whole(out / FILE, json.dumps(record, indent=1).encode())


def read_record(out: Path) -> StudyRecord:
    if not (out / FILE).exists():
        raise RunError(f"{out} is not a study's folder: it has no {FILE}; name the --out of a study")
    try:
        record = json_value((out / FILE).read_text(encoding="utf-8"))
        record["jobs"] = [Job.from_json(json.dumps(job)) for job in record["jobs"]]
        record["figures"] = tuple(record.get("figures", ()))
        return _checked(StudyRecord(**record))
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise RunError(
            f"{out / FILE} is damaged ({problem}): the command that runs the study rewrites it"
        ) from problem


def _checked(record: StudyRecord) -> StudyRecord:
    for each in fields(record):
        if not fits(getattr(record, each.name), each.type):
            raise ValueError(f"{each.name} is not {in_words(each.type)}")
    if missing := {name for job in record.jobs for name in job.needs} - {job.name for job in record.jobs}:
        raise ValueError(f"no run {', '.join(missing)}")
    return record


def read_jobs(out: Path) -> tuple[str, list[Job]]:
    record = read_record(out)
    return record.title, record.jobs


def note_failure(job: Job, out: Path, complaint: str) -> None:
    """Keep the error of a job for later reports; an empty complaint deletes an earlier one."""
    file = out / job.name / FAILED
    if complaint:
        make_folder(file.parent)
        write_whole(file, complaint.encode())
    else:
        remove(file)


def job_status(job: Job, out: Path) -> JobStatus:
    """The state of a run; the rate is its steps over the time from config.toml to the newest metrics."""
    folder, steps = job.run_folder(out), job.steps()
    metrics, failed = folder / "metrics.jsonl", out / job.name / FAILED
    if job.done(out):
        return JobStatus(job.name, "done", steps, steps, None, None)
    changed = "; ".join(job.changes(out))
    if changed:
        return JobStatus(job.name, "by other settings", 0, steps, None, None, changed)
    step = steps_done(job, out)
    if failed.exists():
        return JobStatus(
            job.name, "failed", step, steps, None, None, failed.read_text("utf-8", errors="replace")
        )
    if not metrics.exists():
        return JobStatus(job.name, "waiting", 0, steps, None, None)
    running = (folder / ".holder").exists() and time.time() - metrics.stat().st_mtime < 120
    begun = (folder / "config.toml").stat().st_mtime
    rate = step / max(metrics.stat().st_mtime - begun, 1e-9) if running and step else None
    left = (steps - step) / rate if rate else None
    return JobStatus(job.name, "running" if running else "stopped", step, steps, rate, left)


def steps_done(job: Job, out: Path) -> int:
    """The step of the last complete row of its metrics; only the end of the file is read."""
    metrics = job.run_folder(out) / "metrics.jsonl"
    if not metrics.exists():
        return 0
    with metrics.open("rb") as stream:
        stream.seek(max(0, metrics.stat().st_size - 4096))
        whole = stream.read().split(b"\n")[:-1]
    try:
        return int(json_value(whole[-1])["step"])
    except (IndexError, ValueError, TypeError, KeyError, OverflowError):
        return 0
