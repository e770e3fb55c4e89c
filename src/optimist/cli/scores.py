"""`optimist scores`: the paper's Table 1 from a table of scores."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from optimist.cli.options import Parser, command, whole_number
from optimist.errors import UsageError, did_you_mean

FORMAT = """FILE.csv has the columns game,agent,seed,score and, if there is more than one evaluation,
iteration or step. A normaliser of your own is a CSV file with the columns game,random,dqn: the scores of
random play and of the agent to compare with, whose column may have another name."""


def add(commands: Any) -> None:
    command(commands, "scores", scores, _options, epilog=FORMAT)


def _options(parser: Parser, words: list[str]) -> None:
    parser.add_argument(
        "files",
        metavar="FILE.csv",
        nargs="+",
        type=Path,
        help="scores by game, agent and seed; agents of a second file are called REM (B), of a third REM (C)",
    )
    parser.add_argument(
        "--normaliser",
        metavar="NAME|CSV",
        help="what 0 and 100%% are: dqn-random, human-random, or a CSV file [dqn-random]",
    )
    parser.add_argument(
        "--incomplete",
        default="refuse",
        metavar="name",
        help="for games without all agents, seeds and evaluations: refuse or leave-out [refuse]",
    )
    parser.add_argument(
        "--recent", type=whole_number, metavar="int", help="evaluations in the mean of the last ones [3]"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="write the tables, the comparison of every two agents, and figures",
    )
    parser.add_argument(
        "--agent", action="append", metavar="NAME", help="only this agent; can be repeated [all]"
    )


def scores(options: argparse.Namespace) -> None:
    """Make the paper's Table 1 from a table of scores, beside the paper's own numbers."""
    from optimist.studies.scores import table_one
    from optimist.studies.scores.curves import RECENT
    from optimist.studies.scores.finding import Finding
    from optimist.studies.scores.normalisation import DEFAULT, MAIN, normaliser
    from optimist.studies.scores.score_files import complete, read_scores
    from optimist.studies.sheet import print_sheet

    if options.incomplete not in ("refuse", "leave-out"):
        hint = did_you_mean(options.incomplete, ("refuse", "leave-out"))
        raise UsageError(f'--incomplete has no value "{options.incomplete}": {hint}')
    recent = RECENT if options.recent is None else options.recent
    if recent < 1:
        raise UsageError(f"--recent {recent}: it must be at least 1")
    by = normaliser(options.normaliser or DEFAULT)
    every = _only(read_scores(*options.files), options.agent)
    file, left_out = complete(every, leave_out=options.incomplete == "leave-out")
    finding = Finding(file, by, left_out, recent=recent)
    print_sheet(table_one.per_game_sheet(finding.game_rows, by, MAIN, min(recent, finding.evaluations)))
    print_sheet(finding.table(kinds=MAIN))
    if options.out:
        print("wrote " + " and ".join(map(str, _write(finding, options.out))))


def _only(scores, names: list[str] | None):
    """The scores of these agents only, in this order."""
    for name in names or ():
        if name not in scores.agents:
            raise UsageError(f'there are no scores of "{name}": {did_you_mean(name, scores.agents)}')
    return replace(scores, agents={name: scores.agents[name] for name in names}) if names else scores


def _write(finding, out: Path) -> list[Path]:
    """Write the tables, the differences of every pair of agents, and the figures."""
    from optimist.data.disk.files import write_whole
    from optimist.studies.report import drawing
    from optimist.studies.report.figures.intervals import interval_plot
    from optimist.studies.report.figures.iqm import iqm_over_training
    from optimist.studies.scores import intervals
    from optimist.studies.sheet import records_csv

    file, (zero, one) = finding.file, finding.by.ends(finding.file.games)
    tables, pairs = finding.write(out), out / "pairs.csv"
    write_whole(pairs, records_csv(intervals.pairs(finding.scores)).encode())
    curves = intervals.over_training(file, finding.by)
    figures = {
        out / "intervals.png": interval_plot(finding.certainty, finding.evaluations, one),
        out / "iqm.png": iqm_over_training(curves, zero, one, file.axis),
    }
    for path, figure in figures.items():
        drawing.save_png(drawing.laid_out(figure), path)
    return [*tables, pairs, *figures]
