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
    from optimist.studies.scores import normalisation, table_one
    from optimist.studies.scores.finding import Finding
    from optimist.studies.scores.score_files import complete, read_scores
    from optimist.studies.sheet import print_sheet

    if incomplete not in ("refuse", "leave-out"):
        hint = did_you_mean(incomplete, ("refuse", "leave-out"))
        raise UsageError(f'--incomplete has no value "{incomplete}": {hint}')
    if recent < 1:
        raise UsageError(f"--recent {recent}: it must be at least 1")
    by = normalisation.normaliser(normaliser)
    every = _only(read_scores(*files), list(agent))
    whole, left_out = complete(every, leave_out=incomplete == "leave-out")
    finding = Finding(whole, by, left_out, recent=recent)
    kinds, last = normalisation.MAIN, min(recent, finding.evaluations)
    print_sheet(table_one.per_game_sheet(finding.game_rows, by, kinds, last))
    print_sheet(finding.table(kinds=kinds))
    if out:
        print("wrote " + " and ".join(map(str, _write(finding, out))))


def _only(scores, names: list[str]):
    """The scores of these agents only, in this order."""
    for name in names:
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
