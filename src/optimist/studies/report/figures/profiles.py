"""The share of runs above each score (Agarwal et al. 2021, Figure 5)."""

from collections.abc import Mapping

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from optimist.studies.report import drawing
from optimist.studies.report.drawing import STEPS, Line, draw_lines, dress
from optimist.studies.report.figures import StudyFigure
from optimist.studies.results.findings import StudyResults
from optimist.studies.scores import intervals
from optimist.studies.scores.finding import Finding
from optimist.studies.scores.normalisation import MAIN, kind_title


def draw(study: StudyResults, finding: Finding) -> Figure:
    by_kind = intervals.profiles(finding.scores)
    return profiles(
        {kind_title(kind, finding.evaluations): by_kind[kind] for kind in MAIN if kind in by_kind}
    )


def profiles(by_panel: Mapping[str, Mapping[str, intervals.Profile]]) -> Figure:
    """A panel for each kind of score, with each agent's thresholds and shares; higher is better."""
    with mpl.rc_context(drawing.STYLE):
        size = (max(4.6, 3.4 * len(by_panel)), 3.6)
        figure, grid = drawing.panels(1, len(by_panel), size, sharey=True)
        for axes, (title, agents) in zip(grid, by_panel.items(), strict=True):
            lines = {
                agent: Line(thresholds, share.estimate, band=(share.low, share.high))
                for agent, (thresholds, share) in agents.items()
            }
            draw_lines(axes, lines, step=True)
            drawing.titled(axes, title)
            dress(axes, xlabel="normalised score", ylabel="")
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
            axes.set_ylim(-0.02, 1.02)
        grid[0].set_ylabel("runs above it")
        drawing.legend(figure, *grid[0].get_legend_handles_labels())
    return figure


FIGURE = StudyFigure(
    title="Performance profiles",
    caption="The share of runs on all games above each score, with pointwise 95% bootstrap bands.",
    draw=draw,
    of="reading",
)
