"""Figures that carry a verdict: the interquartile mean of each agent and its interval, on the way and at the
end."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from optimist.studies.report.figures import FAINT, INK, PAPER, STYLE, colour
from optimist.studies.report.paper_figures import STEPS, dash, dress, legend
from optimist.studies.scores import intervals
from optimist.studies.scores.normalisation import Normaliser
from optimist.studies.scores.score_files import ScoreFile
from optimist.studies.scores.statistics import Interval, iqm, stratified_bootstrap
from optimist.studies.scores.table_one import kind_title

SHOWN = ("cross", "last")  # of the ways to score a run: neither flatters
DRAWS = 1_000  # of a band, which need not be sharper than its line


def interval_plot(found: Sequence[intervals.Row], evaluations: int, yardstick: str) -> Figure:
    """A dot and a 95% bar for each agent, a panel for each way to score a run."""
    kinds = [kind for kind in SHOWN if any(row.kind == kind for row in found)]
    agents = list(dict.fromkeys(row.agent for row in found))
    with mpl.rc_context(STYLE):
        size = (2.6 + 3.4 * len(kinds), 0.9 + 0.32 * len(agents))
        figure = Figure(figsize=size, layout="constrained", facecolor=PAPER)
        grid = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
        for axes, kind in zip(grid, kinds, strict=True):
            for row in (row for row in found if row.kind == kind):
                place, sure = agents.index(row.agent), row.aggregates["iqm"]
                if row.seeds > 1:
                    axes.plot([sure.low, sure.high], [place, place], color=colour(place), linewidth=3)
                axes.plot([sure.estimate], [place], "o", color=colour(place), markeredgecolor=INK)
            axes.axvline(1.0, color=INK, linewidth=1.0, linestyle="--", zorder=1)
            axes.set_title(kind_title(kind, evaluations), fontsize=11, fontweight="bold", parse_math=False)
            dress(axes, xlabel=f"interquartile mean; 1 is {yardstick}", ylabel="")
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
            axes.grid(axis="x", color=FAINT, alpha=0.25, linewidth=0.7)
        grid[0].set_yticks(range(len(agents)), agents, parse_math=False)
        grid[0].set_ylim(len(agents) - 0.5, -0.5)
    return figure


def iqm_over_training(file: ScoreFile, by: Normaliser, xlabel: str) -> Figure:
    """The interquartile mean over games and seeds at each evaluation, with a pointwise 95% band."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.2, 5.0), layout="constrained", facecolor=PAPER)
        axes = figure.add_subplot(facecolor=PAPER)
        for index, (steps, sure) in enumerate(curves_of(file, by).values()):
            axes.fill_between(steps, sure.low, sure.high, color=colour(index), alpha=0.13, linewidth=0)
            axes.plot(steps, sure.estimate, color=colour(index), linestyle=dash(index), linewidth=1.9)
        axes.axhline(1.0, color=INK, linewidth=1.0, linestyle="--", zorder=1)
        dress(axes, xlabel=xlabel, ylabel=f"interquartile mean; 1 is {by.yardstick}, 0 random play")
        legend(figure, axes.get_lines()[: len(file.agents)], list(file.agents))
    return figure


def curves_of(file: ScoreFile, by: Normaliser) -> Mapping[str, tuple[list[int], Interval]]:
    """For each agent the evaluated steps and the IQM at each of them."""
    found = {}
    for agent, by_game in file.agents.items():
        steps = sorted(next(iter(next(iter(by_game.values())).values())))
        scores = np.array(
            [
                [[by.normalised(game, seeds[seed][step]) for step in steps] for seed in sorted(seeds)]
                for game, seeds in by_game.items()
            ]
        )  # (games, seeds, steps)
        matrices = [scores[:, :, place].T for place in range(len(steps))]
        sure = [stratified_bootstrap(iqm, matrix, repetitions=DRAWS) for matrix in matrices]
        columns = zip(*((each.estimate, each.low, each.high) for each in sure), strict=True)
        found[agent] = steps, Interval(*(np.array(column) for column in columns))
    return found
