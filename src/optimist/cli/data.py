"""`optimist data ...`: what a dataset holds, whether it is whole, and which part of it is meant."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from optimist.cli import replay as replay_commands
from optimist.cli.options import Parser, number, whole_number
from optimist.errors import DataError, UsageError, did_you_mean

if TYPE_CHECKING:
    from optimist.data.dataset import Dataset


USAGE = """usage: optimist data info DATA
       optimist data verify PATH
       optimist data import dqn-replay PATH --out DATA
       optimist data export dqn-replay DATA --out FOLDER"""


def data(words: list[str]) -> None:
    actions = {
        "info": _info,
        "verify": _verify,
        "import": replay_commands.import_logs,
        "export": replay_commands.export_logs,
    }
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
    elif words[0] not in actions:
        raise UsageError(f'there is no "data {words[0]}": {did_you_mean(words[0], actions)}')
    else:
        actions[words[0]](words[1:])


def _info(words: list[str]) -> None:
    parser = Parser("optimist data info", description="What a dataset, or a view of it, holds.")
    parser.add_argument("data", metavar="DATA", type=Path, help="a dataset's folder")
    parser.add_argument("--json", action="store_true", help="everything, for programs")
    add_views(parser)
    options = parser.options(words)
    if _are_logs(options.data):
        raise DataError(
            f"{options.data} holds DQN Replay logs; import them first: "
            f"optimist data import dqn-replay {options.data} --out DATA"
        )
    from optimist.cli.tables import card_table
    from optimist.data.card import card
    from optimist.studies.sheet import print_sheet

    facts = card(view(options))
    print(json.dumps(facts, indent=2)) if options.json else print_sheet(card_table(facts, str(options.data)))


def _verify(words: list[str]) -> None:
    parser = Parser(
        "optimist data verify", description="Check every byte of a dataset, or of DQN Replay logs."
    )
    parser.add_argument("data", metavar="PATH", help="a dataset's folder, or a run's logs (also at gs://...)")
    options = parser.options(words)
    if _are_logs(options.data):
        replay_commands.verify_logs(options.data)
        return
    from optimist.data.verify import verify

    problems = verify(Path(options.data))
    for problem in problems:
        print(problem)
    if problems:
        raise DataError(f"{options.data}: {len(problems)} problems; restore those files from a copy")
    print(f"{options.data}: every byte is as it was written")


def _are_logs(path: str | Path) -> bool:
    """An address elsewhere can only be logs: datasets are opened from this machine."""
    from optimist.data.formats.dqn_replay.layout import is_log

    return "://" in str(path) or is_log(path)


def add_views(parser: Parser) -> None:
    group = parser.add_argument_group("a part of the data")
    group.add_argument("--first", type=whole_number, metavar="int", help="only the first so many steps")
    group.add_argument("--last", type=whole_number, metavar="int", help="only the last so many steps")
    group.add_argument(
        "--fraction", type=number, metavar="number", help="only a random share of the trajectories"
    )
    group.add_argument("--best", type=number, metavar="number", help="only the share with the best returns")


def view(options: argparse.Namespace) -> "Dataset":
    """The dataset, or the part of it that was asked for."""
    from optimist.data.dataset import Dataset

    return part_of(Dataset.open(options.data), options)


def part_of(dataset: "Dataset", options: argparse.Namespace) -> "Dataset":
    for name in ("first", "last", "fraction", "best"):
        if getattr(options, name) is not None:
            dataset = getattr(dataset, name)(getattr(options, name))
    return dataset
