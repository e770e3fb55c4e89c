"""`optimist study run`, `status`, `report`, `work`, `push` and `pull`; and `optimist scores`."""

import logging
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from optimist.api import Allow
from optimist.cli import index
from optimist.cli.words import CommandLine, in_columns, setting_words
from optimist.errors import StorageError, UsageError, command_line, did_you_mean, in_one_line

if TYPE_CHECKING:
    from optimist.studies.sheet import Sheet
    from optimist.studies.status import JobStatus

LOCAL, USUAL = "local", "mini"  # the engine and the scale, if none is named
CATALOG = Path(__file__).parents[1] / "studies" / "catalog"
REASONS = 10  # runs whose failure `study status` explains
FORMAT = """FILE.csv has the columns game,agent,seed,score and, if there is more than one evaluation,
iteration or step. A normaliser of your own is a CSV file with the columns game,random,dqn: the scores of
random play and of the agent to compare with, whose column may have another name."""
Folder = Annotated[Path, "the study's folder", "FOLDER"]
Address = Annotated[str, "an address, such as s3://bucket/study", "ADDRESS"]
log = logging.getLogger("optimist")


def titles() -> dict[str, str]:
    """The title of every study by its name."""
    found = {path.stem: tomllib.loads(path.read_text("utf-8"))["title"] for path in CATALOG.glob("*.toml")}
    return dict(sorted(found.items()))


def run_words(line: CommandLine) -> None:
    """Add the settings of the engine."""
    name, known = "".join(line.arguments()[:1]), titles()
    if name and name not in known and not name.endswith(".toml"):
        raise UsageError(f'there is no study "{name}": {did_you_mean(name, known)}')
    engine = line.value("--engine") or LOCAL
    line.after = f"engines: {', '.join(index.engines())}\n\nstudies:\n{in_columns(known)}"
    line.add(f"with --engine {engine}", setting_words(index.engine(engine), "settings"))
    unknown = line.typed_options() - line.options().keys()
    for other, settings in index.engines().items():
        for word in setting_words(settings, "settings"):
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
    from optimist.studies import engines, perform, study_file
    from optimist.studies.engines._schedule import Detached

    module = engines.find(engine)
    options = module.Options(**settings)
    study = replace(study_file.load(name, scale), selects=not no_select)
    if environments:
        study = replace(study, environments=study_file.environments(name, environments.split(",")))
    out = out or Path("studies") / f"{study.name}-{study.size}"
    jobs = study.some_jobs(_labels(agents, study.agents), _labels(parts, study.views))
    if logs:
        from optimist.studies.status import read_record

        jobs = perform.with_logs_of(logs, read_record(logs).jobs, jobs)
    chosen = {"environments": environments, "agents": agents, "parts": parts, "logs": logs}
    words = [word for option, value in chosen.items() if value for word in (f"--{option}", value)]
    words += ["--no-select"] * no_select
    size = ["--scale", scale] if scale != USUAL else []  # a file of one's own may have no scales
    line = command_line("study", "run", name, *size, "--out", out, *words)
    if dry_run:
        _print_grid(study.title, jobs)
    elif prepare:
        perform.prepare(study, jobs, out, command=line, restart=restart)
        each = command_line("study", "work", out, "--index", 0)
        print(f"{len(jobs)} runs in {out}; run each with {each} to {len(jobs) - 1}")
    else:
        try:
            written, warned = perform.perform_study(
                study, jobs, out, module, options, command=line, restart=restart
            )
        except Detached:
            see = command_line("study", "status", out)
            print(f"the runs are in the queue; see {see}; the same command without --detach")
            print("waits for them and writes the report")
            return
        _print_warnings(warned)
        print(f"all {len(jobs)} runs are done in {out}; the report is {written[0]}")


def _labels(text: str | None, known: Mapping[str, Any]) -> list[str]:
    """The labels in an option, separated by semicolons if one has commas, as "REM, 4 networks" does."""
    if text is None or text in known:
        return [text] if text else []
    return [label.strip() for label in text.split(";" if ";" in text else ",")]


def _print_grid(title: str, jobs: Sequence[Any]) -> None:
    """The runs of a study, one per line, and their total."""
    from optimist.studies.sheet import Sheet, print_sheet

    rows = [
        [job.name, f"{job.agent} ({job.preset})" if job.preset else job.agent, len(job.seeds), job.steps()]
        for job in jobs
    ]
    played = sum(job.steps() * len(job.seeds) for job in jobs if job.plays)
    # Random play has no label.
    learned = sum(job.steps() * len(job.seeds) for job in jobs if not job.plays and job.label)
    total = f"{len(jobs)} runs: {played:,} steps played, {learned:,} updates offline"
    print_sheet(Sheet(title, ("run", "agent", "seeds", "steps per seed"), rows, [total]))


def _print_warnings(warned: list[str]) -> None:
    """Print the warnings of the page on the console too."""
    for line in warned:
        log.warning("%s", line)


