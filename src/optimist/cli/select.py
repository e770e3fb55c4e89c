"""`optimist select`: which kept policy to ship, if any, from the log alone."""

import argparse
from pathlib import Path
from typing import Any

from optimist.choosing.estimators import USUAL, available
from optimist.cli.options import Parser, command, whole_number
from optimist.errors import UndecidedError, command_line

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
        "--rule",
        default=USUAL,
        metavar="RULE",
        help=f"what ranks them: {', '.join(available())}, or module:Name [{USUAL}]",
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
        "--anyway", action="store_true", help="choose the first policy even if it is not shown to be better"
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
    """Say whether a kept policy of runs is better than the log's own policy, by their log alone. If so it is
    chosen: `--step chosen` loads it. If not, the exit code is 7."""
    from optimist.choosing.selecting import select_policy
    from optimist.studies.report.selection_report import ranking_sheet, write_selection_page
    from optimist.studies.sheet import print_sheet
    from optimist.training.storage.selected import refuse_read_only

    refuse_read_only(options.runs)
    found = select_policy(
        options.runs,
        data=options.data,
        rule=options.rule,
        updates=options.updates,
        anyway=options.anyway,
        episodes=options.episodes,
        environment=options.environment,
        allow=options.allow,
        steps=options.steps,
    )
    found.write(options.out)
    print(found.answer)
    print_sheet(ranking_sheet(found, SHOWN))
    if options.out:
        page = write_selection_page(found, options.out, _command(options))
        print(f"wrote {page}")
    if found.chosen is None:
        first = f"--anyway chooses {found.ranking[0].name}"
        clone = command_line("train", "behaviour_cloning", found.facts["data"])
        raise UndecidedError(f"no policy was chosen; to clone today's: {clone}; {first}")
    line = command_line("export", found.chosen.run, "--step", "chosen", "--to", "policy.onnx")
    print(f"chosen: {found.chosen.name}; to ship it: {line}")


def _command(options: argparse.Namespace) -> str:
    """The command with everything on which its result depends."""
    words = [*options.runs, "--rule", options.rule, "--updates", options.updates]
    for name in ("steps", "episodes", "environment", "data", "out"):
        words += [f"--{name}", value] if (value := getattr(options, name)) else []
    words += [word for module in options.allow for word in ("--allow", module)]
    return command_line("select", *words, *["--anyway"] * options.anyway)
