"""Runs a study from its plan to its page: checks, runs, the film and the report."""

from pathlib import Path
from typing import Any

from optimist.data.disk.files import make_folder, remove, write_whole
from optimist.errors import RunError, command_line
from optimist.studies.engines import Engine
from optimist.studies.engines._schedule import waves
from optimist.studies.job import Job
from optimist.studies.plan import Study
from optimist.studies.preparation import (
    check_logs,
    check_place,
    check_settings,
    restarted,
    warn_of_other_code,
    warn_of_other_options,
)
from optimist.studies.report.study_report import FILM, write_findings
from optimist.studies.results.findings import by_environment
from optimist.studies.scores.normalisation import normaliser
from optimist.studies.status import standings, write_jobs
from optimist.training.terminal import say

FRAMES = 300  # length of the film


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
    _check_ends(jobs, out)
    _film(study, jobs, out)
    if study.select is not None and study.selects:
        from optimist.studies.choosing import choose_policies

        choose_policies(jobs, out, study.select)
    return write_findings(out)


def prepare(study: Study, jobs: list[Job], out: Path, *, command: str, restart: bool = False) -> list[Job]:
    """Check a study and write its list of runs; return those that are left to do,
    each after those that it needs."""
    check_place(out)
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


def _check_ends(jobs: list[Job], out: Path) -> None:
    """Raise RunError for runs that failed, and for those whose log has grown meanwhile."""
    now = standings(jobs, out)
    failed = [each for each in now.values() if not each.done and not each.changes]
    if failed:
        raise RunError(
            f"{len(failed)} of {len(jobs)} runs failed; run the same command to try them again, "
            f"or {command_line('study', 'report', out)} to see the others"
        )
    check_settings(jobs, out, now)


def _film(study: Study, jobs: list[Job], out: Path) -> None:
    """Film the agent that the study names in the first environment. A film of an earlier call may show
    another agent, or other settings, so it never stays."""
    remove(out / FILM)
    runs = [job.run_folder(out) for job in jobs if study.film and job.label == study.film]
    if runs:
        from optimist.training.play.video import gif_bytes
        from optimist.training.run import load_run

        make_folder((out / FILM).parent)
        write_whole(out / FILM, gif_bytes(load_run(runs[0]).pictures(frames=FRAMES)))
