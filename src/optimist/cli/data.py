"""`optimist data ...`: what a dataset holds, whether it is whole, and which part of it is meant."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optimist.cli import replay as replay_commands
from optimist.cli.options import Parser, number, whole_number
from optimist.errors import DataError

if TYPE_CHECKING:
    from optimist.data.dataset import Dataset


def add(commands: Any) -> None:
    data: Parser = commands.add_parser(
        "data",
        help="what a dataset holds; check, import or export one",
        description="Datasets: what they hold, whether they are whole, and other people's formats.",
        run=lambda _: data.print_help(),
    )
    actions = data.add_subparsers(title="commands", metavar="COMMAND")
    actions.add_parser(
        "info",
        help="what a dataset, or a view of it, holds",
        description="What a dataset, or a view of it, holds.",
        fill=_info_options,
        run=_info,
    )
    actions.add_parser(
        "verify",
        help="check every byte of a dataset, or of DQN Replay logs",
        description="Check every byte of a dataset, or of DQN Replay logs.",
        fill=_verify_options,
        run=_verify,
    )
    replay_commands.add(actions)


def _info_options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("data", metavar="DATA", type=Path, help="a dataset's folder")
    parser.add_argument("--json", action="store_true", help="everything, for programs")
    add_views(parser)


def _info(options: argparse.Namespace) -> None:
    if _are_logs(options.data):
        raise DataError(
            f"{options.data} holds DQN Replay logs; import them first: "
            f"optimist data import dqn-replay {options.data} --out DATA"
        )
    from optimist.cli.tables import card_table, print_table
    from optimist.data.card import card

    facts = card(view(options))
    print(json.dumps(facts, indent=2)) if options.json else print_table(card_table(facts, str(options.data)))


def _verify_options(parser: Parser, words: list[str]) -> None:
    parser.add_argument("data", metavar="PATH", help="a dataset's folder, or a run's logs (also at gs://...)")


def _verify(options: argparse.Namespace) -> None:
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
