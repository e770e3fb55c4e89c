"""`optimist study run`, `status`, `report`, `work`, `push` and `pull`."""

import argparse
import logging
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from optimist.api import Allow
from optimist.cli.engines import ADDRESS, check_engine, pool_of
from optimist.cli.words import CommandLine, lines
from optimist.errors import StorageError, UsageError, command_line, did_you_mean

CATALOG = Path(__file__).parents[1] / "studies" / "catalog"
Folder = Annotated[Path, "the study's folder", "FOLDER"]
Address = Annotated[str, "an address, such as s3://bucket/study", "ADDRESS"]
log = logging.getLogger("optimist")


def titles() -> dict[str, str]:
    """The title of every study by its name."""
    found = {path.stem: tomllib.loads(path.read_text("utf-8"))["title"] for path in CATALOG.glob("*.toml")}
    return dict(sorted(found.items()))


def run_words(line: CommandLine) -> None:
    name, known = "".join(line.arguments()[:1]), titles()
    if name and name not in known and not name.endswith(".toml"):
        raise UsageError(f'there is no study "{name}": {did_you_mean(name, known)}')
    line.after = "studies:\n" + lines(known)


def run(
    name: Annotated[str, "a study: one of those below, or your own file such as mine.toml"],
    *,
    scale: Annotated[str, "paper, mini or tiny"] = "mini",
    out: Annotated[Path | None, "the study's folder [studies/NAME-SCALE]", "FOLDER"] = None,
    environments: Annotated[
        str | None, "only these, such as atari/Pong,atari/Qbert [the study's own]", "A,B"
    ] = None,
    agents: Annotated[
        str | None, "only these, as the study calls them, such as REM,QR-DQN [all]", "A,B"
    ] = None,
    parts: Annotated[str | None, "only these parts of the data, such as 1%,10% [all]", "A,B"] = None,
    logs: Annotated[Path | None, "use the logs of this study, made with the same settings", "FOLDER"] = None,
    dry_run: Annotated[bool, "print the runs and their steps, and run nothing"] = False,
    restart: Annotated[bool, "start again the runs in the folder that have other settings"] = False,
    no_select: Annotated[bool, "choose no policies by the logs, and show none"] = False,
    prepare: Annotated[bool, "check the study and write its list of runs, and run nothing"] = False,
    engine: Annotated[str, "local, ray or slurm"] = "local",
    workers: Annotated[int | None, "local: processes [one per core, or three per GPU]"] = None,
    runs_per_gpu: Annotated[int | None, "local: runs that share one GPU; all GPUs are used [3]"] = None,
    cpus_per_run: Annotated[float | None, "ray, slurm: cores of each run [1]"] = None,
    gpus_per_run: Annotated[
        float | None, "ray, slurm: GPUs of each run; with Ray at 0.5 two runs share one [0]"
    ] = None,
    store: Annotated[
        str | None, "ray, slurm: where the runs are, such as s3://bucket/study [in --out]", "ADDRESS"
    ] = None,
    scratch: Annotated[
        Path | None, "with --store: local folder of each node [in the user's cache]", "FOLDER"
    ] = None,
    address: Annotated[
        str | None, "ray: the cluster's head [RAY_ADDRESS, or the local cluster]", "HOST:PORT"
    ] = None,
    partition: Annotated[str | None, "slurm: the queue [the cluster's default]"] = None,
    time: Annotated[str | None, "slurm: limit of each job; a run continues after it [1:00]", "H:MM"] = None,
    memory_per_run: Annotated[
        float | None, "slurm: memory of each run [the cluster's default]", "GiB"
    ] = None,
    runs_at_once: Annotated[int | None, "slurm: runs of a game, or logs, at the same time [all]"] = None,
    sbatch: Annotated[
        str | None, "slurm: other options of sbatch, such as account=lab,qos=long", "A=B,C=D"
    ] = None,
    detach: Annotated[bool, "slurm: leave the runs in the queue and end this command"] = False,
) -> None:
    """Run a study and write its report. The same command again continues."""
    options = argparse.Namespace(**locals())
    options.detach = detach or None
    check_engine(options)
    study = _study(options)
    out = out or Path("studies") / f"{study.name}-{study.size}"
    jobs, line = _jobs(study, options), _command(study, out, options)
    if dry_run:
        from optimist.cli.tables import grid_table
        from optimist.studies.sheet import print_sheet

        print_sheet(grid_table(study.title, jobs))
    elif prepare:
        from optimist.studies.perform import prepare

        prepare(study, jobs, out, command=line, restart=options.restart)
        each = command_line("study", "work", out, "--index", 0)
        print(f"{len(jobs)} runs in {out}; run each with {each} to {len(jobs) - 1}")
    else:
        _perform(study, jobs, out, line, options)


def _study(options: argparse.Namespace) -> Any:
    from optimist.studies import study_file

    study = study_file.load(options.name, options.scale)
    if options.environments:
        names = study_file.environments(options.name, options.environments.split(","))
        study = replace(study, environments=names)
    return replace(study, selects=not options.no_select)


def _jobs(study: Any, options: argparse.Namespace) -> list[Any]:
    jobs = study.some_jobs(_labels(options.agents, study.agents), _labels(options.parts, study.views))
    if not options.logs:
        return jobs
    from optimist.studies.preparation import with_logs_of
    from optimist.studies.status import read_jobs

    return with_logs_of(options.logs, read_jobs(options.logs)[1], jobs)


