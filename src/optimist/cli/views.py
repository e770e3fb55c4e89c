"""Which part of a dataset is meant: the options --first, --last, --fraction and --best."""

import argparse
from typing import TYPE_CHECKING

from optimist.cli.options import Parser, number, whole_number

if TYPE_CHECKING:
    from optimist.data.dataset import Dataset


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
