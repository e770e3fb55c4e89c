"""`optimist study report`: what a study found, from its run folders; or two studies side by side."""

import logging
from pathlib import Path

from optimist.cli.options import Parser
from optimist.errors import UsageError

log = logging.getLogger("optimist")


def report(words: list[str]) -> None:
    parser = Parser(
        "optimist study report",
        description="What a study found, as one page; finished or not. Two folders: side by side.",
    )
    parser.add_argument("folders", metavar="FOLDER", nargs="+", type=Path, help="one or two studies' folders")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PAGE.html",
        help="where two studies' page goes [compared.html]; one study's is its own report.html",
    )
    parser.add_argument(
        "--normaliser",
        metavar="NAME|CSV",
        help="what 0 and 100%% are, as optimist scores has it [the study's own player and random play]",
    )
    options = parser.options(words)
    if len(options.folders) > 2:
        raise UsageError(f"{len(options.folders)} folders: name one study, or two to be compared")
    if len(options.folders) == 1 and options.out:
        raise UsageError("--out is for two studies: the page of one is report.html in its own folder")
    from optimist.studies.scores.normalisation import normaliser

    by = normaliser(options.normaliser) if options.normaliser else None
    if len(options.folders) == 1:
        from optimist.studies.report.study_report import write_findings

        written, warned = write_findings(options.folders[0], by)
        print(f"wrote {written[0]}, with its tables and figures in {options.folders[0] / 'results'}")
    else:
        from optimist.studies.report.side_by_side import write_side_by_side

        page = options.out or Path("compared.html")
        first, second = options.folders
        warned = write_side_by_side(page, first, second, by)
        print(f"wrote {page}")
    tell(warned)


def tell(warned: list[str]) -> None:
    """On the console too: a page may be opened by someone else, later."""
    for line in warned:
        log.warning("%s", line)
