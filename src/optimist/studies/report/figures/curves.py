"""Figures 3 and 7: learning curves, a panel for each game."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from optimist.studies.report import drawing
from optimist.studies.report.drawing import INK, LEVELS, Line, colour, dash, draw_levels, draw_lines, dress
from optimist.studies.report.figures import ONE_POINT, StudyFigure
from optimist.studies.results.findings import StudyResults, short_names
from optimist.studies.scores.curves import Curve, Seeds
from optimist.studies.scores.finding import Finding

WINDOW = 5  # evaluations that the paper smooths over
MANY = 20  # games from which on panels are small
ACROSS = 3  # panels in a row of a page; four if there are many
SMOOTHED = f"Mean over seeds and one deviation around it, smoothed over {WINDOW} evaluations"


def draw(study: StudyResults, finding: Finding) -> Figure | None:
    if finding.evaluations == 1:
        return None
    games = finding.file.games
    return curve_grid(
        by_panel(finding, games),
        {short: study.levels(finding.part, game) for game, short in short_names(games).items()},
        xlabel=study.unit,
        columns=4 if len(games) >= MANY else min(len(games), ACROSS),
        traces=len(games) < MANY,
    )


def by_panel(finding: Finding, games: Sequence[str]) -> dict[str, dict[str, Seeds]]:
    """The curves by short name of the game and by agent."""
    agents = finding.file.agents.items()
    return {
        short: {agent: by_game[game] for agent, by_game in agents}
        for game, short in short_names(games).items()
    }


def curve_grid(
    games: Mapping[str, Mapping[str, Mapping[int, Curve]]],
    levels: Mapping[str, Mapping[str, float]],
    *,
    xlabel: str,
    ylabel: str = "average return",
    columns: int,
    window: int = WINDOW,
    traces: bool = True,
) -> Figure:
    """A panel per game with each agent's mean over seeds, one (population) deviation around it and the seeds
    as traces, all smoothed over `window` evaluations, and horizontal lines.

    `games` is game -> agent -> seed -> curve, `levels` is game -> name of the line -> its height."""
    agents = list(dict.fromkeys(agent for panel in games.values() for agent in panel))
    names = list(dict.fromkeys(name for lines in levels.values() for name in lines))
    many, down = len(games) >= MANY, math.ceil(len(games) / columns)
    across, tall = (2.1, 1.75) if many else (2.9, 2.7)  # inches of a panel
    width = max(6.4, columns * across)  # room for the legend if there are few panels
    legend_rows = math.ceil(len([*agents, *names]) / drawing.legend_columns(width, [*agents, *names]))
    looks: list[dict[str, Any]] = [
        {"color": colour(index), "linestyle": dash(index), "linewidth": 2} for index in range(len(agents))
    ]
    looks += [{"color": INK, "linestyle": LEVELS[index % len(LEVELS)]} for index in range(len(names))]
    with mpl.rc_context({**drawing.STYLE, "font.size": 8 if many else 10}):
        figure, grid = drawing.panels(down, columns, (width, down * tall + 0.2 * legend_rows + 0.4))
        for axes, (game, curves) in zip(grid, games.items(), strict=False):
            lines = {agent: _mean(seeds, window, traces) for agent, seeds in curves.items()}
            draw_lines(axes, lines, agents, width=1.6)
            draw_levels(axes, levels.get(game, {}), names)
            dress(axes, xlabel="", ylabel="", ticks=4 if many else 5)
            axes.yaxis.set_major_formatter(FuncFormatter(lambda score, _: drawing.short_count(score)))
            drawing.titled(axes, game, 9 if many else 11)
        for axes in grid[len(games) :]:
            axes.remove()
        for axes in grid[max(0, len(games) - columns) : len(games)]:  # the lowest of each column
            axes.set_xlabel(xlabel)
        if down == 1:  # `supylabel` would be too far from a single row
            grid[0].set_ylabel(ylabel)
        else:
            figure.supylabel(ylabel, fontsize=10)
        drawing.legend(figure, [Line2D([], [], **look) for look in looks], [*agents, *names])
    return figure


def _mean(seeds: Mapping[int, Curve], window: int, traces: bool) -> Line:
    smooth = [smoothed(curve, window) for curve in seeds.values()]
    shared = sorted(set.intersection(*(set(curve) for curve in smooth)))
    table = np.array([[curve[step] for step in shared] for curve in smooth])
    mean, deviation = table.mean(axis=0), table.std(axis=0)
    thin = [(list(curve), list(curve.values())) for curve in smooth if traces and len(smooth) > 1]
    return Line(shared, mean, band=(mean - deviation, mean + deviation), traces=thin)


def smoothed(curve: Curve, window: int = WINDOW) -> Curve:
    """At each evaluation the mean of the last `window` evaluations; the first have fewer."""
    steps = sorted(curve)
    sums = np.cumsum([0.0, *(curve[step] for step in steps)])
    ends = np.arange(1, len(steps) + 1)
    begins = np.maximum(0, ends - window)
    return dict(zip(steps, ((sums[ends] - sums[begins]) / (ends - begins)).tolist(), strict=True))


FIGURE = StudyFigure(
    title="Learning curves (Figures 3 and 7)",
    caption=f"{SMOOTHED}. The horizontal lines are returns in the data, and random play.",
    draw=draw,
    needs=ONE_POINT,
)