def _labels(text: str | None, known: Mapping[str, Any]) -> list[str]:
    """The labels in an option, separated by semicolons if one has commas, as "REM, 4 networks" does."""
    if text is None or text in known:
        return [text] if text else []
    return [label.strip() for label in text.split(";" if ";" in text else ",")]


def _command(study: Any, out: Path, options: argparse.Namespace) -> str:
    """The command with everything on which the results depend."""
    words = [options.name, "--scale", options.scale, "--out", out]
    words += ["--environments", options.environments] if options.environments else []
    words += ["--agents", options.agents] if options.agents else []
    words += ["--parts", options.parts] if options.parts else []
    words += ["--logs", options.logs] if options.logs else []
    return command_line("study", "run", *words, *["--no-select"] * options.no_select)


def _perform(study: Any, jobs: list[Any], out: Path, line: str, options: argparse.Namespace) -> None:
    from optimist.studies.engines.engine import Detached
    from optimist.studies.perform import perform_study

    if options.store:
        from optimist.studies.engines.places import LocalCopy

        LocalCopy(options.store, out).bring_begun(jobs)
    try:
        written, warned = perform_study(
            study,
            jobs,
            out,
            lambda: pool_of(options, out, len(jobs)),
            command=line,
            restart=options.restart,
        )
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


def status(out: Folder) -> None:
    """Show the progress of a study, run by run."""
    from optimist.cli.tables import status_table
    from optimist.studies.sheet import print_sheet
    from optimist.studies.status import job_status, read_jobs

    title, jobs = read_jobs(out)
    print_sheet(status_table(title, [job_status(job, out) for job in jobs]))


def report(
    folders: Annotated[Sequence[Path], "the folder of a study, or the folders of two", "FOLDER ..."],
    *,
    out: Annotated[
        Path | None,
        "the page [of one study: FOLDER/report.html, with tables and figures in FOLDER/results; of two: "
        "compared.html]",
        "PAGE",
    ] = None,
    normaliser: Annotated[
        str | None,
        "what 0 and 100% are, as in optimist scores [the study's own player and random play]",
        "NAME|CSV",
    ] = None,
) -> None:
    """Write the report of a study, finished or not, or of two studies side by side."""
    if len(folders) > 2:
        raise UsageError(f"{len(folders)} folders: name one study, or two to compare")
    if out and out.is_dir():
        raise UsageError(f"{out} is a folder: name a file, as in --out {out / 'page.html'}")
    from optimist.studies.scores import normalisation

    by = normalisation.normaliser(normaliser) if normaliser else None
    if len(folders) == 1 and out:
        from optimist.studies.report.study_report import write_page

        warned = write_page(folders[0], out, by)
        print(f"wrote {out}")
    elif len(folders) == 1:
        warned = _report_in(folders[0], by)
    else:
        from optimist.studies.report.side_by_side import write_side_by_side

        page = out or Path("compared.html")
        first, second = folders
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


def work(
    out: Annotated[str, "the study's folder, or its address such as s3://bucket/study", "FOLDER"],
    *,
    index: Annotated[int | None, "its number in the study, from 0", "N"] = None,
    run: Annotated[str | None, "its name, instead of a number", "NAME"] = None,
    restart: Annotated[bool, "start it again if its folder holds a run of other settings"] = False,
    scratch: Annotated[
        Path | None, "local folder for the run of a study at an address [in the user's cache]", "FOLDER"
    ] = None,
    allow: Allow = (),
) -> None:
    """Run one run of a study, from its last checkpoint. For schedulers that start a process for each run; it
    waits for the log that the run needs."""
    from optimist import plugins
    from optimist.studies.engines.work import work as perform

    plugins.allow(allow)
    if "://" in out:
        from optimist.data.machine import cache_folder
        from optimist.studies.engines.work import work_at

        work_at(out, scratch or cache_folder() / "work", index=index, run=run, restart=restart)
        return
    if scratch:
        raise UsageError("--scratch is for a study at an address; leave it out, the study is a folder here")
    perform(Path(out), index=index, run=run, restart=restart)


def push(out: Folder, address: Address) -> None:
    """Send a study to an address, such as s3://bucket/study, where workers find it. Only what changed is
    sent."""
    from optimist.studies.status import read_jobs
    from optimist.studies.store import Store

    read_jobs(out)
    count = Store(_address(address)).send(out, "")
    print(f"sent {count} files of {out} to {address}")


def pull(
    address: Address,
    out: Annotated[Path, "a local folder", "FOLDER"],
    *,
    checkpoints: Annotated[bool, "bring those too: runs can then continue here"] = False,
) -> None:
    """Bring a study from an address to a local folder, for its status and report."""
    from optimist.studies.store import CHECKPOINTS, Store

    store = Store(_address(address))
    store.bring_file("study.json", out)
    store.bring("", out, without=() if checkpoints else (CHECKPOINTS,))
    print(f"{address} is in {out}; see {command_line('study', 'status', out)}")


def _address(text: str) -> str:
    if "://" not in text:
        raise UsageError(f'"{text}" is not an address: {ADDRESS}')
    return text
