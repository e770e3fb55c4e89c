"""What a study checks before its runs start: runs with other settings, logs that are missing."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from optimist.data.disk import manifest
from optimist.errors import DataError, RunError, UsageError, some_of
from optimist.studies.job import Job, Standing
from optimist.studies.store import Store, is_address
from optimist.training.evaluation import other_options
from optimist.training.storage.configuration import other_code, own_code, read_versions

log = logging.getLogger("optimist")
NAMED = 3  # runs that an error names; it counts the others


def check_place(out: Path) -> None:
    """Raise RunError for a folder that holds a log or a run: their files would be mixed with the study's."""
    for what, name in (("a dataset", manifest.NAME), ("a run", "config.toml")):
        if (out / name).exists():
            raise RunError(
                f"{out} holds {what} ({name}), so a study cannot be written there: choose another --out"
            )


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


def by_other_code(jobs: list[Job], out: Path) -> dict[str, list[str]]:
    """The jobs whose runs were made by another version of the user's own file, by name, with the file."""
    found = {job.name: other_code(own_code(job.wanted), read_versions(job.run_folder(out))) for job in jobs}
    return {name: files for name, files in found.items() if files}


def warn_of_other_code(jobs: list[Job], out: Path) -> None:
    """Name the runs that an edited file of the user would not make again: they count as they are."""
    found = by_other_code(jobs, out)
    if found:
        files = ", ".join(dict.fromkeys(file for files in found.values() for file in files))
        log.warning(
            "the %s changed since %d of %d runs were made: %s. They count as they are; to make them again, "
            "remove their folders or choose another --out",
            *(files, len(found), len(jobs), some_of(list(found), NAMED)),
        )


def warn_of_other_options(jobs: list[Job], out: Path) -> None:
    """Name the logs that were played with other options than their runs are evaluated with. The runs say so
    too, but in their log.txt."""
    lines = {}
    for job in jobs:
        if not job.plays and job.data not in job.needs and (job.data_folder(out) / manifest.NAME).exists():
            played = str(manifest.read(job.data_folder(out)).provenance.get("environment", ""))
            lines[other_options(job.environment, played)] = True
    for line in filter(None, lines):
        log.warning("%s", line)


def check_settings(jobs: list[Job], out: Path, now: Mapping[str, Standing]) -> None:
    """Raise RunError if the folder holds outdated runs: the report would count them as this study's."""
    found = outdated(jobs, now)
    if found:
        named = some_of([f"{name} has {'; '.join(changed)}" for name, changed in found.items()], NAMED)
        raise RunError(
            f"{len(found)} of {len(jobs)} runs in {out} were made with other settings: {named}. Choose "
            "another --out, or start these again with --restart"
        )


def with_logs_of(other: Path, theirs: list[Job], jobs: list[Job]) -> list[Job]:
    """The same runs on the logs of another study, which must have the same settings."""
    there = {job.name: job for job in theirs if job.collects and job.done(other)}
    collecting = [job for job in jobs if job.collects]
    if not collecting:
        raise UsageError("this study collects no logs, so it cannot use those of another: leave out --logs")
    for wanted in collecting:
        if wanted.name not in there or there[wanted.name].unresolved != wanted.unresolved:
            raise UsageError(
                f"{other} has no finished {wanted.name} with these settings: leave out --logs to collect it"
            )
    return [_moved(job, other) if job.data in there else job for job in jobs if job.name not in there]


def _moved(job: Job, other: Path) -> Job:
    """The same job on another study's log, without the need to collect it."""
    log = str((other / str(job.data)).resolve())  # workers may have another working directory
    return replace(job, data=log, needs=tuple(name for name in job.needs if name != job.data))


def check_logs(jobs: list[Job], out: Path) -> None:
    """Raise DataError before any run starts if a log that the study names does not exist."""
    for address in {job.data for job in jobs if is_address(job.data or "")}:
        if not Store(str(address)).has(manifest.NAME):
            raise DataError(f"{address} has no {manifest.NAME}: correct `data` in the study's file")
    for job in jobs:
        if job.plays or job.data in job.needs or is_address(str(job.data)):
            continue
        if not job.data_folder(out).exists():
            raise DataError(
                f"{job.data_folder(out)}, the log of {job.environment}, does not exist: correct `data` in "
                "the study's file, or collect it first (collect)"
            )
