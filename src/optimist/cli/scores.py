"""`optimist scores`: the paper's Table 1 from a table of scores."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from optimist.errors import UsageError, did_you_mean

FORMAT = """FILE.csv has the columns game,agent,seed,score and, if there is more than one evaluation,
iteration or step. A normaliser of your own is a CSV file with the columns game,random,dqn: the scores of
random play and of the agent to compare with, whose column may have another name."""


def scores(
    files: Annotated[
        Sequence[Path],
        "scores by game, agent and seed; agents of a second file are called REM (B), of a third REM (C)",
        "FILE.csv ...",
    ],
    *,
    normaliser: Annotated[
        str, "what 0 and 100% are: dqn-random, human-random, or a CSV file", "NAME|CSV"
    ] = "dqn-random",
    incomplete: Annotated[
        str, "for games without all agents, seeds and evaluations: refuse or leave-out"
    ] = "refuse",
    recent: Annotated[int, "evaluations in the mean of the last ones"] = 3,
    out: Annotated[
        Path | None, "write the tables, the comparison of every two agents, and figures", "FOLDER"
    ] = None,
    agent: Annotated[Iterable[str], "only this agent; may be repeated [all]", "NAME"] = (),
) -> None:
    """Make the paper's Table 1 from a table of scores, beside the paper's own numbers."""
    from optimist.studies.scores import normalisation
    from optimist.studies.scores.score_files import complete, incomplete_games, read_scores

    if incomplete not in ("refuse", "leave-out"):
        hint = did_you_mean(incomplete, ("refuse", "leave-out"))
        raise UsageError(f'--incomplete has no value "{incomplete}": {hint}')
    if recent < 1:
        raise UsageError(f"--recent {recent}: it must be at least 1")
    by = normalisation.normaliser(normaliser)
    asked = _only(read_scores(*files), list(agent))
    chosen, left_out = complete(asked, leave_out=incomplete == "leave-out")
    notes = [f"left out of every number: {incomplete_games(left_out, len(asked.games))}"] if left_out else []
    _print_tables(chosen, by, recent, notes, out)


def _only(scores, names: list[str]):
    """The scores of these agents only, in this order."""
    for name in names:
        if name not in scores.agents:
            raise UsageError(f'there are no scores of "{name}": {did_you_mean(name, scores.agents)}')
    return replace(scores, agents={name: scores.agents[name] for name in names}) if names else scores


def _print_tables(scores, by, recent: int, notes: list[str], out: Path | None) -> None:
    from optimist.studies.scores import table_one
    from optimist.studies.scores.normalisation import MAIN
    from optimist.studies.sheet import print_sheet

    rows, by_agent = table_one.table_one(scores, by, recent), table_one.per_game(scores, by, recent)
    games = [row for mine in by_agent.values() for row in mine]
    recent = min(recent, max(row.evaluations for row in rows))
    print_sheet(table_one.per_game_sheet(games, by, MAIN, recent))
    print_sheet(table_one.sheet(rows, by, recent, kinds=MAIN, left_out=notes))
    if out:
        written = table_one.write(out, rows, games, by, recent, notes)
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
