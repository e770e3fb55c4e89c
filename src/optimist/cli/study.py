"""`optimist study run`, `status`, `report`, `work`, `push` and `pull`."""

import logging
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from optimist.api import Allow
from optimist.cli import index
from optimist.cli.words import CommandLine, lines, setting_words
from optimist.errors import StorageError, UsageError, command_line, did_you_mean

LOCAL, USUAL = "local", "mini"  # the engine and the scale, if none is named
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
    engine = line.value("--engine") or LOCAL
    line.after = f"engines: {', '.join(index.engines())}\n\nstudies:\n{lines(known)}"
    line.add(f"with --engine {engine}", setting_words(index.settings(index.engine(engine)), "settings"))
    unknown = line.typed_options() - line.options().keys()
    for other, settings in index.engines().items():
        for word in setting_words(index.settings(settings), "settings"):
            if word.spelled in unknown:
                raise UsageError(f"{word.spelled} is for another engine: add --engine {other}")


def run(
    name: Annotated[str, "a study: one of those below, or your own file such as mine.toml"],
    *,
    scale: Annotated[str, "paper, mini or tiny"] = USUAL,
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
    engine: Annotated[str, "what runs it; its options depend on it"] = LOCAL,
    settings: dict[str, Any],
) -> None:
    """Run a study and write its report. The same command again continues."""
    from optimist.studies import engines, study_file

    module = engines.find(engine)
    options = module.Options(**settings)
    study = replace(study_file.load(name, scale), selects=not no_select)
    if environments:
        study = replace(study, environments=study_file.environments(name, environments.split(",")))
    out = out or Path("studies") / f"{study.name}-{study.size}"
    jobs = study.some_jobs(_labels(agents, study.agents), _labels(parts, study.views))
    jobs = _with_logs(jobs, logs) if logs else jobs
    chosen = {"environments": environments, "agents": agents, "parts": parts, "logs": logs}
    words = [word for option, value in chosen.items() if value for word in (f"--{option}", value)]
    words += ["--no-select"] * no_select
    size = ["--scale", scale] if scale != USUAL else []  # a file of one's own may have no scales
    line = command_line("study", "run", name, *size, "--out", out, *words)
    if dry_run:
        from optimist.cli.tables import grid_table
        from optimist.studies.sheet import print_sheet

        print_sheet(grid_table(study.title, jobs))
    elif prepare:
        from optimist.studies import perform

        perform.prepare(study, jobs, out, command=line, restart=restart)
        each = command_line("study", "work", out, "--index", 0)
        print(f"{len(jobs)} runs in {out}; run each with {each} to {len(jobs) - 1}")
    else:
        _perform(study, jobs, out, module, options, command=line, restart=restart)


def _with_logs(jobs: list[Any], logs: Path) -> list[Any]:
    from optimist.studies.preparation import with_logs_of
    from optimist.studies.status import read_record

    return with_logs_of(logs, read_record(logs).jobs, jobs)


def _labels(text: str | None, known: Mapping[str, Any]) -> list[str]:
    """The labels in an option, separated by semicolons if one has commas, as "REM, 4 networks" does."""
    if text is None or text in known:
        return [text] if text else []
    return [label.strip() for label in text.split(";" if ";" in text else ",")]


def _perform(study: Any, jobs: list[Any], out: Path, engine: Any, options: Any, **more: Any) -> None:
    from optimist.studies.engines._schedule import Detached
    from optimist.studies.perform import perform_study

    try:
        written, warned = perform_study(study, jobs, out, engine, options, **more)
    except Detached:
        see = command_line("study", "status", out)
        print(f"the runs are in the queue; see {see}; the same command without --detach")
        print("waits for them and writes the report")
        return
    _print_warnings(warned)
    print(f"all {len(jobs)} runs are done in {out}; the report is {written[0]}")


def _print_warnings(warned: list[str]) -> None:
    """Print the warnings of the page on the console too."""
    for line in warned:
        log.warning("%s", line)


def status(out: Folder) -> None:
    """Show the progress of a study, run by run."""
    from optimist.cli.tables import status_table
    from optimist.studies.sheet import print_sheet
    from optimist.studies.status import job_status, read_record

    study = read_record(out)
    print_sheet(status_table(study.title, [job_status(job, out) for job in study.jobs]))


def report(
    folder: Folder,
    *,
    out: Annotated[
        Path | None, "the page alone [FOLDER/report.html, with tables and figures in FOLDER/results]", "PAGE"
    ] = None,
    normaliser: Annotated[
        str | None,
        "what 0 and 100% are, as in optimist scores [the study's own player and random play]",
        "NAME|CSV",
    ] = None,
    allow: Annotated[Iterable[str], "a module with figures of the study; may be repeated", "module"] = (),
) -> None:
    """Write the report of a study, finished or not."""
    if out and out.is_dir():
        raise UsageError(f"{out} is a folder: name a file, as in --out {out / 'page.html'}")
    from optimist import plugins
    from optimist.studies.scores import normalisation

    plugins.allow(allow)
    by = normalisation.normaliser(normaliser) if normaliser else None
    if out:
        from optimist.studies.report.study_report import write_page

        warned = write_page(folder, out, by)
        print(f"wrote {out}")
    else:
        warned = _report_in(folder, by)
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
    from optimist.studies.work import work as perform

    plugins.allow(allow)
    perform(out, index=index, run=run, restart=restart, scratch=scratch)


def push(out: Folder, address: Address) -> None:
    """Send a study to an address, such as s3://bucket/study, where workers find it. Only what changed is
    sent."""
    from optimist.studies.status import read_record
    from optimist.studies.store import Store

    read_record(out)
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
        raise UsageError(f'"{text}" is not an address: name one, such as s3://bucket/study')
    return text
