"""Runs a study from its plan to its page: checks, runs, the film, the choice of policies and the report."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from optimist.data.disk import manifest
from optimist.data.disk.files import make_folder, remove, write_whole
from optimist.errors import DataError, RunError, UsageError, command_line, some_of
from optimist.studies.engines import Engine
from optimist.studies.job import Job
from optimist.studies.plan import Study
from optimist.studies.results.findings import by_environment
from optimist.studies.scores.normalisation import normaliser
from optimist.studies.status import NAMED, check_settings, restarted, standings, waves, write_jobs
from optimist.studies.store import Store, is_address
from optimist.training.storage.checkpoint import kept_steps
from optimist.training.storage.configuration import fingerprint, other_code, own_code, read_versions
from optimist.training.storage.run_folder import read_config
from optimist.training.storage.selected import is_of_all, read_selection
from optimist.training.terminal import say

FRAMES = 300  # length of the film
log = logging.getLogger("optimist")


def perform_study(
    study: Study,
    jobs: list[Job],
    out: Path,
    engine: Engine,
    options: Any,
    *,
    command: str,
    restart: bool = False,
) -> tuple[list[Path], list[str]]:
    """Run the jobs of a study with an engine and write its report; the same call continues after a stop.

    Return the written files, the page first, and the warnings for the reader."""
    if bring := getattr(engine, "bring", None):
        bring(jobs, out, options)
    left = prepare(study, jobs, out, command=command, restart=restart)
    if len(left) < len(jobs):
        say(f"{len(jobs) - len(left)} of {len(jobs)} runs are done already")
    if left:
        engine.run(left, out, options)
    now = standings(jobs, out)
    failed = [each for each in now.values() if not each.done and not each.changes]
    if failed:
        raise RunError(
            f"{len(failed)} of {len(jobs)} runs failed; run the same command to try them again, "
            f"or {command_line('study', 'report', out)} to see the others"
        )
    check_settings(jobs, out, now)  # a log may have grown meanwhile
    film(study, jobs, out)
    if study.select is not None and study.selects:
        choose_policies(jobs, out, study.select)
    from optimist.studies.report.study_report import write_findings  # matplotlib, not for --prepare

    return write_findings(out, now=now)


def prepare(study: Study, jobs: list[Job], out: Path, *, command: str, restart: bool = False) -> list[Job]:
    """Check a study and write its list of runs; return those that are left to do,
    each after those that it needs."""
    for what, name in (("a dataset", manifest.NAME), ("a run", "config.toml")):
        if (out / name).exists():  # their files would be mixed with the study's
            raise RunError(
                f"{out} holds {what} ({name}), so a study cannot be written there: choose another --out"
            )
    if study.normaliser:
        by_environment(normaliser(study.normaliser), jobs)  # raises for a game without scores
    check_logs(jobs, out)
    now = standings(jobs, out)
    if restart:
        jobs = restarted(jobs, now)
    else:
        check_settings(jobs, out, now)
    warn_of_other_code([job for job in jobs if not job.restart], out)
    warn_of_other_options(jobs, out)
    write_jobs(
        out,
        study.title,
        jobs,
        read_at=study.read_at,
        figures=study.figures,
        command=command,
        normaliser=study.normaliser,
        selects=study.selects,
    )
    # A run that begins anew may be done: its log is still the one that another will replace.
    left = [job for job in jobs if job.restart or not now[job.name].done]
    there = {job.name for job in jobs} - {job.name for job in left}
    return [job for wave in waves(left, there) for job in wave]


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


def by_other_code(jobs: list[Job], out: Path) -> dict[str, list[str]]:
    """The jobs whose runs were made by another version of the user's own file, by name, with the file."""
    files = {job.name: other_code(own_code(job.wanted), read_versions(job.run_folder(out))) for job in jobs}
    return {name: changed for name, changed in files.items() if changed}


def warn_of_other_code(jobs: list[Job], out: Path) -> None:
    """Name the runs that an edited file of the user would not make again: they count as they are."""
    if runs := by_other_code(jobs, out):
        files = ", ".join(dict.fromkeys(file for files in runs.values() for file in files))
        log.warning(
            "the %s changed since %d of %d runs were made: %s. They count as they are; to make them again, "
            "remove their folders or choose another --out",
            *(files, len(runs), len(jobs), some_of(list(runs), NAMED)),
        )


def warn_of_other_options(jobs: list[Job], out: Path) -> None:
    """Name the logs that were played with other options than their runs are evaluated with. The runs say so
    too, but in their log.txt."""
    from optimist.training.evaluation import other_options  # heavy, and only workers need the rest of it

    lines = {}
    for job in jobs:
        if not job.plays and job.data not in job.needs and (job.data_folder(out) / manifest.NAME).exists():
            played = str(manifest.read(job.data_folder(out)).provenance.get("environment", ""))
            lines[other_options(job.environment, played)] = True
    for line in filter(None, lines):
        log.warning("%s", line)


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

    def moved(job: Job) -> Job:
        log = str((other / str(job.data)).resolve())  # workers may have another working directory
        return replace(job, data=log, needs=tuple(name for name in job.needs if name != job.data))

    return [moved(job) if job.data in there else job for job in jobs if job.name not in there]


def film(study: Study, jobs: list[Job], out: Path) -> None:
    """Film the agent that the study names in the first environment. A film of an earlier call may show
    another agent, or other settings, so it never stays."""
    from optimist.studies.report.study_report import FILM

    remove(out / FILM)
    runs = [job.run_folder(out) for job in jobs if study.film and job.label == study.film]
    if runs:
        from optimist.training.play.video import gif_bytes
        from optimist.training.run import load_run

        make_folder((out / FILM).parent)
        write_whole(out / FILM, gif_bytes(load_run(runs[0]).pictures(frames=FRAMES)))


def choose_policies(jobs: list[Job], out: Path, settings: dict[str, Any]) -> None:
    """Choose among the kept policies of all agents that learned from the same part of a log, by this part
    alone. Runs that were already selected with the same settings are left as they are."""
    from optimist.choosing.estimators import USUAL
    from optimist.choosing.selecting import UPDATES, select_policy

    groups: dict[tuple[str, str, str], list[Job]] = {}
    for job in jobs:
        if job.label and not job.plays:
            groups.setdefault((job.environment, job.part, str(job.data)), []).append(job)
    for first, *others in groups.values():
        folders = [job.run_folder(out) for job in (first, *others)]
        runs = {folder: fingerprint(read_config(folder)) for folder in folders}
        # The notes of a selection compare the policies with each other, so it also depends on the others.
        asked = {"rule": USUAL, "updates": UPDATES, "steps": None, "among": sorted(runs.values()), **settings}

        def is_selected(folder: Path, made_by: str, asked: dict[str, Any] = asked) -> bool:
            chosen = read_selection(folder)
            return (
                chosen is not None
                and is_of_all(chosen, kept_steps(folder))
                and all(
                    chosen.get(name) == value for name, value in {**asked, "fingerprint": made_by}.items()
                )
            )

        if not all(is_selected(*run) for run in runs.items()):
            log.warning("selecting among the policies of %s", first.environment)
            select_policy(folders, data=first.data_folder(out), part=first.part_of, **settings).write()
