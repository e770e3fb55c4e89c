"""Measures what each run takes, keeps that in its folder, and estimates from it what other runs will take."""

import json
import math
import os
import resource
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from optimist.data.disk.files import write_whole
from optimist.data.disk.records import json_value
from optimist.errors import OptimistError
from optimist.studies.job import Job
from optimist.studies.status import FILE as STUDY
from optimist.studies.status import read_jobs, steps_done
from optimist.training.memory import RUNS_PER_GPU, RUNS_PER_MACHINE
from optimist.training.values import fits

FILE = "took.json"  # in a job's folder


@dataclass(frozen=True)
class Took:
    """What the steps of a run took so far, over all its attempts."""

    steps: int = 0
    seconds: float = 0.0  # with compiling and evaluating
    device_seconds: float = 0.0  # the same, divided by the runs that shared the device
    memory: int = 0  # bytes; the largest of its process, which may have had other runs before
    device: str = ""


@dataclass(frozen=True)
class Estimate:
    """What a job will take, by runs that were measured; None is unknown."""

    device_seconds: float | None = None
    memory: int | None = None
    disk: int | None = None
    device: str = ""


@contextmanager
def measured(job: Job, out: Path) -> Iterator[None]:
    """Measure what is done inside and keep it in the job's folder, also if it is interrupted."""
    before, begun = 0 if job.restart else steps_done(job, out), time.monotonic()
    try:
        yield
    finally:
        seconds, steps = time.monotonic() - begun, steps_done(job, out) - before
        if steps > 0:
            device = _device(job.run_folder(out))
            sharing = max(1, int(os.environ.get(RUNS_PER_MACHINE if _is_cpu(device) else RUNS_PER_GPU) or 1))
            earlier = took(out / job.name) if before else Took()
            found = Took(
                steps=earlier.steps + steps,
                seconds=earlier.seconds + seconds,
                device_seconds=earlier.device_seconds + seconds / sharing,
                memory=max(earlier.memory, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss),
                device=device,
            )
            write_whole(out / job.name / FILE, json.dumps(asdict(found)).encode())


def _device(run: Path) -> str:
    try:
        return str(json_value((run / "versions.json").read_text(encoding="utf-8")).get("device", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def _is_cpu(device: str) -> bool:
    return device.lower() in ("", "cpu")


def took(folder: Path) -> Took:
    """What the run in this folder took; nothing if it was not measured."""
    try:
        found = Took(**json_value((folder / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Took()
    return (
        found if all(_is_measured(getattr(found, each.name), each.type) for each in fields(found)) else Took()
    )


def _is_measured(value: Any, kind: Any) -> bool:
    return fits(value, kind) and (isinstance(value, str) or 0 <= value < math.inf)


def estimates(jobs: Iterable[Job], studies: Iterable[Path]) -> list[Estimate]:
    """What each job will take, by the measured runs of these studies: those with the same settings apart from
    the number of steps, in the same game if there are any, or else in one of the same family."""
    known: dict[Any, list[Estimate]] = {}
    for out in studies:
        for job in _jobs(out):
            found = took(out / job.name)
            if found.steps and found.device_seconds:
                each = _per_step(found, out / job.name)
                for kind in _kinds(job):
                    known.setdefault(kind, []).append(each)
    return [_estimate(job, known) for job in jobs]


def _jobs(out: Path) -> list[Job]:
    try:
        return read_jobs(out)[1] if (out / STUDY).exists() else []
    except OptimistError:  # a damaged study has no rates; its own command reports the damage
        return []


def _per_step(found: Took, folder: Path) -> Estimate:
    return Estimate(found.device_seconds / found.steps, found.memory, _size(folder), found.device)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _kinds(job: Job) -> list[Any]:
    """The settings that runs of equal speed share: with the same game, or else with the same family."""
    settings = {name: value for name, value in job.settings.items() if name != "steps"}
    common = json.dumps([job.agent, job.preset, job.recipe, job.options, settings, len(job.seeds), job.plays])
    return [(job.environment, common), (job.environment.partition("/")[0], common)]


def _estimate(job: Job, known: dict[Any, list[Estimate]]) -> Estimate:
    alike = next((known[kind] for kind in _kinds(job) if kind in known), [])
    if not alike:
        return Estimate()
    rates = [each.device_seconds for each in alike if each.device_seconds]
    return Estimate(
        device_seconds=job.steps() * sum(rates) / len(rates),
        memory=max(each.memory or 0 for each in alike),
        disk=max(each.disk or 0 for each in alike),
        device=", ".join(sorted({each.device for each in alike if each.device})),
    )
