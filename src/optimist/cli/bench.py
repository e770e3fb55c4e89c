"""`optimist bench`: the speed of this machine in one table."""

import argparse
from pathlib import Path
from typing import Any

from optimist.cli.options import Parser, command, number, whole_number


def add(commands: Any) -> None:
    command(commands, "bench", bench, _options)


def _options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("--quick", action="store_true", help="fewer rows; about a minute")
    parser.add_argument(
        "--rounds", type=whole_number, default=3, metavar="int", help="timings of each row [3]"
    )
    parser.add_argument(
        "--seconds", type=number, default=0.5, metavar="number", help="length of one timing [0.5]"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("bench.csv"), metavar="FILE.csv", help="the table [bench.csv]"
    )


def bench(options: argparse.Namespace) -> None:
    """Measure the speed of this machine: updates per second by agent, network, batch size and seeds, and
    steps per second of play. Close other programs first: they make the rates lower."""
    from optimist.studies.bench import Timing, measured, rounded, sheet
    from optimist.studies.sheet import as_csv, print_sheet

    rows = []
    for subject, rate in measured(options.quick, Timing(options.rounds, options.seconds)):
        rows.append((subject, rate))
        print(f"{subject.what} ({subject.network}): {rounded(rate)} {subject.unit}", flush=True)
        options.out.write_text(as_csv(sheet(rows)), "utf-8")  # whoever stops the measurement keeps these
    print_sheet(sheet(rows))
    print(f"wrote {options.out}")
