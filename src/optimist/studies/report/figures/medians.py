"""Figure 1: each agent's median normalised score, and the games it wins."""

import textwrap
from collections.abc import Mapping

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from optimist.studies.report import drawing
from optimist.studies.report.drawing import STEPS, Line, draw_lines, dress
from optimist.studies.report.figures import ONE_POINT, StudyFigure
from optimist.studies.results.findings import StudyResults
from optimist.studies.scores import intervals
from optimist.studies.scores.finding import Finding
from optimist.studies.scores.intervals import Medians

LABEL = 36  # characters of an axis label; longer ones get a second line


def draw(study: StudyResults, finding: Finding) -> Figure | None:
    if finding.evaluations == 1:
        return None
    return medians(
        {agent: intervals.medians(games, study.by) for agent, games in finding.file.agents.items()},
        yardstick=study.by.yardstick,
        one=study.ends(finding.file.games)[1],
        games=len(finding.file.games),
        xlabel=study.unit,
    )


def medians(agents: Mapping[str, Medians], *, yardstick: str, one: str, games: int, xlabel: str) -> Figure:
    """On the left each agent's median with its seeds as traces, on the right the games in which it is better
    than the yardstick. Scores are shares; 1 is shown as 100% and is the score of `one`."""
    with mpl.rc_context(drawing.STYLE):
        figure, (left, right) = drawing.panels(1, 2, (10.4, 4.2), gridspec_kw={"wspace": 0.06})
        by_agent = {
            agent: Line(each.steps, each.median, traces=[(each.steps, trace) for trace in each.traces])
            for agent, each in agents.items()
        }
        draw_lines(left, by_agent, width=2.2)
        left.axhline(1.0, color=drawing.INK, linewidth=1.1, linestyle="--", zorder=1.5, label=one)
        left.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
        dress(left, xlabel=xlabel, ylabel="median normalised score")
        draw_lines(right, {agent: Line(each.steps, each.better) for agent, each in agents.items()}, width=2.2)
        label = textwrap.fill(f"games better than {yardstick} (of {games})", LABEL)
        dress(right, xlabel=xlabel, ylabel=label)
        right.yaxis.set_major_locator(MaxNLocator(6, steps=STEPS, integer=True))
        right.set_ylim(0, max(1, right.get_ylim()[1]))
        drawing.legend(figure, *left.get_legend_handles_labels())
    return figure


FIGURE = StudyFigure(
    title="Median normalised score (Figure 1)",
    caption="Thick lines: the median over games of the mean over seeds; thin lines: the median of each seed.",
    draw=draw,
    needs=ONE_POINT,
)
