"""`optimist study work`: one run of a study, for schedulers that start a process for each."""

import argparse
from pathlib import Path

from optimist.cli.options import Parser, whole_number


def work_options(parser: Parser, words: list[str]) -> None:
    parser.demand("out", "name the study's folder", metavar="FOLDER", type=Path, help="the study's folder")
    parser.add_argument("--index", type=whole_number, metavar="N", help="its number in the study, from 0")
    parser.add_argument("--run", dest="name", metavar="NAME", help="its name, instead of a number")
    parser.add_argument(
        "--restart", action="store_true", help="start it again if its folder holds a run of other settings"
    )
    parser.add_argument(
        "--allow", action="append", default=[], metavar="module", help="a module that the run may import"
    )


def work(options: argparse.Namespace) -> None:
    """Run one run of a study, from its last checkpoint. For schedulers that start a process for each run; it
    waits for the log that the run needs."""
    from optimist import plugins
    from optimist.studies.engines.work import work as perform

    plugins.allow(options.allow)
    perform(options.out, index=options.index, run=options.name, restart=options.restart)
