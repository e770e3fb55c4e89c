"""`optimist study run`, `status`, `report`, `work`, `push` and `pull`."""

import argparse
import logging
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from optimist.cli import index
from optimist.cli.engines import add_engines, check_engine, pool_of
from optimist.cli.options import Parser, arguments_in, command, group, number, whole_number
from optimist.cli.settings import add_settings, given
from optimist.cli.work import pull, pull_options, push, push_options, work, work_options
from optimist.errors import StorageError, UsageError, did_you_mean

CATALOG = Path(__file__).parents[1] / "studies" / "catalog"
PROPOSITION = "proposition-1"  # this study is not a grid of runs
log = logging.getLogger("optimist")


def add(commands: Any) -> None:
    actions = group(
        commands,
        "study",
        help="run the paper's experiments or your own, and report them",
        description="Run the paper's experiments or your own: grids of runs with one report.",
    )
    command(actions, "run", run, _run_options)
    command(actions, "status", status, _status_options)
    command(actions, "report", report, _report_options)
    command(actions, "work", work, work_options)
    command(actions, "push", push, push_options)
    command(actions, "pull", pull, pull_options)


def titles() -> dict[str, str]:
    """The title of every study by its name."""
    found = {path.stem: tomllib.loads(path.read_text("utf-8"))["title"] for path in CATALOG.glob("*.toml")}
    alone = {PROPOSITION: "Do the heads of REM become one function, and is it Q*? Seconds, with a figure."}
    return dict(sorted(found.items())) | alone


def _run_options(parser: Parser, words: list[str]) -> None:
    name, known = "".join(arguments_in(words)[:1]), titles()
    if name and name not in known and not name.endswith(".toml"):
        raise UsageError(f'there is no study "{name}": {did_you_mean(name, known)}')
    parser.epilog = "studies:\n" + index.lines(known)
    parser.demand(
        "name",
        f"name a study: {', '.join(known)}, or your own file such as mine.toml",
        metavar="NAME",
        help="one of those below, or your own file such as mine.toml",
    )
    if name == PROPOSITION:
        parser.add_argument("--out", type=Path, default=Path(name), help=f"the study's folder [{name}]")
        add_settings(parser, index.settings(index.read()["settings"][name]), "setting")
        parser.set_defaults(run=_proposition)
        return
    parser.add_argument("--scale", default="mini", metavar="name", help="paper, mini or tiny [mini]")
    parser.add_argument("--out", type=Path, help="the study's folder [studies/NAME-SCALE]")
    parser.add_argument(
        "--environments", metavar="A,B", help="only these, such as atari/Pong,atari/Qbert [the study's own]"
    )
    # The former names in random-scores.
    parser.add_argument("--games", help=argparse.SUPPRESS)
    parser.add_argument("--processes", type=whole_number, help=argparse.SUPPRESS)
    parser.add_argument(
        "--logs", type=Path, metavar="FOLDER", help="use the logs of this study, made with the same settings"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the runs and what they take, and run nothing"
    )
    parser.add_argument(
        "--rates",
        metavar="A,B",
        help="with --dry-run: studies whose runs were measured [the study's folder and its neighbours]",
    )
    parser.add_argument(
        "--price", type=number, metavar="number", help="with --dry-run: of one device for one hour"
    )
    parser.add_argument(
        "--restart", action="store_true", help="start again the runs in the folder that have other settings"
    )
    parser.add_argument(
        "--no-select", action="store_true", help="choose no policies by the logs, and show none"
    )
    parser.add_argument(
        "--prepare", action="store_true", help="check the study and write its list of runs, and run nothing"
    )
    add_engines(parser)


def run(options: argparse.Namespace) -> None:
    """Run a study and write its report. The same command again continues."""
    if options.processes is not None:
        log.warning("--processes is now called --workers")
        options.workers = options.processes
    _check(options)
    from optimist.studies import study_file

    asked = study_file.load(options.name, options.scale)
    if options.games:
        log.warning("--games Pong is now called --environments atari/Pong")
        options.environments = ",".join(f"atari/{game}" for game in options.games.split(","))
    if options.environments:
        asked = replace(
            asked, environments=study_file.environments(options.name, options.environments.split(","))
        )
    jobs, out = asked.jobs(), options.out or Path("studies") / f"{asked.name}-{asked.size}"
    words = f"optimist study run {options.name} --scale {asked.size} --out {out}"
    words += f" --environments {options.environments}" if options.environments else ""
    if options.logs:
        from optimist.studies.preparation import with_logs_of
        from optimist.studies.status import read_jobs

        jobs = with_logs_of(options.logs, read_jobs(options.logs)[1], jobs)
        words += f" --logs {options.logs}"
    if options.no_select:
        asked = replace(asked, selects=False)
        words += " --no-select"
    if options.dry_run:
        from optimist.cli.estimates import print_estimates

        print_estimates(asked.title, jobs, out, rates=options.rates, price=options.price)
        return
    from optimist.studies.engines.engine import Detached
    from optimist.studies.perform import perform_study, prepare

    if options.prepare:
        prepare(asked, jobs, out, command=words, restart=options.restart)
        print(
            f"{len(jobs)} runs in {out}; run each with optimist study work {out} --index 0 to {len(jobs) - 1}"
        )
        return
    if options.store:
        from optimist.studies.engines.places import LocalCopy

        LocalCopy(options.store, out).bring_begun(jobs)
    try:
        written, warned = perform_study(
            asked,
            jobs,
            out,
            lambda: pool_of(options, out, len(jobs)),
            command=words,
            restart=options.restart,
        )
    except Detached:
        print(
            f"the runs are in the queue; see optimist study status {out}; the same command without --detach"
        )
        print("waits for them and writes the report")
        return
    _print_warnings(warned)
    print(f"all {len(jobs)} runs are done in {out}; the report is {written[0]}")


def _check(options: argparse.Namespace) -> None:
    check_engine(options)
    for name in ("rates", "price"):
        if getattr(options, name) is not None and not options.dry_run:
            raise UsageError(f"--{name} is for --dry-run: add it, or leave out --{name}")
    if options.price is not None and options.price < 0:
        raise UsageError(f"--price is {options.price:g}: give 0 or more for one device and one hour")


def _proposition(options: argparse.Namespace) -> None:
    from optimist.studies.proposition import Proposition, run, sheet, write_results
    from optimist.studies.sheet import print_sheet

    readings = list(run(Proposition(**given(options, "setting"))))
    print_sheet(sheet(readings))
    print("wrote " + " and ".join(map(str, write_results(options.out, readings))))


def _status_options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("out", metavar="FOLDER", type=Path, help="the study's folder")


def status(options: argparse.Namespace) -> None:
    """Show the progress of a study, run by run."""
    from optimist.cli.tables import status_table
    from optimist.studies.sheet import print_sheet
    from optimist.studies.status import job_status, read_jobs

    title, jobs = read_jobs(options.out)
    print_sheet(status_table(title, [job_status(job, options.out) for job in jobs]))


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
    _print_warnings(warned)


def _report_in(folder: Path, by: Any) -> list[str]:
    """Write the report of a study into its folder; return the warnings."""
    from optimist.studies.report.study_report import write_findings

    try:
        written, warned = write_findings(folder, by)
    except StorageError as problem:
        raise StorageError(f"{problem}; to write the page alone elsewhere: --out page.html") from problem
    print(f"wrote {written[0]}, with its tables and figures in {folder / 'results'}")
    return warned


def _print_warnings(warned: list[str]) -> None:
    """Print the warnings of the page on the console too."""
    for line in warned:
        log.warning("%s", line)
