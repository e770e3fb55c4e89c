"""`optimist study run`, `status`, `report`, `work`, `push` and `pull`."""

import argparse
import logging
from pathlib import Path
from typing import Any

from optimist import plugins
from optimist.cli.options import Parser, command, group
from optimist.cli.study_run import print_warnings, run, run_options
from optimist.cli.work import pull, pull_options, push, push_options, work, work_options
from optimist.errors import StorageError, UsageError

log = logging.getLogger("optimist")


def add(commands: Any) -> None:
    actions = group(
        commands,
        "study",
        help="run the paper's experiments or your own, and report them",
        description="Run the paper's experiments or your own: grids of runs with one report.",
    )
    command(actions, "run", run, run_options)
    command(actions, "status", status, _status_options)
    command(actions, "report", report, _report_options)
    command(actions, "work", work, work_options)
    command(actions, "push", push, push_options)
    command(actions, "pull", pull, pull_options)


def _status_options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("out", metavar="FOLDER", type=Path, help="the study's folder")


def status(options: argparse.Namespace) -> None:
    """Show the progress of a study, run by run."""
    from optimist.cli.tables import status_table
    from optimist.studies.sheet import print_sheet
    from optimist.studies.status import job_status, read_record

    study = read_record(options.out)
    print_sheet(status_table(study.title, [job_status(job, options.out) for job in study.jobs]))


def _report_options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the folder of a study")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PAGE.html",
        help="the page alone [FOLDER/report.html, with tables and figures in FOLDER/results]",
    )
    parser.add_argument(
        "--normaliser",
        metavar="NAME|CSV",
        help="what 0 and 100%% are, as in optimist scores [the study's own player and random play]",
    )
    parser.add_argument(
        "--allow", action="append", default=[], metavar="module", help="a module with figures of the study"
    )


def report(options: argparse.Namespace) -> None:
    """Write the report of a study, finished or not."""
    if options.out and options.out.is_dir():
        raise UsageError(f"{options.out} is a folder: name a file, as in --out {options.out / 'page.html'}")
    from optimist.studies.scores.normalisation import normaliser

    plugins.allow(options.allow)
    by = normaliser(options.normaliser) if options.normaliser else None
    if options.out:
        from optimist.studies.report.study_report import write_page

        warned = write_page(options.folder, options.out, by)
        print(f"wrote {options.out}")
    else:
        warned = _report_in(options.folder, by)
    print_warnings(warned)


def _report_in(folder: Path, by: Any) -> list[str]:
    """Write the report of a study into its folder; return the warnings."""
    from optimist.studies.report.study_report import write_findings

    try:
        written, warned = write_findings(folder, by)
    except StorageError as problem:
        raise StorageError(f"{problem}; to write the page alone elsewhere: --out page.html") from problem
    print(f"wrote {written[0]}, with its tables and figures in {folder / 'results'}")
    return warned
