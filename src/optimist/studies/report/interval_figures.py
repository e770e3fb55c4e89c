"""Figures of intervals (Agarwal et al. 2021), each drawn from plain data as a matplotlib Figure."""

import textwrap
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from optimist.studies.report.figures import FAINT, INK, PAPER, STEPS, STYLE, colour, dash, dress, legend
from optimist.studies.scores import intervals
from optimist.studies.scores.statistics import Interval
from optimist.studies.scores.table_one import kind_title

WORDS = 36  # letters in a line below a panel
VERDICT = ("last", "best", "cross", "chosen")  # the panels of the plot of intervals


def interval_plot(
    found: Sequence[intervals.Certainty], evaluations: int, one: str, *, tall: bool = False
) -> Figure:
    """A dot and a 95% bar for each agent, and a panel for each kind of score. `one` scores 1. `tall` puts
    the panels below each other, for a phone."""
    kinds = [kind for kind in VERDICT if any(row.kind == kind for row in found)]
    agents = list(dict.fromkeys(row.agent for row in found))
    each = 0.9 + 0.32 * len(agents)
    with mpl.rc_context(STYLE):
        size = (4.2, each * len(kinds)) if tall else (2.4 + 2.9 * len(kinds), each)
        figure = Figure(figsize=size, layout="constrained", facecolor=PAPER)
        down, across = (len(kinds), 1) if tall else (1, len(kinds))
        grid = figure.subplots(down, across, squeeze=False, sharey=True, sharex=True).flat
        for axes, kind in zip(grid, kinds, strict=True):
            for row in (row for row in found if row.kind == kind):
                place, sure = agents.index(row.agent), row.aggregates["iqm"]
                if row.seeds > 1:
                    axes.plot([sure.low, sure.high], [place, place], color=colour(place), linewidth=3)
                axes.plot([sure.estimate], [place], "o", color=colour(place), markeredgecolor=INK)
            axes.axvline(1.0, color=INK, linewidth=1.0, linestyle="--", zorder=1)
            axes.set_title(kind_title(kind, evaluations), fontsize=11, fontweight="bold", parse_math=False)
            dress(
                axes,
                xlabel="" if tall and kind != kinds[-1] else textwrap.fill(f"1 is {one}", WORDS),
                ylabel="",
            )
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
            axes.grid(axis="x", color=FAINT, alpha=0.25, linewidth=0.7)
            axes.set_yticks(range(len(agents)), agents, parse_math=False)
            axes.set_ylim(len(agents) - 0.5, -0.5)
    return figure


def iqm_over_training(
    curves: Mapping[str, tuple[Sequence[int], Interval]], zero: str, one: str, xlabel: str
) -> Figure:
    """The interquartile mean over games and seeds at each evaluation, with a pointwise 95% band."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.2, 5.0), layout="constrained", facecolor=PAPER)
        axes = figure.add_subplot(facecolor=PAPER)
        for index, (steps, sure) in enumerate(curves.values()):
            axes.fill_between(steps, sure.low, sure.high, color=colour(index), alpha=0.13, linewidth=0)
            axes.plot(steps, sure.estimate, color=colour(index), linestyle=dash(index), linewidth=1.9)
        axes.axhline(1.0, color=INK, linewidth=1.0, linestyle="--", zorder=1)
        dress(
            axes, xlabel=xlabel, ylabel=textwrap.fill(f"interquartile mean; 1 is {one}, 0 {zero}", 2 * WORDS)
        )
        legend(figure, axes.get_lines()[: len(curves)], list(curves))
    return figure


def profiles(panels: Mapping[str, Mapping[str, tuple[np.ndarray, Interval]]]) -> Figure:
    """The share of runs above each normalised score, with its band: a panel per kind of score.

    A panel is agent -> thresholds and shares. Agarwal et al. 2021, Figure 5: higher is better everywhere."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(max(4.6, 3.4 * len(panels)), 3.6), layout="constrained", facecolor=PAPER)
        grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, (title, agents) in zip(grid, panels.items(), strict=True):
            for index, (agent, (thresholds, share)) in enumerate(agents.items()):
                line = {"color": colour(index), "linestyle": dash(index), "linewidth": 1.8, "label": agent}
                axes.plot(thresholds, share.estimate, drawstyle="steps-post", **line)
                band = {"step": "post", "color": colour(index), "alpha": 0.15, "linewidth": 0}
                axes.fill_between(thresholds, share.low, share.high, **band)
            axes.set_title(title, fontsize=11, fontweight="bold", parse_math=False)
            dress(axes, xlabel="normalised score", ylabel="")
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
            axes.set_ylim(-0.02, 1.02)
        grid[0].set_ylabel("runs above it")
        legend(figure, *grid[0].get_legend_handles_labels())
    return figure
