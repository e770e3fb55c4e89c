"""`optimist report`: a page about one run."""

import argparse
from pathlib import Path
from typing import Any

from optimist.cli.options import Parser, command
from optimist.errors import UsageError, command_line


def add(commands: Any) -> None:
    command(commands, "report", report, _options)


def _options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("run_folder", metavar="RUN", type=Path, help="a run's folder")
    parser.add_argument("--out", type=Path, metavar="PAGE", help="the page, an HTML file [RUN/report.html]")


def report(options: argparse.Namespace) -> None:
    """Write one page about a run: its curves, with or without an environment, and its warnings."""
    run, out = options.run_folder, options.out or options.run_folder / "report.html"
    if out.is_dir():
        raise UsageError(f"{out} is a folder: name a file, as in --out {out / 'page.html'}")
    _refuse_other_folders(run)
    from optimist.studies.report.run_report import write_run_report

    line = command_line("report", run, *(["--out", out] if options.out else []))
    warned = write_run_report(run, out, command=line)
    print(f"wrote {out}")
    for each in warned:
        print(f"warning: {each}")


def _refuse_other_folders(folder: Path) -> None:
    """Raise UsageError for a folder whose page another command writes."""
    if (folder / "config.toml").exists():
        return
    if (folder / "manifest.json").exists():
        page = command_line("data", "report", folder, "--out", "page.html")
        raise UsageError(f"{folder} is a dataset, not a run: {page}")
    if (folder / "study.json").exists():
        raise UsageError(f"{folder} is a study, not a run: {command_line('study', 'report', folder)}")
