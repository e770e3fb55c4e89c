"""Figure 1: each agent's median normalised score, and the games it wins."""

import textwrap
from collections.abc import Mapping

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from optimist.studies.report import drawing
from optimist.studies.report.drawing import STEPS, Line, draw_lines, dress
from optimist.studies.report.figures import ONE_POINT, StudyFigure
from optimist.studies.results.findings import Finding, StudyResults
from optimist.studies.scores.curves import Curve
from optimist.studies.scores.normalisation import better_curve, median_curve, seed_means, seed_medians

LABEL = 36  # characters of an axis label; longer ones get a second line


def draw(study: StudyResults, finding: Finding) -> Figure | None:
    if finding.evaluations == 1:
        return None
    agents = finding.file.agents
    means = {agent: seed_means(by_game) for agent, by_game in agents.items()}
    return medians(
        {agent: median_curve(curves, study.by) for agent, curves in means.items()},
        {agent: seed_medians(by_game, study.by) for agent, by_game in agents.items()},
        {agent: better_curve(curves, study.by) for agent, curves in means.items()},
        yardstick=study.by.yardstick,
        one=study.ends(finding.file.games)[1],
        games=len(finding.file.games),
        xlabel=study.unit,
    )


def medians(
    curves: Mapping[str, Curve],
    traces: Mapping[str, Mapping[int, Curve]],
    better: Mapping[str, Mapping[int, int]],
    *,
    yardstick: str,
    one: str,
    games: int,
    xlabel: str,
) -> Figure:
    """On the left each agent's median with its seeds as traces, on the right the games in which it is better
    than the yardstick. Scores are shares; 1 is shown as 100% and is the score of `one`."""
    with mpl.rc_context(drawing.STYLE):
        figure, (left, right) = drawing.panels(1, 2, (10.4, 4.2), gridspec_kw={"wspace": 0.06})
        by_agent = {
            agent: Line(*_points(curve), traces=[_points(each) for each in traces.get(agent, {}).values()])
            for agent, curve in curves.items()
        }
        draw_lines(left, by_agent, width=2.2)
        left.axhline(1.0, color=drawing.INK, linewidth=1.1, linestyle="--", zorder=1.5, label=one)
        left.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
        dress(left, xlabel=xlabel, ylabel="median normalised score")
        wins = {agent: Line(*_points(counts)) for agent, counts in better.items()}
        draw_lines(right, wins, list(curves), width=2.2)
        label = textwrap.fill(f"games better than {yardstick} (of {games})", LABEL)
        dress(right, xlabel=xlabel, ylabel=label)
        right.yaxis.set_major_locator(MaxNLocator(6, steps=STEPS, integer=True))
        right.set_ylim(0, max(1, right.get_ylim()[1]))
        drawing.legend(figure, *left.get_legend_handles_labels())
    return figure


def _points(curve: Mapping[int, float]) -> tuple[list[int], list[float]]:
    steps = sorted(curve)
    return steps, [curve[step] for step in steps]


FIGURE = StudyFigure(
    title="Median normalised score (Figure 1)",
    caption="Thick lines: the median over games of the mean over seeds; thin lines: the median of each seed.",
    draw=draw,
    needs=ONE_POINT,
)
