"""The style, the lines and the output formats of all figures. They are made without pyplot's global state."""

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike

INK, FAINT, PAPER = "#24292f", "#8b949e", "#ffffff"
# Okabe and Ito's colours, which colour-blind readers can distinguish, without yellow, too pale for a line.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
LARGE = 12  # inches from which figures have fewer dots per inch
Dash = Literal["-", "--", ":"]
STEPS = (1, 2, 2.5, 5, 10)  # between ticks, times a power of ten
LEVELS: tuple[Dash, ...] = ("-", "--", ":")  # the paper: best policy solid, average behaviour dashed
SMALL = (3.75, 2.6)  # inches: three fit in a row, and one fits on a phone
NO_LEVELS: Mapping[str, float] = {}

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "svg.fonttype": "none",  # text stays text, which can be searched and read aloud
    "svg.hashsalt": "optimist",  # without it ids differ between renderings
}


def svg(figure: Figure) -> str:
    """The figure as one <svg> element for a page, always the same bytes."""
    buffer = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = buffer.getvalue()
    # Remove the XML prologue, and group ids, which would not be unique in a page with two figures. Round
    # coordinates to a hundredth of a point, finer than any screen, which saves two thirds of the characters.
    text = re.sub(r'<g id="[^"]*"', "<g", text[text.index("<svg") :])
    return re.sub(r'(?<= d=")[^"]*', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), text)


def laid_out(figure: Figure) -> Figure:
    """The figure with its layout computed once, not again for each file format."""
    engine = figure.get_layout_engine()
    if engine is not None:
        with mpl.rc_context(STYLE):
            engine.execute(figure)
        figure.set_layout_engine(None)  # with "none" Matplotlib draws every file twice
    return figure


def save_png(figure: Figure, path: Path) -> None:
    dots = 200 if max(figure.get_size_inches()) < LARGE else 120  # a grid of 60 games has enough pixels
    with mpl.rc_context(STYLE):
        figure.savefig(path, format="png", dpi=dots, metadata={"Software": None})


def short_count(count: float) -> str:
    """500, 20k, 1.5M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(count) >= size:
            return f"{count / size:g}{letter}"
    return f"{count:g}"


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def dash(index: int) -> Dash:
    """Lines beyond the last colour repeat the colours, dashed."""
    return "-" if index < len(COLOURS) else "--"


class Line(NamedTuple):
    """A line of a chart, with the band around it, thin lines of single seeds, and a dot."""

    at: ArrayLike
    heights: ArrayLike
    band: tuple[ArrayLike, ArrayLike] | None = None
    traces: Sequence[tuple[ArrayLike, ArrayLike]] = ()
    dot: tuple[float, float] | None = None


def draw_lines(
    axes: Axes,
    lines: Mapping[str, Line],
    order: Sequence[str] = (),
    *,
    width: float = 1.8,
    step: bool = False,
) -> None:
    """Every line in its colour: that of its place in `order`, which panels share, or else in `lines`."""
    stepwise: Any = ({"drawstyle": "steps-post"}, {"step": "post"}) if step else ({}, {})
    for label, line in lines.items():
        index = list(order or lines).index(label)
        if line.band:
            axes.fill_between(
                line.at, *line.band, color=colour(index), alpha=0.16, linewidth=0, **stepwise[1]
            )
        for at, heights in line.traces:
            axes.plot(at, heights, color=colour(index), alpha=0.3, linewidth=0.6)
        look: Any = {"color": colour(index), "linestyle": dash(index), "linewidth": width}
        axes.plot(line.at, line.heights, **look, **stepwise[0], label=label)
        if line.dot:
            axes.plot(*([place] for place in line.dot), "o", color=colour(index))


def draw_levels(axes: Axes, levels: Mapping[str, float], order: Sequence[str] = ()) -> None:
    """Horizontal lines, told apart by their dashes."""
    for name, height in levels.items():
        style = LEVELS[list(order or levels).index(name) % len(LEVELS)]
        axes.axhline(height, color=INK, linewidth=1.1, linestyle=style, zorder=1.5, label=name)


def chart(
    lines: Mapping[str, Line],
    *,
    xlabel: str,
    ylabel: str,
    size: tuple[float, float] = SMALL,
    levels: Mapping[str, float] = NO_LEVELS,
    scale: str = "linear",
    has_legend: bool | None = None,
) -> Figure:
    """One panel of lines, with a legend below, unless one is not wanted or there is one line only."""
    with mpl.rc_context(STYLE):
        figure, (axes,) = panels(1, 1, size)
        draw_lines(axes, lines)
        draw_levels(axes, levels)
        axes.set_yscale(scale)
        dress(axes, xlabel=xlabel, ylabel=ylabel)
        handles, labels = axes.get_legend_handles_labels()
        if has_legend or (has_legend is None and len(labels) > 1):
            legend(figure, handles, labels)
    return figure


def panels(down: int, across: int, size: tuple[float, float], **more: Any) -> tuple[Figure, list[Axes]]:
    """A figure and its panels, row by row."""
    figure = Figure(figsize=size, layout="constrained", facecolor=PAPER)
    return figure, list(figure.subplots(down, across, squeeze=False, **more).flat)


def titled(axes: Axes, title: str, size: int = 11, loc: Literal["left", "center"] = "center") -> None:
    axes.set_title(title, loc=loc, fontsize=size, fontweight="bold", parse_math=False)


def dress(axes: Axes, *, xlabel: str, ylabel: str, ticks: int = 5) -> None:
    axes.set(xlabel=xlabel, ylabel=ylabel, facecolor=PAPER)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(ticks, steps=STEPS, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: short_count(step)))
    if axes.get_yscale() == "linear":
        axes.yaxis.set_major_locator(MaxNLocator(ticks, steps=STEPS))
    axes.margins(x=0.02)


def legend(figure: Figure, handles: Sequence, labels: Sequence[str]) -> None:
    """A legend below the panels, in as many columns as its longest label allows."""
    if labels:
        columns = legend_columns(figure.get_figwidth(), labels)
        legend = figure.legend(
            handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=10
        )
        for text in legend.get_texts():
            text.set_parse_math(False)


def legend_columns(inches: float, labels: Sequence[str]) -> int:
    each = 0.6 + 0.085 * max(map(len, labels), default=0)  # inches: a line, and text of 10 points
    return max(1, min(len(labels), int(inches // each)))
