"""The interquartile mean of each agent, with its interval."""

import textwrap
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from optimist.studies.report import drawing
from optimist.studies.report.drawing import FAINT, INK, STEPS, colour, dress
from optimist.studies.report.figures import StudyFigure
from optimist.studies.results.findings import StudyResults
from optimist.studies.scores.finding import Finding
from optimist.studies.scores.intervals import Certainty
from optimist.studies.scores.normalisation import kind_title

WORDS = 36  # letters in a line below a panel
PANELS = ("last", "best", "cross", "chosen")


def draw(study: StudyResults, finding: Finding, *, tall: bool = False) -> Figure:
    _, one = study.ends(finding.file.games)
    return interval_plot(finding.certainty, finding.evaluations, one, tall=tall)


def interval_plot(rows: Sequence[Certainty], evaluations: int, one: str, *, tall: bool = False) -> Figure:
    """A dot and a 95% bar for each agent, and a panel for each kind of score. `one` scores 1. `tall` puts
    the panels below each other, for a phone."""
    kinds = [kind for kind in PANELS if any(row.score == kind for row in rows)]
    agents = list(dict.fromkeys(row.agent for row in rows))
    each = 0.9 + 0.32 * len(agents)
    with mpl.rc_context(drawing.STYLE):
        size = (4.2, each * len(kinds)) if tall else (2.4 + 2.9 * len(kinds), each)
        shape = (len(kinds), 1) if tall else (1, len(kinds))
        figure, grid = drawing.panels(*shape, size, sharey=True, sharex=True)
        for axes, kind in zip(grid, kinds, strict=True):
            for row in (row for row in rows if row.score == kind):
                place, sure = agents.index(row.agent), row.iqm
                if sure.low is not None:
                    axes.plot([sure.low, sure.high], [place, place], color=colour(place), linewidth=3)
                axes.plot([sure.estimate], [place], "o", color=colour(place), markeredgecolor=INK)
            axes.axvline(1.0, color=INK, linewidth=1.0, linestyle="--", zorder=1)
            drawing.titled(axes, kind_title(kind, evaluations))
            is_lowest = not tall or kind == kinds[-1]
            dress(axes, xlabel=textwrap.fill(f"1 is {one}", WORDS) if is_lowest else "", ylabel="")
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
            axes.grid(axis="x", color=FAINT, alpha=0.25, linewidth=0.7)
            axes.set_yticks(range(len(agents)), agents, parse_math=False)
            axes.set_ylim(len(agents) - 0.5, -0.5)
    return figure


FIGURE = StudyFigure(
    title="Interquartile mean of each agent",
    caption="Dots are interquartile means over games and seeds, bars 95% bootstrap intervals. Best is "
    "chosen with the scores that it reports, so it is too high; cross-chosen best scores each seed at the "
    "evaluation that is best for the other seeds. Chosen offline, if it is shown, scores each seed at the "
    "evaluation that optimist select chose by its log.",
    draw=draw,
)
