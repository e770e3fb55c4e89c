"""The page of a selection: the ranking of all kept policies, and the estimators' curves over training."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from optimist.choosing.estimators import available, estimator
from optimist.choosing.ranking import Ranked, Selection
from optimist.choosing.selecting import LEFT_OUT
from optimist.data.views import episodes_in_words
from optimist.studies.report.drawing import Line, chart
from optimist.studies.report.page import Picture, picture, write_html
from optimist.studies.sheet import Cell, Sheet, in_words, number

PAGE = "selection.html"
SIZE = (5.5, 3.4)  # inches
FAR = 30  # times the median: then the scale is logarithmic


def ranking_sheet(selection: Selection, most: int | None = None) -> Sheet:
    """The policies, the best first, and the notes."""
    played = ["played"] if any(each.returns for each in selection.ranking) else []
    today = Cell(str(selection.today), selection.today.mean)
    rows: list[list[Any]] = [
        ["today", "the log's own policy", "", "", "", today, "", "", *("" for _ in played)]
    ]
    for place, each in enumerate(selection.ranking[:most], 1):
        rows.append([str(place), *_row(each)])
        if played and each.returns:
            mean = float(np.mean(each.returns))
            rows[-1].append(Cell(f"{number(mean)} in {episodes_in_words(len(each.returns))}", mean))
        elif played:
            rows[-1].append("")
    more = len(selection.ranking) + 1 - len(rows)
    notes = [f"and {more:,} more policies"] * (more > 0) + list(selection.notes)
    if selection.ranking[0].gain:
        notes.append(f"gain: FQE, corrected by held-out outcomes, above today's policy; {LEFT_OUT}")
    heads = ["rank", *_heads(selection), *played]
    return Sheet(f"policies by {estimator(selection.rule).about}", heads, rows, notes)


def _heads(selection: Selection) -> list[str]:
    return ["run", "agent", "step", "seed", selection.rule, "gain", "support"]


def _row(each: Ranked) -> list[Any]:
    value = Cell("none") if each.value is None else Cell(f"{each.value:.4g}", each.value)
    gain = Cell("none") if each.gain is None else Cell(str(each.gain), each.gain.mean)
    support = Cell(f"{each.support:.0%}", each.support)
    return [str(each.run), each.agent, str(each.step), str(each.seed), value, gain, support]


def write_selection_page(selection: Selection, out: Path, command: str) -> Path:
    """Write the page into a folder; return its path."""
    firsts = [_row(each) for each in selection.ranking if selection.runs[each.run] is each]
    facts = {**selection.facts, "rule": estimator(selection.rule).about, "intervals": LEFT_OUT}
    write_html(
        out / PAGE,
        "selection.html.j2",
        title="Which policy to ship",
        headline=f"{selection.answer[:1].upper()}{selection.answer[1:]}.",
        warnings=list(selection.notes),
        figures=list(_pictures(selection)),
        runs=Sheet("the first policy of each run", _heads(selection), firsts),
        ranking=ranking_sheet(selection),
        facts={name: in_words(value) for name, value in facts.items()},
        command=command,
    )
    return out / PAGE


def _pictures(selection: Selection) -> Iterator[Picture]:
    """A figure for each score that is known: the mean over the seeds of each run, over training."""
    for rule in dict.fromkeys((*available(), selection.rule)):
        about = estimator(rule).about
        known = [each for each in selection.ranking if each.scores[rule] is not None]
        if known:
            lines = {str(run): _line(selection.runs[run], known, rule) for run in sorted(selection.runs)}
            scores = [abs(each.scores[rule] or 0.0) for each in known]
            # diverged agents are many powers of ten away
            scale = "symlog" if max(scores) > FAR * float(np.median(scores)) > 0 else "linear"
            figure = chart(
                {run: line for run, line in lines.items() if line},
                xlabel="gradient steps",
                ylabel=rule.replace("_", " "),
                size=SIZE,
                scale=scale,
            )
            caption = f"{about[:1].upper()}{about[1:]}. The mean over the seeds; the dot is the first policy."
            yield picture(rule, caption, figure)


def _line(first: Ranked, known: list[Ranked], rule: str) -> Line | None:
    """The scores of the run whose first policy this is."""
    curve = dict[int, list[float]]()
    for each in known:
        if each.run == first.run:
            curve.setdefault(each.step, []).append(each.scores[rule] or 0.0)
    if not curve:
        return None
    steps, best = sorted(curve), first.scores[rule]
    dot = None if best is None else (first.step, best)
    return Line(steps, [float(np.mean(curve[step])) for step in steps], dot=dot)
