"""The paper's figures, each drawn from plain data as a matplotlib Figure."""

import math
import textwrap
from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from optimist.studies.report.figures import (
    COLOURS,
    INK,
    PAPER,
    STEPS,
    STYLE,
    Dash,
    colour,
    dash,
    dress,
    legend,
    legend_columns,
    short_count,
)
from optimist.studies.scores.curves import Curve

WINDOW = 5  # evaluations that the paper smooths over
LINEAR = 10  # percent up to which the axis of the bars is linear; beyond it is logarithmic
LEVELS: tuple[Dash, ...] = ("-", "--", ":")  # the paper: best policy solid, average behaviour dashed
MARKS: tuple[dict, ...] = (  # marks beside bars, with different shapes
    {"linestyle": "", "marker": "o", "color": INK, "markerfacecolor": PAPER, "markersize": 5},
    {"linestyle": "", "marker": "_", "color": INK, "markersize": 11, "markeredgewidth": 1.6},
)
LABEL = 36  # characters of an axis label; longer ones get a second line
MANY = 20  # games from which on labels are vertical and panels small


def medians(
    curves: Mapping[str, Curve],
    traces: Mapping[str, Mapping[int, Curve]] | None = None,
    better: Mapping[str, Mapping[int, int]] | None = None,
    *,
    yardstick: str = "DQN",
    one: str = "",
    games: int | None = None,
    xlabel: str = "iteration",
) -> Figure:
    """Figure 1: (a) each agent's median normalised score with its seeds as traces, (b) the games it wins.

    Scores are shares, 1 is shown as 100% and is `one`, if not the yardstick; without `better` there is only
    (a), as in Figure 5."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.4 if better else 6.4, 4.2), layout="constrained", facecolor=PAPER)
        axes, *others = figure.subplots(1, 2 if better else 1, squeeze=False, gridspec_kw={"wspace": 0.06})[0]
        for index, (agent, curve) in enumerate(curves.items()):
            for trace in (traces or {}).get(agent, {}).values():
                _line(axes, trace, color=colour(index), alpha=0.3, linewidth=0.8)
            _line(axes, curve, color=colour(index), linewidth=2.2, linestyle=dash(index), label=agent)
        axes.axhline(1.0, color=INK, linewidth=1.1, linestyle="--", zorder=1.5, label=one or yardstick)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
        dress(axes, xlabel=xlabel, ylabel="median normalised score")
        for right in others:
            for agent, counts in (better or {}).items():
                index = list(curves).index(agent)
                _line(right, counts, color=colour(index), linewidth=2.2, linestyle=dash(index))
            wins = f"games better than {yardstick}" + (f" (of {games})" if games else "")
            dress(right, xlabel=xlabel, ylabel=textwrap.fill(wins, LABEL))
            right.yaxis.set_major_locator(MaxNLocator(6, steps=STEPS, integer=True))
            right.set_ylim(0, max(1, right.get_ylim()[1]))
        legend(figure, *axes.get_legend_handles_labels())
    return figure


def improvement_bars(
    improvements: Mapping[str, float],
    *,
    title: str = "",
    yardstick: str = "DQN (Nature)",
    bars: str = "best",
    marks: Mapping[str, Mapping[str, float]] | None = None,
) -> Figure:
    """Figure 4: improvement per game in percent, the worst first; linear near 0 and logarithmic beyond.

    `marks` are drawn over the bars, such as {"last": percent by game}, with a legend."""
    games = sorted(improvements, key=lambda game: (improvements[game], game))
    values = [improvements[game] for game in games]
    many = len(games) >= MANY
    with mpl.rc_context(STYLE):
        size = (max(4.8, 0.19 * len(games) + 1.2) if many else max(4.8, 0.62 * len(games) + 1.4), 4.4)
        figure = Figure(figsize=size, layout="constrained", facecolor=PAPER)
        axes = figure.add_subplot(facecolor=PAPER)
        colours = [COLOURS[0] if value > 0 else COLOURS[1] for value in values]
        axes.bar(range(len(games)), values, width=0.78, color=colours)
        for index, (name, by_game) in enumerate((marks or {}).items()):
            heights = [by_game[game] for game in games]
            axes.plot(range(len(games)), heights, **MARKS[index % len(MARKS)], label=name)
            values = [*values, *heights]
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set_yscale("symlog", linthresh=LINEAR, linscale=0.6)
        axes.yaxis.set_minor_locator(NullLocator())
        dress(axes, xlabel="", ylabel=f"improvement over {yardstick}")
        _percent_ticks(axes, values)
        axes.set_xticks(range(len(games)), games, parse_math=False)
        if many:
            axes.tick_params(axis="x", labelrotation=90, labelsize=8, length=0)
        else:
            axes.tick_params(axis="x", labelrotation=30, length=0)
            for label in axes.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
        axes.set_xlim(-0.7, len(games) - 0.3)
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold", parse_math=False)
        if marks:
            handles, labels = axes.get_legend_handles_labels()
            legend(figure, [Patch(color=COLOURS[0]), *handles], [bars, *labels])
    return figure


def curve_grid(
    games: Mapping[str, Mapping[str, Mapping[int, Curve]]],
    levels: Mapping[str, Mapping[str, float]] | None = None,
    *,
    window: int = WINDOW,
    columns: int | None = None,
    xlabel: str = "iteration",
    ylabel: str = "average return",
    traces: bool = True,
) -> Figure:
    """Figures 3, 6 and 7: a panel per game with each agent's mean over seeds, one (population) deviation
    around it and the seeds as traces, all smoothed over `window` evaluations, and horizontal lines.

    `games` is game -> agent -> seed -> curve, `levels` is game -> name of the line -> its height."""
    agents = list(dict.fromkeys(agent for panel in games.values() for agent in panel))
    names = list(dict.fromkeys(name for lines in (levels or {}).values() for name in lines))
    many = len(games) >= MANY
    across = columns or (6 if many else min(len(games), 5))
    down = math.ceil(len(games) / across)
    panel = (2.1, 1.75) if many else (2.9, 2.7)
    with mpl.rc_context({**STYLE, "font.size": 8 if many else 10}):
        width = max(6.4, across * panel[0])  # room for the legend if there are few panels
        legend_rows = math.ceil(len(agents + names) / legend_columns(width, agents + names))
        size = (width, down * panel[1] + 0.2 * legend_rows + 0.4)
        figure = Figure(figsize=size, layout="constrained", facecolor=PAPER)
        grid = figure.subplots(down, across, squeeze=False).ravel()
        for axes, (game, curves) in zip(grid, games.items(), strict=False):
            for agent, seeds in curves.items():
                _band(axes, seeds, agents.index(agent), window=window, traces=traces)
            for name, height in (levels or {}).get(game, {}).items():
                style = LEVELS[names.index(name) % len(LEVELS)]
                axes.axhline(height, color=INK, linewidth=1.1, linestyle=style, zorder=1.5)
            dress(axes, xlabel="", ylabel="", ticks=4 if many else 5)
            axes.yaxis.set_major_formatter(FuncFormatter(lambda score, _: short_count(score)))
            axes.set_title(game, fontsize=9 if many else 11, fontweight="bold", parse_math=False)
        for axes in grid[len(games) :]:
            axes.remove()
        for axes in grid[max(0, len(games) - across) : len(games)]:  # the lowest of each column
            axes.set_xlabel(xlabel)
        if down == 1:  # `supylabel` would be too far from a single row
            grid[0].set_ylabel(ylabel)
        else:
            figure.supylabel(ylabel, fontsize=10)
        handles = [
            Line2D([], [], color=colour(index), linestyle=dash(index), linewidth=2)
            for index in range(len(agents))
        ]
        handles += [Line2D([], [], color=INK, linestyle=LEVELS[i % len(LEVELS)]) for i in range(len(names))]
        legend(figure, handles, [*agents, *names])
    return figure


def smoothed(curve: Curve, window: int = WINDOW) -> Curve:
    """At each evaluation the mean of the last `window` evaluations; the first have fewer."""
    steps = sorted(curve)
    sums = np.cumsum([0.0, *(curve[step] for step in steps)])
    ends = np.arange(1, len(steps) + 1)
    begins = np.maximum(0, ends - window)
    return dict(zip(steps, ((sums[ends] - sums[begins]) / (ends - begins)).tolist(), strict=True))


def _band(axes: Axes, seeds: Mapping[int, Curve], index: int, *, window: int, traces: bool) -> None:
    smooth = [smoothed(curve, window) for curve in seeds.values()]
    shared = sorted(set.intersection(*(set(curve) for curve in smooth)))
    table = np.array([[curve[step] for step in shared] for curve in smooth])
    means, widths = table.mean(axis=0), table.std(axis=0)
    axes.fill_between(shared, means - widths, means + widths, color=colour(index), alpha=0.18, linewidth=0)
    for curve in smooth if traces and len(smooth) > 1 else []:
        _line(axes, curve, color=colour(index), alpha=0.35, linewidth=0.5)
    _line(
        axes,
        dict(zip(shared, means.tolist(), strict=True)),
        color=colour(index),
        linewidth=1.6,
        linestyle=dash(index),
    )


def _line(axes: Axes, curve: Mapping[int, float], **style) -> None:
    steps = sorted(curve)
    axes.plot(steps, [curve[step] for step in steps], **style)


def _percent_ticks(axes: Axes, values: list[float]) -> None:
    """Ticks at -1,000%, -100%, -10%, 0, +10% and so on, up to the longest bar."""
    powers = [10.0**power for power in range(1, 2 + math.ceil(math.log10(max(LINEAR, *map(abs, values)))))]
    ticks = [0.0]
    for sign in (-1, 1):
        furthest = max(0.0, *(sign * value for value in values))
        if furthest > LINEAR:
            furthest = max(furthest, 100)  # a bar beyond 10% has a tick above it
        ticks += [sign * power for power in powers if power <= furthest]
    ticks = sorted(ticks)
    axes.set_yticks(
        ticks, [f"{tick:+,.0f}%".replace("-", "\N{MINUS SIGN}") if tick else "0" for tick in ticks]
    )
