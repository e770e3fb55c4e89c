"""`optimist bench`: the speed of this machine in one table."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from optimist.cli.options import Parser, command, number, whole_number

WHAT = """The parts: learner (updates per second by agent, network, batch size and seeds), data (batches
from the device, from memory, or compressed on disk), play (evaluation and collection).

The table compares each rate with its limit. For learning and data the limit follows from the
measured arithmetic and memory bandwidth of this machine; for play it is the rate of the
environments alone. Close other programs first: they make the rates lower."""


def add(commands: Any) -> None:
    command(commands, "bench", bench, _options, epilog=WHAT)


def _options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("--quick", action="store_true", help="fewer rows; about a minute")
    parser.add_argument(
        "--peers",
        action="store_true",
        help="also time PyTorch and d3rlpy; the first use installs them in an environment of their own",
    )
    parser.add_argument(
        "--only", metavar="PARTS", help="only these parts, such as learner,play [learner,data,play]"
    )
    parser.add_argument(
        "--rounds", type=whole_number, metavar="int", help="timings of each row [5; quick: 3]"
    )
    parser.add_argument(
        "--seconds", type=number, metavar="number", help="length of one timing [1; quick: 0.4]"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("bench"),
        metavar="FOLDER",
        help="folder of bench.csv and bench.png [bench]",
    )


def bench(options: argparse.Namespace) -> None:
    """Measure the speed of this machine: learning, reading data and play, each with its limit. The result is
    a table, a CSV file and a figure."""
    from optimist.studies.bench import peers
    from optimist.studies.bench.measuring import measured
    from optimist.studies.bench.plan import quick, whole
    from optimist.studies.bench.results import line, sheet, write_figure, write_table
    from optimist.studies.sheet import print_sheet

    plan = quick() if options.quick else whole()
    if options.only:
        plan = replace(plan, parts=tuple(options.only.split(",")))
    given = {name: value for name in ("rounds", "seconds") if (value := getattr(options, name)) is not None}
    plan = replace(plan, timing=replace(plan.timing, **given))
    rows = []
    for row in measured(plan, peers.python() if options.peers else None):
        rows.append(row)
        print(line(row), flush=True)
        table = write_table(rows, options.out)  # whoever stops the measurement keeps these rows
    print_sheet(sheet(rows))
    print(f"wrote {table} and {write_figure(rows, options.out)}")
