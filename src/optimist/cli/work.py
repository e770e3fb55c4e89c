"""`optimist study work`, `push` and `pull`: runs of a study one by one, and studies at an address."""

import argparse
from pathlib import Path

from optimist.cli.options import Parser, whole_number
from optimist.errors import UsageError, command_line

ADDRESS = "name an address, such as s3://bucket/study"


def work_options(parser: Parser, words: list[str]) -> None:
    parser.demand(
        "out",
        "name the study's folder, or its address",
        metavar="FOLDER",
        help="the study's folder, or its address such as s3://bucket/study",
    )
    parser.add_argument(
        "--scratch",
        type=Path,
        metavar="FOLDER",
        help="local folder for the run of a study at an address [in the user's cache]",
    )
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
    from optimist.studies.work import work as perform

    plugins.allow(options.allow)
    perform(
        options.out,
        index=options.index,
        run=options.name,
        restart=options.restart,
        scratch=options.scratch,
    )


def push_options(parser: Parser, words: list[str]) -> None:
    parser.demand("out", "name the study's folder", metavar="FOLDER", type=Path, help="the study's folder")
    parser.demand("address", ADDRESS, metavar="ADDRESS", help=ADDRESS)


def push(options: argparse.Namespace) -> None:
    """Send a study to an address, such as s3://bucket/study, where workers find it. Only what changed is
    sent."""
    from optimist.studies.status import read_record
    from optimist.studies.store import Store

    read_record(options.out)
    count = Store(_address(options.address)).send(options.out, "")
    print(f"sent {count} files of {options.out} to {options.address}")


def pull_options(parser: Parser, words: list[str]) -> None:
    parser.demand("address", ADDRESS, metavar="ADDRESS", help=ADDRESS)
    parser.demand("out", "name a local folder", metavar="FOLDER", type=Path, help="a local folder")
    parser.add_argument(
        "--checkpoints", action="store_true", help="bring those too: runs can then continue here"
    )


def pull(options: argparse.Namespace) -> None:
    """Bring a study from an address to a local folder, for its status and report."""
    from optimist.studies.store import CHECKPOINTS, Store

    store = Store(_address(options.address))
    store.bring_file("study.json", options.out)
    store.bring("", options.out, without=() if options.checkpoints else (CHECKPOINTS,))
    print(f"{options.address} is in {options.out}; see {command_line('study', 'status', options.out)}")


def _address(text: str) -> str:
    if "://" not in text:
        raise UsageError(f'"{text}" is not an address: {ADDRESS}')
    return text
