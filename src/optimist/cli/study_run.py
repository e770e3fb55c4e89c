"""`optimist study run`."""

import argparse
import logging
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from optimist.cli import index
from optimist.cli.engines import add_engine, engine_options
from optimist.cli.options import Parser, arguments_in
from optimist.errors import UsageError, command_line, did_you_mean

CATALOG = Path(__file__).parents[1] / "studies" / "catalog"
log = logging.getLogger("optimist")


def titles() -> dict[str, str]:
    """The title of every study by its name."""
    found = {path.stem: tomllib.loads(path.read_text("utf-8"))["title"] for path in CATALOG.glob("*.toml")}
    return dict(sorted(found.items()))


def run_options(parser: Parser, words: list[str]) -> None:
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
    parser.add_argument("--scale", metavar="name", help="paper, mini or tiny [mini]")
    parser.add_argument("--out", type=Path, help="the study's folder [studies/NAME-SCALE]")
    parser.add_argument(
        "--environments", metavar="A,B", help="only these, such as atari/Pong,atari/Qbert [the study's own]"
    )
    parser.add_argument(
        "--agents", metavar="A,B", help="only these, as the study calls them, such as REM,QR-DQN [all]"
    )
    parser.add_argument("--parts", metavar="A,B", help="only these parts of the data, such as 1%%,10%% [all]")
    parser.add_argument(
        "--logs", type=Path, metavar="FOLDER", help="use the logs of this study, made with the same settings"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the runs and their steps, and run nothing"
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
    add_engine(parser, words)


def run(options: argparse.Namespace) -> None:
    """Run a study and write its report. The same command again continues."""
    engine, chosen = engine_options(options)
    study = _study(options)
    out = options.out or Path("studies") / f"{study.name}-{study.size}"
    jobs, line = _jobs(study, options), _command(study, out, options)
    if options.dry_run:
        from optimist.cli.tables import grid_table
        from optimist.studies.sheet import print_sheet

        print_sheet(grid_table(study.title, jobs))
    elif options.prepare:
        from optimist.studies.perform import prepare

        prepare(study, jobs, out, command=line, restart=options.restart)
        each = command_line("study", "work", out, "--index", 0)
        print(f"{len(jobs)} runs in {out}; run each with {each} to {len(jobs) - 1}")
    else:
        _perform(study, jobs, out, line, engine, chosen, options.restart)


def _study(options: argparse.Namespace) -> Any:
    from optimist.studies import study_file

    study = study_file.load(options.name, options.scale or "mini")
    if options.environments:
        names = study_file.environments(options.name, options.environments.split(","))
        study = replace(study, environments=names)
    return replace(study, selects=not options.no_select)


def _jobs(study: Any, options: argparse.Namespace) -> list[Any]:
    jobs = study.some_jobs(_labels(options.agents, study.agents), _labels(options.parts, study.views))
    if not options.logs:
        return jobs
    from optimist.studies.preparation import with_logs_of
    from optimist.studies.status import read_record

    return with_logs_of(options.logs, read_record(options.logs).jobs, jobs)


def _labels(text: str | None, known: Mapping[str, Any]) -> list[str]:
    """The labels in an option, separated by semicolons if one has commas, as "REM, 4 networks" does."""
    if text is None or text in known:
        return [text] if text else []
    return [label.strip() for label in text.split(";" if ";" in text else ",")]


def _command(study: Any, out: Path, options: argparse.Namespace) -> str:
    """The command with everything on which the results depend."""
    words = [options.name, *(["--scale", options.scale] if options.scale else []), "--out", out]
    words += ["--environments", options.environments] if options.environments else []
    words += ["--agents", options.agents] if options.agents else []
    words += ["--parts", options.parts] if options.parts else []
    words += ["--logs", options.logs] if options.logs else []
    return command_line("study", "run", *words, *["--no-select"] * options.no_select)


def _perform(
    study: Any, jobs: list[Any], out: Path, line: str, engine: Any, chosen: Any, restart: bool
) -> None:
    from optimist.studies.engines._schedule import Detached
    from optimist.studies.perform import perform_study

    try:
        written, warned = perform_study(study, jobs, out, engine, chosen, command=line, restart=restart)
    except Detached:
        see = command_line("study", "status", out)
        print(f"the runs are in the queue; see {see}; the same command without --detach")
        print("waits for them and writes the report")
        return
    print_warnings(warned)
    print(f"all {len(jobs)} runs are done in {out}; the report is {written[0]}")


def print_warnings(warned: list[str]) -> None:
    """Print the warnings of the page on the console too."""
    for line in warned:
        log.warning("%s", line)
