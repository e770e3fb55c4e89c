"""How far a study is: one line per run, read from the run folders alone."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

from optimist.data.files import make_folder, write_whole
from optimist.errors import RunError
from optimist.studies.job import Job

FILE = "study.json"  # in the study's folder: which study it is, and its jobs


@dataclass(frozen=True)
class Standing:
    """One run's."""

    name: str
    state: str  # done, running, stopped or waiting
    step: int
    steps: int
    rate: float | None  # steps per second since it was last begun
    seconds_left: float | None


def write_jobs(out: Path, title: str, jobs: list[Job]) -> None:
    make_folder(out)
    text = json.dumps({"title": title, "jobs": [json.loads(job.as_json()) for job in jobs]}, indent=1)
    write_whole(out / FILE, text.encode())


def read_jobs(out: Path) -> tuple[str, list[Job]]:
    if not (out / FILE).exists():
        raise RunError(f"{out} is not a study's folder: it has no {FILE}")
    record = json.loads((out / FILE).read_text())
    return record["title"], [Job.from_json(json.dumps(job)) for job in record["jobs"]]


def standing(job: Job, out: Path) -> Standing:
    """From the newest row of its metrics, and how long ago the one of its first look was."""
    folder, steps = job.run_folder(out), job.steps()
    metrics = folder / "metrics.jsonl"
    if job.done(out):
        return Standing(job.name, "done", steps, steps, None, None)
    if not metrics.exists():
        return Standing(job.name, "waiting", 0, steps, None, None)
    step = _last_step(metrics)
    running = (folder / ".holder").exists() and time.time() - metrics.stat().st_mtime < 120
    begun = (folder / "config.toml").stat().st_mtime
    rate = step / max(metrics.stat().st_mtime - begun, 1e-9) if running and step else None
    left = (steps - step) / rate if rate else None
    return Standing(job.name, "running" if running else "stopped", step, steps, rate, left)


def _last_step(metrics: Path) -> int:
    """The step of the last whole row; the file may be long and still growing."""
    with metrics.open("rb") as stream:
        stream.seek(max(0, metrics.stat().st_size - 4096))
        whole = stream.read().split(b"\n")[:-1]
    try:
        return int(json.loads(whole[-1])["step"])
    except (IndexError, ValueError, KeyError):
        return 0
