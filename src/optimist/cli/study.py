"""The commands that run studies, each a few calls into the floors of studies."""

import argparse
from dataclasses import replace
from pathlib import Path

from optimist.cli.options import Parser, add_fields, number, whole_number, with_options
from optimist.errors import UsageError, did_you_mean

ENGINES = {"local": ("workers",), "ray": ("address", "cpus_per_run", "gpus_per_run")}  # and their own options


def study(words: list[str]) -> None:
    alone = {"proposition-1": _proposition}
    asked = "".join(words[:1])
    if asked in ("", "-h", "--help"):
        from optimist.studies.plan import catalogue

        print("usage: optimist study run NAME --out FOLDER")
        print("       optimist study status FOLDER")
        print("       optimist study report FOLDER [FOLDER]")
        print(f"names: {', '.join([*catalogue(), *alone])}, or a file of your own such as mine.toml")
    elif asked == "status":
        _status(words[1:])
    elif asked == "report":
        from optimist.cli.report import report

        report(words[1:])
    elif asked != "run":
        raise UsageError(f'there is no "study {asked}": {did_you_mean(asked, ["run", "status", "report"])}')
    elif "".join(words[1:2]) in alone:
        alone[words[1]](words[2:])
    else:
        _planned("".join(words[1:2]), words[2:], list(alone))


def _planned(name: str, words: list[str], others: list[str]) -> None:
    from optimist.studies import plan

    if name not in plan.catalogue() and not name.endswith(".toml"):
        raise UsageError(f'there is no study "{name}": {did_you_mean(name, [*plan.catalogue(), *others])}')
    options = _study_parser(name).options(words)
    _check_engine(options)
    asked = plan.load(name, options.scale)
    if options.environments:
        asked = replace(asked, environments=plan.environments(name, options.environments.split(",")))
    jobs, out = asked.jobs(), options.out or Path("studies") / f"{asked.name}-{asked.size}"
    command = f"optimist study run {name} --scale {asked.size} --out {out}"
    command += f" --environments {options.environments}" if options.environments else ""
    if options.logs:
        from optimist.studies.job import with_logs_of
        from optimist.studies.status import read_jobs

        jobs = with_logs_of(options.logs, read_jobs(options.logs)[1], jobs)
        command += f" --logs {options.logs}"
    from optimist.cli.tables import grid_table
    from optimist.studies.sheet import print_sheet

    if options.dry_run:
        print_sheet(grid_table(asked.title, jobs))
        return
    from optimist.cli.report import tell
    from optimist.studies.perform import perform_study

    written, warned = perform_study(
        asked, jobs, out, lambda: _pool(options, out), command=command, restart=options.restart
    )
    tell(warned)
    print(f"all {len(jobs)} runs are in {out}, and what they found in {written[0]}")


def _study_parser(name: str) -> Parser:
    parser = Parser(
        f"optimist study run {name}",
        description="A grid of runs, performed by processes here or by a cluster.",
    )
    parser.add_argument("--scale", default="mini", metavar="name", help="paper, mini or tiny [mini]")
    parser.add_argument("--out", type=Path, help=f"the study's folder [studies/{name}-SCALE]")
    parser.add_argument(
        "--environments", metavar="A,B", help="only these, such as atari/Pong,atari/Qbert [the study's own]"
    )
    parser.add_argument(
        "--logs", type=Path, metavar="FOLDER", help="a study's that collected the same logs: take those"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the grid and what it takes, run nothing"
    )
    parser.add_argument(
        "--restart", action="store_true", help="begin anew what the folder holds by other settings"
    )
    parser.add_argument("--engine", default="local", metavar="name", help="local or ray [local]")
    local = parser.add_argument_group("with --engine local")
    local.add_argument("--workers", type=whole_number, metavar="int", help="processes [by the device]")
    ray = parser.add_argument_group("with --engine ray, a cluster that runs already")
    ray.add_argument(
        "--address", metavar="HOST:PORT", help="its head [RAY_ADDRESS, or the one that runs here]"
    )
    ray.add_argument("--cpus-per-run", type=number, metavar="number", help="cores [1]")
    ray.add_argument("--gpus-per-run", type=number, metavar="number", help="0.5: two share one [0]")
    return parser


def _check_engine(options: argparse.Namespace) -> None:
    if options.engine not in ENGINES:
        raise UsageError(f'there is no engine "{options.engine}": {did_you_mean(options.engine, ENGINES)}')
    for engine, names in ENGINES.items():
        given = [name for name in names if getattr(options, name) is not None]
        if given and engine != options.engine:
            raise UsageError(f"--{given[0].replace('_', '-')} is for another engine: add --engine {engine}")


def _pool(options: argparse.Namespace, out: Path):
    from optimist.studies.engines.local import LocalPool, usual_workers

    if options.engine == "local":
        return LocalPool(out, options.workers or usual_workers())
    from optimist.studies.engines.cluster import RayPool

    shares = {"cpus": options.cpus_per_run, "gpus": options.gpus_per_run}
    said = {name: share for name, share in shares.items() if share is not None}
    return RayPool(out, options.address or "auto", **said)


def _status(words: list[str]) -> None:
    parser = Parser("optimist study status", description="How far a study is, run by run.")
    parser.add_argument("out", metavar="FOLDER", type=Path, help="the study's folder")
    options = parser.options(words)
    from optimist.cli.tables import status_table
    from optimist.studies.sheet import print_sheet
    from optimist.studies.status import job_status, read_jobs

    title, jobs = read_jobs(options.out)
    print_sheet(status_table(title, [job_status(job, options.out) for job in jobs]))


def _proposition(words: list[str]) -> None:
    parser = Parser("optimist study run proposition-1", description="Do the heads of REM become one, and Q*?")
    parser.add_argument("--out", type=Path, default=Path("proposition-1"), help="[proposition-1]")
    from optimist.studies.proposition import Proposition, run, sheet, write_results
    from optimist.studies.sheet import print_sheet

    add_fields(parser, Proposition())
    options = parser.options(words)
    readings = list(run(with_options(Proposition(), options)))
    print_sheet(sheet(readings))
    print("wrote " + " and ".join(map(str, write_results(options.out, readings))))
