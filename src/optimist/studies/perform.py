"""Runs a study from its plan to its page: checks, runs, the film and the report."""

from collections.abc import Callable
from pathlib import Path

from optimist.data.disk.files import make_folder, remove, write_whole
from optimist.errors import RunError, command_line
from optimist.studies.choosing import choose_policies
from optimist.studies.engines.engine import Pool, perform_all
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
from optimist.studies.status import write_jobs
from optimist.training.play.video import gif_bytes
from optimist.training.run import load_run

FRAMES = 300  # length of the film


def perform_study(
    study: Study,
    jobs: list[Job],
    out: Path,
    pool: Callable[[], Pool],
    *,
    command: str,
    restart: bool = False,
) -> tuple[list[Path], list[str]]:
    """Run the jobs of a study and write its report; the same call continues after a stop.

    Return the written files, the page first, and the warnings for the reader."""
    jobs = _checked(study, jobs, out, restart)
    workers = pool()
    try:
        _write(study, jobs, out, command)
    except BaseException:
        workers.close()  # as `perform_all` does from here on
        raise
    failed = perform_all(jobs, out, workers)
    if failed:
        raise RunError(
            f"{len(failed)} of {len(jobs)} runs failed; run the same command to try them again, "
            f"or {command_line('study', 'report', out)} to see the others"
        )
    check_settings(jobs, out)  # a log may have grown meanwhile
    _film(study, jobs, out)
    if study.select is not None and study.selects:
        choose_policies(jobs, out, study.select)
    return write_findings(out)


def prepare(study: Study, jobs: list[Job], out: Path, *, command: str, restart: bool = False) -> None:
    """Check a study and write its list of runs, for workers that are started one by one."""
    _write(study, _checked(study, jobs, out, restart), out, command)


def _checked(study: Study, jobs: list[Job], out: Path, restart: bool) -> list[Job]:
    check_place(out)
    if study.normaliser:
        by_environment(normaliser(study.normaliser), jobs)  # raises for a game without scores
    check_logs(jobs, out)
    if restart:
        jobs = restarted(jobs, out)
    else:
        check_settings(jobs, out)
    warn_of_other_code([job for job in jobs if not job.restart], out)
    warn_of_other_options(jobs, out)
    return jobs


def _write(study: Study, jobs: list[Job], out: Path, command: str) -> None:
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


def _film(study: Study, jobs: list[Job], out: Path) -> None:
    """Film the agent that the study names in the first environment. A film of an earlier call may show
    another agent, or other settings, so it never stays."""
    remove(out / FILM)
    runs = [job.run_folder(out) for job in jobs if study.film and job.label == study.film]
    if runs:
        make_folder((out / FILM).parent)
        write_whole(out / FILM, gif_bytes(load_run(runs[0]).pictures(frames=FRAMES)))
