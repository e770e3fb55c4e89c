"""`optimist doctor`: what is wrong, and how to mend it."""

import argparse
import itertools
from pathlib import Path
from typing import Any

from optimist.cli.options import Parser, command


def add(commands: Any) -> None:
    command(commands, "doctor", doctor, _options)


def _options(parser: Parser, words: list[str]) -> None:
    parser.add_argument(
        "folders", metavar="FOLDER", nargs="*", type=Path, help="a dataset, a run or a study to look at"
    )


def doctor(options: argparse.Namespace) -> None:
    """Say what is wrong with the installation, the device, the disk or a folder, and how to mend it.

    A dataset and the files of a run are read to their last byte."""
    from optimist.studies.diagnosis import device, disk, folder, installation

    wrong = []
    findings = itertools.chain(installation(), device(), disk(Path()), *map(folder, options.folders))
    for finding in findings:
        mark = "wrong" if finding.problem else "note" if finding.note else "ok"
        print(f"{mark:6}{finding.text}")
        wrong += [finding.problem] if finding.problem else []
    if wrong:
        count = "1 problem" if len(wrong) == 1 else f"{len(wrong)} problems"
        raise wrong[0](f"{count} found; each line above that begins with wrong names its remedy")
