"""Figure 4: each agent's improvement per game."""

import math
from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from optimist.studies.report import drawing
from optimist.studies.report.drawing import COLOURS, INK, PAPER, dress
from optimist.studies.report.figures import StudyFigure
from optimist.studies.results.findings import StudyResults, short_names
from optimist.studies.scores.finding import Finding
from optimist.studies.scores.normalisation import kind_title

LINEAR = 10  # percent up to which the axis is linear; beyond it is logarithmic
MANY = 20  # games from which on their names are vertical
MARKS: tuple[dict, ...] = (  # beside the bars, with different shapes
    {"linestyle": "", "marker": "o", "color": INK, "markerfacecolor": PAPER, "markersize": 5},
    {"linestyle": "", "marker": "_", "color": INK, "markersize": 11, "markeredgewidth": 1.6},
)
BARS, *MARKED = KINDS = ("best", "last", "mean_of_last")


def draw(study: StudyResults, finding: Finding) -> dict[str, Figure] | None:
    """A figure for each agent, if there are several games."""
    if len(finding.file.games) == 1:
        return None
    titles = {kind: kind_title(kind, finding.evaluations) for kind in KINDS}
    short, one = short_names(finding.file.games), study.ends(finding.file.games)[1]
    figures = {}
    for agent, rows in finding.games.items():
        gains = {kind: {short[row.game]: row.improvement[kind] for row in rows} for kind in KINDS}
        marks = {titles[kind]: gains[kind] for kind in MARKED}
        figures[agent] = improvement_bars(
            gains[BARS], title=agent, yardstick=one, bars=titles[BARS], marks=marks
        )
    return figures


def improvement_bars(
    improvements: Mapping[str, float],
    *,
    title: str,
    yardstick: str,
    bars: str,
    marks: Mapping[str, Mapping[str, float]],
) -> Figure:
    """Improvement per game in percent, the worst first; `marks` are drawn over the bars."""
    games = sorted(improvements, key=lambda game: (improvements[game], game))
    heights = [improvements[game] for game in games]
    many = len(games) >= MANY
    with mpl.rc_context(drawing.STYLE):
        size = (max(4.8, 0.19 * len(games) + 1.2) if many else max(4.8, 0.62 * len(games) + 1.4), 4.4)
        figure, (axes,) = drawing.panels(1, 1, size)
        colours = [COLOURS[0] if height > 0 else COLOURS[1] for height in heights]
        axes.bar(range(len(games)), heights, width=0.78, color=colours)
        for index, (name, by_game) in enumerate(marks.items()):
            marked = [by_game[game] for game in games]
            axes.plot(range(len(games)), marked, **MARKS[index % len(MARKS)], label=name)
            heights = [*heights, *marked]
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set_yscale("symlog", linthresh=LINEAR, linscale=0.6)
        axes.yaxis.set_minor_locator(NullLocator())
        dress(axes, xlabel="", ylabel=f"improvement over {yardstick}")
        ticks = _ticks(heights)
        shown = [f"{tick:+,.0f}%".replace("-", "\N{MINUS SIGN}") if tick else "0" for tick in ticks]
        axes.set_yticks(ticks, shown)
        axes.set_xticks(range(len(games)), games, parse_math=False)
        axes.set_xlim(-0.7, len(games) - 0.3)
        axes.tick_params(axis="x", labelrotation=90 if many else 30, labelsize=8 if many else 10, length=0)
        for label in () if many else axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
        drawing.titled(axes, title, loc="left")
        handles, labels = axes.get_legend_handles_labels()
        drawing.legend(figure, [Patch(color=COLOURS[0]), *handles], [bars, *labels])
    return figure


def _ticks(heights: Sequence[float]) -> list[float]:
    """-1,000, -100, -10, 0, 10 and so on, up to the longest bar; one beyond 10% has a tick above it."""
    ticks = [0.0]
    for sign in (-1, 1):
        furthest = max(0.0, *(sign * height for height in heights))
        furthest = max(furthest, 100) if furthest > LINEAR else furthest
        powers = range(1, 2 + math.ceil(math.log10(max(LINEAR, furthest))))
        ticks += [sign * 10.0**power for power in powers if 10.0**power <= furthest]
    return sorted(ticks)


FIGURE = StudyFigure(
    title="improvement per game (Figure 4)",
    caption="Mean over seeds, normalised. The axis is linear up to 10% and logarithmic beyond.",
    draw=draw,
    needs="it compares games, and there is only one",
    of="reading",
)