def status(out: Folder) -> None:
    """Show the progress of a study, run by run."""
    from optimist.studies.sheet import print_sheet
    from optimist.studies.status import job_status, read_record

    study = read_record(out)
    print_sheet(status_table(study.title, [job_status(job, out) for job in study.jobs]))


def status_table(title: str, runs: Sequence["JobStatus"]) -> "Sheet":
    """The progress of each run of a study."""
    from optimist.studies.sheet import Sheet

    rows = [
        [
            run.name,
            run.state,
            f"{run.step:,} of {run.steps:,}",
            f"{run.rate:,.0f}" if run.rate else None,
            None if run.seconds_left is None else f"{run.seconds_left:,.0f} s",
        ]
        for run in runs
    ]
    done = sum(run.state == "done" for run in runs)
    heads = ("run", "state", "progress", "steps/s", "time left")
    reasons = [f"{run.name}: {in_one_line(run.complaint, 400)}" for run in runs if run.complaint]
    left = len(reasons) - REASONS
    more = [f"{left} more runs have such a line in the report"] if left > 0 else []
    return Sheet(title, heads, rows, [f"{done} of {len(runs)} done", *reasons[:REASONS], *more])


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
    from optimist.studies.report.study_report import write_findings, write_page
    from optimist.studies.scores import normalisation

    plugins.allow(allow)
    by = normalisation.normaliser(normaliser) if normaliser else None
    if out:
        warned = write_page(folder, out, by)
        print(f"wrote {out}")
    else:
        try:
            written, warned = write_findings(folder, by)
        except StorageError as problem:
            remedy = "to write the page alone elsewhere: --out page.html"
            raise StorageError(f"{problem}; {remedy}") from problem
        print(f"wrote {written[0]}, with its tables and figures in {folder / 'results'}")
    _print_warnings(warned)


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


def scores(
    files: Annotated[
        Sequence[Path],
        "scores by game, agent and seed; agents of a second file are called REM (B), of a third REM (C)",
        "FILE.csv ...",
    ],
    *,
    normaliser: Annotated[
        str, "what 0 and 100% are: dqn-random, human-random, or a CSV file", "NAME|CSV"
    ] = "dqn-random",
    incomplete: Annotated[
        str, "for games without all agents, seeds and evaluations: refuse or leave-out"
    ] = "refuse",
    recent: Annotated[int, "evaluations in the mean of the last ones"] = 3,
    out: Annotated[
        Path | None, "write the tables, the comparison of every two agents, and figures", "FOLDER"
    ] = None,
    agent: Annotated[Iterable[str], "only this agent; may be repeated [all]", "NAME"] = (),
) -> None:
    """Make the paper's Table 1 from a table of scores, beside the paper's own numbers."""
    from optimist.studies.scores import normalisation
    from optimist.studies.scores.curves import complete, read_scores
    from optimist.studies.scores.finding import Finding
    from optimist.studies.sheet import print_sheet

    if incomplete not in ("refuse", "leave-out"):
        hint = did_you_mean(incomplete, ("refuse", "leave-out"))
        raise UsageError(f'--incomplete has no value "{incomplete}": {hint}')
    if recent < 1:
        raise UsageError(f"--recent {recent}: it must be at least 1")
    by, every = normalisation.normaliser(normaliser), read_scores(*files)
    for name in agent:
        if name not in every.agents:
            raise UsageError(f'there are no scores of "{name}": {did_you_mean(name, every.agents)}')
    chosen = {name: every.agents[name] for name in agent or every.agents}
    whole, left_out = complete(replace(every, agents=chosen), leave_out=incomplete == "leave-out")
    finding = Finding(whole, by, left_out, recent=recent)
    print_sheet(finding.game_table(normalisation.MAIN))
    print_sheet(finding.table(normalisation.MAIN))
    if out:
        print("wrote " + " and ".join(map(str, _write(finding, out))))


def _write(finding: Any, out: Path) -> list[Path]:
    """Write the tables, the differences of every pair of agents, and the figures."""
    from optimist.data.disk.files import write_whole
    from optimist.studies.report import drawing
    from optimist.studies.report.figures.intervals import interval_plot
    from optimist.studies.report.figures.iqm import iqm_over_training
    from optimist.studies.scores import intervals
    from optimist.studies.sheet import records_csv

    file, (zero, one) = finding.file, finding.by.ends(finding.file.games)
    tables, pairs = finding.write(out), out / "pairs.csv"
    write_whole(pairs, records_csv(intervals.pairs(finding.scores)).encode())
    curves = intervals.over_training(file, finding.by)
    figures = {
        out / "intervals.png": interval_plot(finding.certainty, finding.evaluations, one),
        out / "iqm.png": iqm_over_training(curves, zero, one, file.axis),
    }
    for path, figure in figures.items():
        drawing.save_png(drawing.laid_out(figure), path)
    return [*tables, pairs, *figures]
