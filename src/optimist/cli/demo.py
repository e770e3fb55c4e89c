"""`optimist demo`: the whole path in minutes."""

import argparse
from pathlib import Path
from typing import Any

from optimist.cli import index
from optimist.cli.options import Parser, command
from optimist.cli.settings import add_settings, given


def add(commands: Any) -> None:
    command(commands, "demo", demo, _demo_options)


def _demo_options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("--out", type=Path, default=Path("demo"), help="the folder for the results [demo]")
    add_settings(parser, index.settings(index.read()["settings"]["demo"]), "setting")


def demo(options: argparse.Namespace) -> None:
    """Record, train, evaluate and report in minutes.

    An online DQN plays and is recorded; DQN, QR-DQN and REM learn from the log alone; a page shows the
    scores.
    """
    from optimist.studies.demo import Demo, run_demo
    from optimist.studies.sheet import print_sheet

    outcome = run_demo(options.out, Demo(**given(options, "setting")))
    print_sheet(outcome.scores)
    print(f"the report: {outcome.report}")
