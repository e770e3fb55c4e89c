"""`optimist study run`, `status`, `report`, `work`, `push` and `pull`."""

import argparse
import logging
from pathlib import Path
from typing import Any

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
    parser.add_argument(
        "folders", metavar="FOLDER", nargs="+", type=Path, help="the folder of a study, or the folders of two"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PAGE.html",
        help="the page [of one study: FOLDER/report.html, with tables and figures in FOLDER/results; of two: "
        "compared.html]",
    )
    parser.add_argument(
        "--normaliser",
        metavar="NAME|CSV",
        help="what 0 and 100%% are, as in optimist scores [the study's own player and random play]",
    )


def report(options: argparse.Namespace) -> None:
    """Write the report of a study, finished or not, or of two studies side by side."""
    if len(options.folders) > 2:
        raise UsageError(f"{len(options.folders)} folders: name one study, or two to compare")
    if options.out and options.out.is_dir():
        raise UsageError(f"{options.out} is a folder: name a file, as in --out {options.out / 'page.html'}")
    from optimist.studies.scores.normalisation import normaliser

    by = normaliser(options.normaliser) if options.normaliser else None
    if len(options.folders) == 1 and options.out:
        from optimist.studies.report.study_report import write_page

        warned = write_page(options.folders[0], options.out, by)
        print(f"wrote {options.out}")
    elif len(options.folders) == 1:
        warned = _report_in(options.folders[0], by)
    else:
        from optimist.studies.report.side_by_side import write_side_by_side

        page = options.out or Path("compared.html")
        first, second = options.folders
        warned = write_side_by_side(page, first, second, by)
        print(f"wrote {page}")
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
