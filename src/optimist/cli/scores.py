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
    from optimist.studies.scores.curves import RECENT
    from optimist.studies.scores.normalisation import DEFAULT, normaliser
    from optimist.studies.scores.score_files import complete, incomplete_games, read_scores

    if options.incomplete not in ("refuse", "leave-out"):
        hint = did_you_mean(options.incomplete, ("refuse", "leave-out"))
        raise UsageError(f'--incomplete has no value "{options.incomplete}": {hint}')
    recent = RECENT if options.recent is None else options.recent
    if recent < 1:
        raise UsageError(f"--recent {recent}: it must be at least 1")
    by = normaliser(options.normaliser or DEFAULT)
    asked = _only(read_scores(*options.files), options.agent)
    chosen, left_out = complete(asked, leave_out=options.incomplete == "leave-out")
    passed_over = (
        f"left out of every number: {incomplete_games(left_out, len(asked.games))}" if left_out else ""
    )
    _print_tables(chosen, by, recent, passed_over, options.out)


def _only(scores, names: list[str] | None):
    """The scores of these agents only, in this order."""
    for name in names or ():
        if name not in scores.agents:
            raise UsageError(f'there are no scores of "{name}": {did_you_mean(name, scores.agents)}')
    return replace(scores, agents={name: scores.agents[name] for name in names}) if names else scores


def _print_tables(scores, by, recent: int, passed_over: str, out: Path | None) -> None:
    from optimist.studies.scores import table_one
    from optimist.studies.scores.normalisation import MAIN
    from optimist.studies.sheet import print_sheet

    rows, by_agent = table_one.table_one(scores, by, recent), table_one.per_game(scores, by, recent)
    games = [row for mine in by_agent.values() for row in mine]
    left_out = [passed_over] if passed_over else []
    recent = min(recent, max(row.evaluations for row in rows))
    print_sheet(table_one.per_game_sheet(games, by, MAIN, recent))
    print_sheet(table_one.sheet(rows, by, recent, kinds=MAIN, left_out=left_out))
    if out:
        written = table_one.write(out, rows, games, by, recent, left_out)
        written += _write_verdict(scores, by, out)
        print("wrote " + " and ".join(map(str, written)))


def _write_verdict(scores, by, out: Path) -> list[Path]:
    """Write the intervals of every agent, the differences of every pair, and the figures."""
    from optimist.data.disk.files import write_whole
    from optimist.studies.report import drawing
    from optimist.studies.report.figures.intervals import interval_plot
    from optimist.studies.report.figures.iqm import iqm_over_training
    from optimist.studies.scores import intervals
    from optimist.studies.sheet import records_csv

    matrices = intervals.matrices(scores, by)
    rows = intervals.rows(matrices)
    tables: dict[str, list] = {"aggregates.csv": rows, "pairs.csv": intervals.pairs(matrices)}
    for name, table in tables.items():
        write_whole(out / name, records_csv(table).encode())
    evaluations = len(next(iter(next(iter(next(iter(scores.agents.values())).values())).values())))
    zero, one = by.ends(scores.games)
    curves = intervals.over_training(scores, by)
    figures = {
        "intervals.png": interval_plot(rows, evaluations, one),
        "iqm.png": iqm_over_training(curves, zero, one, scores.axis),
    }
    for name, figure in figures.items():
        drawing.save_png(drawing.laid_out(figure), out / name)
    return [out / name for name in (*tables, *figures)]
