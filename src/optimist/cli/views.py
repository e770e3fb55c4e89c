"""The options --first, --last, --fraction and --best, which select a part of a dataset."""

import argparse
from typing import TYPE_CHECKING

from optimist.cli.options import Parser, number, whole_number

if TYPE_CHECKING:
    from optimist.data.dataset import Dataset


VIEWS = ("first", "last", "fraction", "best")


def add_views(parser: Parser) -> None:
    group = parser.add_argument_group("a part of the data; several are taken in this order")
    group.add_argument(
        "--first", type=whole_number, metavar="int", help="only this many steps from the start"
    )
    group.add_argument("--last", type=whole_number, metavar="int", help="only this many steps from the end")
    group.add_argument(
        "--fraction", type=number, metavar="number", help="only this share of the trajectories, at random"
    )
    group.add_argument(
        "--best", type=number, metavar="number", help="only this share of the trajectories, the best"
    )


def view(options: argparse.Namespace) -> "Dataset":
    """The dataset, or the part of it that the options select."""
    from optimist.data.dataset import Dataset

    return part_of(Dataset.open(options.data), options)


def part_of(dataset: "Dataset", options: argparse.Namespace) -> "Dataset":
    for name in VIEWS:
        if getattr(options, name) is not None:
            dataset = getattr(dataset, name)(getattr(options, name))
    return dataset
