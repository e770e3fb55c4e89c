"""The page of a selection: the ranking of all kept policies, and the estimators' curves over training."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from optimist.choosing.estimators import available, estimator
from optimist.choosing.ranking import Ranked, Selection
from optimist.choosing.selecting import LEFT_OUT
from optimist.data.disk.files import make_folder, write_whole
from optimist.data.episodes import episodes_in_words
from optimist.studies.report.figures import colour, dash, dress, laid_out, legend, svg
from optimist.studies.report.page import Picture, page, picture
from optimist.studies.sheet import Cell, Sheet, in_words, number

PAGE = "selection.html"
WIDTH, HEIGHT = 5.5, 3.4  # inches
FAR = 30  # times the median: then the scale is logarithmic


def ranking_sheet(selection: Selection, most: int | None = None) -> Sheet:
    """The policies, the best first, and the notes."""
    played = any(each.returns for each in selection.ranking)
    heads = ["rank", "run", "agent", "step", "seed", *_scores(selection), *(["played"] if played else [])]
    today = [
        "today",
        "the log's own policy",
        "",
        "",
        "",
        Cell(str(selection.today), selection.today.mean),
        "",
        "",
    ]
    rows = [[*today, *([""] if played else [])]]
    rows += [
        [str(place), *_row(each), *([_played(each)] if played else [])]
        for place, each in enumerate(selection.ranking[:most], 1)
    ]
    more = len(selection.ranking) + 1 - len(rows)
    notes = [f"and {more:,} more policies"] * (more > 0) + list(selection.notes)
    if selection.ranking[0].gain:
        notes.append(f"gain: FQE, corrected by held-out outcomes, above today's policy; {LEFT_OUT}")
    return Sheet(f"policies by {estimator(selection.rule).about}", heads, rows, notes)


def _scores(selection: Selection) -> list[str]:
    return [selection.rule, "gain", "support"]


def _row(each: Ranked) -> list[Any]:
    value = Cell("none") if each.value is None else Cell(f"{each.value:.4g}", each.value)
    gain = Cell("none") if each.gain is None else Cell(str(each.gain), each.gain.mean)
    return [str(each.run), each.agent, str(each.step), str(each.seed), value, gain, _share(each.support)]


def _share(share: float) -> Cell:
    return Cell(f"{share:.0%}", share)


def _played(each: Ranked) -> Cell:
    if not each.returns:
        return Cell("")
    mean = float(np.mean(each.returns))
    return Cell(f"{number(mean)} in {episodes_in_words(len(each.returns))}", mean)


def write_selection_page(selection: Selection, out: Path, command: str) -> Path:
    """Write the page into a folder; return its path."""
    facts = {**selection.facts, "rule": estimator(selection.rule).about, "intervals": LEFT_OUT}
    content = page(
        "selection.html.j2",
        title="Which policy to ship",
        headline=f"{selection.answer[:1].upper()}{selection.answer[1:]}.",
        warnings=list(selection.notes),
        figures=list(_pictures(selection)),
        runs=_runs_sheet(selection),
        ranking=ranking_sheet(selection),
        facts={name: in_words(value) for name, value in facts.items()},
        command=command,
    )
    make_folder(out)
    write_whole(out / PAGE, content)
    return out / PAGE


def _runs_sheet(selection: Selection) -> Sheet:
    rows = [_row(each) for each in selection.ranking if selection.runs[each.run] is each]
    return Sheet("the first policy of each run", ["run", "agent", "step", "seed", *_scores(selection)], rows)


def _pictures(selection: Selection) -> Iterator[Picture]:
    """A figure for each score that is known: the mean over the seeds of each run, over training."""
    for score in dict.fromkeys((*available(), selection.rule)):
        about = estimator(score).about
        known = [each for each in selection.ranking if each.scores[score] is not None]
        if known:
            figure = Figure((WIDTH, HEIGHT), layout="constrained")
            _draw(figure, selection, known, score)
            caption = f"{about[:1].upper()}{about[1:]}. The mean over the seeds; the dot is the first policy."
            yield picture(score, caption, svg(laid_out(figure)), WIDTH)


def _draw(figure: Figure, selection: Selection, known: list[Ranked], score: str) -> None:
    axes, handles = figure.subplots(), {}
    for place, run in enumerate(sorted(selection.runs)):
        curve = dict[int, list[float]]()
        for each in known:
            if each.run == run:
                curve.setdefault(each.step, []).append(float(each.scores[score] or 0.0))
        if curve:
            at = sorted(curve)
            means = [float(np.mean(curve[step])) for step in at]
            (handles[str(run)],) = axes.plot(at, means, dash(place), color=colour(place))
            mine, best = selection.runs[run], selection.runs[run].scores[score]
            if best is not None:
                axes.plot([mine.step], [best], "o", color=colour(place))
    sizes = [abs(float(each.scores[score] or 0.0)) for each in known]
    if max(sizes) > FAR * float(np.median(sizes)) > 0:  # diverged agents are many powers of ten away
        axes.set_yscale("symlog")
    dress(axes, xlabel="gradient steps", ylabel=score.replace("_", " "))
    legend(figure, list(handles.values()), list(handles))
