"""`optimist select`: which kept policy to ship, from the log alone."""

import argparse
from pathlib import Path
from typing import Any

from optimist.cli.options import Parser, command, whole_number
from optimist.errors import command_line

RULES = ("cautious", "supported", "fqe", "support", "sbv", "bvft", "drift", "agreement", "importance")
SHOWN = 10  # rows of the printed ranking


def add(commands: Any) -> None:
    command(commands, "select", select, _options)


def _options(parser: Parser, words: list[str]) -> None:
    parser.demand(
        "runs",
        "name at least one run: optimist select RUN [RUN ...]",
        metavar="RUN",
        type=Path,
        nargs="+",
        help="folders of runs that learned from one dataset",
    )
    parser.add_argument(
        "--rule", default="cautious", metavar="RULE", help=f"what ranks them: {', '.join(RULES)} [cautious]"
    )
    parser.add_argument(
        "--updates", type=whole_number, default=10_000, metavar="int", help="updates of each network [10_000]"
    )
    parser.add_argument(
        "--steps",
        type=whole_number,
        metavar="int",
        help="use about so many steps of each log, which is faster [all that there is room for]",
    )
    parser.add_argument(
        "--every-rule", action="store_true", help="also compute the scores of rules that take long"
    )
    parser.add_argument(
        "--episodes",
        type=whole_number,
        default=0,
        metavar="int",
        help="the most real episodes in all, played by the policies that rank best by the log [0]",
    )
    parser.add_argument(
        "--environment", metavar="ENV", default="", help="where to play them [the data's environment]"
    )
    parser.add_argument(
        "--data", type=Path, metavar="DATA", help="the data of the runs, if its folder was moved"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="a folder for selection.json and a page [only in the runs]"
    )
    parser.add_argument(
        "--allow", action="append", default=[], metavar="module", help="a module that the runs may import"
    )


def select(options: argparse.Namespace) -> None:
    """Choose among all kept policies of runs by their log alone. The choice is written into every run, and
    `--step chosen` loads it."""
    from optimist.studies.report.selection_report import ranking_sheet, write_selection_page
    from optimist.studies.sheet import print_sheet
    from optimist.training.selection import select_policy
    from optimist.training.storage.selected import refuse_read_only

    refuse_read_only(options.runs)
    found = select_policy(
        options.runs,
        data=options.data,
        rule=options.rule,
        updates=options.updates,
        every_rule=options.every_rule,
        episodes=options.episodes,
        environment=options.environment,
        allow=options.allow,
        steps=options.steps,
    )
    found.write(options.out)
    print_sheet(ranking_sheet(found, SHOWN))
    chosen = found.chosen
    print(f"chosen: {chosen.name}")
    for run, each in found.runs.items():
        if run != chosen.run:
            print(f"chosen of {run}: step {each.step:,} seed {each.seed}")
    line = command_line("export", chosen.run, "--step", "chosen", "--to", "policy.onnx")
    print(f"to ship it: {line}")
    if options.out:
        page = write_selection_page(found, options.out, _command(options))
        print(f"wrote {page}")


def _command(options: argparse.Namespace) -> str:
    """The command with everything on which its result depends."""
    words = [*options.runs, "--rule", options.rule, "--updates", options.updates]
    for name in ("steps", "episodes", "environment", "data", "out"):
        words += [f"--{name}", value] if (value := getattr(options, name)) else []
    words += [word for module in options.allow for word in ("--allow", module)]
    return command_line("select", *words, *["--every-rule"] * options.every_rule)
