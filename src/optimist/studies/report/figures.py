"""The report's figures, each a matplotlib Figure made without pyplot and so without global state."""

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from optimist.studies.scores import curves as scores

INK, FAINT, PAPER = "#24292f", "#8b949e", "#ffffff"
# Okabe and Ito's colours, told apart by colour-blind readers too; their yellow is too pale for a line.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
WIDE, TALL = (7.2, 4.0), (4.4, 4.0)  # inches: for a page, and for a phone
LARGE = 12  # inches, of figures that no screen shows whole
LABEL_LENGTH = 18  # longer names would take the figure from the curves

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
    "svg.fonttype": "none",  # text stays text: it can be searched and read aloud
    "svg.hashsalt": "optimist",  # otherwise each rendering has ids of its own
}


def learning_curves(
    runs: Mapping[str, Path],
    *,
    best: float | None = None,
    average: float | None = None,
    title: str = "",
    size: tuple[float, float] = WIDE,
) -> Figure:
    """Return against gradient updates, as in Figure 3 of Agarwal, Schuurmans and Norouzi (2020)."""
    with mpl.rc_context(STYLE):
        figure, axes = canvas(size, xlabel="gradient updates", ylabel="average return")
        ends = [_draw_run(axes, Path(run), colour(index)) for index, run in enumerate(runs.values())]
        _draw_level(axes, best, "best policy in the data", style="--", above=True)
        _draw_level(axes, average, "average behaviour", style=":", above=False)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: short_count(step)))
        axes.margins(x=0.02, y=0.1)
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold", parse_math=False)
        label_ends(axes, list(runs), ends)
    return figure


def returns_over_experience(card: Mapping, *, size: tuple[float, float] = WIDE) -> Figure:
    """Mean return in each tenth of the logged experience: how the logging agent improved."""
    means = [float("nan") if mean is None else mean for mean in card["return_per_tenth"]]
    with mpl.rc_context(STYLE):
        flat = (size[0], 0.6 * size[1])
        figure, axes = canvas(flat, xlabel="tenth of the logged experience", ylabel="mean return")
        axes.bar(range(1, len(means) + 1), means, width=0.72, color=COLOURS[0])
        axes.set_xticks(range(1, len(means) + 1))
    return figure


def head_agreement(readings: Sequence, widths: Mapping[int, float]) -> Figure:
    """Proposition 1: how far heads disagree, how far they are from Q*, and how mixtures concentrate."""
    labels = list(dict.fromkeys(reading.agent for reading in readings))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(12.5, 4.8), layout="constrained", facecolor=PAPER)
        agree, truth, narrow = figure.subplots(1, 3)
        for index, label in enumerate(labels):
            mine = [reading for reading in readings if reading.agent == label and reading.step]
            steps = [reading.step for reading in mine]
            line = {
                "color": colour(index),
                "linestyle": "-" if index < len(COLOURS) else "--",
                "label": label,
            }
            agree.plot(steps, [reading.disagreement for reading in mine], **line)
            truth.plot(steps, [reading.distance for reading in mine], **line)
        for axes, title in ((agree, "disagreement of the heads"), (truth, "largest error of their mean")):
            axes.set(yscale="log", title=title, xlabel="gradient updates")
        figure.legend(*agree.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
        narrow.plot(list(widths), list(widths.values()), marker="o", color=COLOURS[0])
        narrow.axhline(1 / 3**0.5, color=FAINT, linestyle=":")
        narrow.set(xscale="log", ylim=(0, 0.8), xlabel="heads K", title="deviation of a uniform weight, x K")
    return figure


def spread(
    panels: Sequence[tuple[str, Mapping[str, Mapping[int, tuple[float, float]]], float]],
) -> Figure:
    """Figure 8: for each task the mean return of each agent, one deviation around it, and the data's mean.

    A panel is its title, the curves (step -> mean and deviation) by agent, and the height of the line."""
    agents = list(dict.fromkeys(agent for _, curves, _ in panels for agent in curves))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(max(5.0, 4.2 * len(panels)), 3.6), layout="constrained", facecolor=PAPER)
        for axes, (title, curves, level) in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            for agent, curve in curves.items():
                line = colour(agents.index(agent))
                steps, (means, deviations) = list(curve), zip(*curve.values(), strict=True)
                low, high = zip(
                    *((m - d, m + d) for m, d in zip(means, deviations, strict=True)), strict=True
                )
                axes.fill_between(steps, low, high, color=line, alpha=0.18, linewidth=0)
                axes.plot(steps, means, color=line, linewidth=1.6, label=agent)
            axes.axhline(level, color=INK, linewidth=1.4, label="mean of the data")
            axes.set_title(title, fontsize=11, fontweight="bold", parse_math=False)
            axes.set(xlabel="gradient updates", ylabel="average return")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: short_count(step)))
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.7)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def svg(figure: Figure) -> str:
    """The figure as one <svg> element, the same bytes every time, fit to stand inside a page."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue()
    # The prologue is for files, and group ids would occur twice on a page with two figures; a hundredth of a
    # point is finer than any screen, and a third of the letters.
    text = re.sub(r'<g id="[^"]*"', "<g", text[text.index("<svg") :])
    return re.sub(r'(?<= d=")[^"]*', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), text)


def laid_out(figure: Figure) -> Figure:
    """The figure with its layout fixed: it is then not found anew for each file that is written of it."""
    engine = figure.get_layout_engine()
    if engine is not None:
        with mpl.rc_context(STYLE):
            engine.execute(figure)
        figure.set_layout_engine("none")
    return figure


def save_png(figure: Figure, path: Path) -> None:
    dots = 200 if max(figure.get_size_inches()) < LARGE else 120  # a grid of 60 games has pixels enough
    with mpl.rc_context(STYLE):
        figure.savefig(path, format="png", dpi=dots, metadata={"Software": None})


def short_count(count: float) -> str:
    """500, 20k, 1.5M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(count) >= size:
            return f"{count / size:g}{letter}"
    return f"{count:g}"


def canvas(size: tuple[float, float], *, xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained", facecolor=PAPER)
    axes = figure.add_subplot(facecolor=PAPER, xlabel=xlabel, ylabel=ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.7)
    axes.set_axisbelow(True)
    return figure, axes


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def _draw_run(axes: Axes, run: Path, colour: str) -> float:
    """Thin lines for the seeds, a thick one for their mean; return the height at which it ends."""
    by_seed = scores.curves(run)
    for curve in by_seed.values():
        axes.plot(list(curve), list(curve.values()), color=colour, alpha=0.3, linewidth=0.9)
    mean = scores.mean_curve(by_seed) or next(iter(by_seed.values()))
    axes.plot(list(mean), list(mean.values()), color=colour, linewidth=2.4, solid_capstyle="round")
    axes.plot([max(mean)], [mean[max(mean)]], "o", color=colour, markersize=5)
    return mean[max(mean)]


def _draw_level(axes: Axes, height: float | None, name: str, *, style: str, above: bool) -> None:
    """A horizontal line; the best policy's name stands above its line on the left, where curves are still
    low, and the average's below its line on the right, where they have mostly risen past it."""
    if height is None:
        return
    axes.axhline(height, color=INK, linestyle=style, linewidth=1.2, zorder=1.5)
    axes.annotate(
        name,
        xy=(0.01 if above else 0.99, height),
        xycoords=axes.get_yaxis_transform(),
        xytext=(0, 3 if above else -3),
        textcoords="offset points",
        ha="left" if above else "right",
        va="bottom" if above else "top",
        fontsize=9,
        zorder=1.6,  # the curves run over the words, not the words over the curves
        bbox={"facecolor": PAPER, "edgecolor": "none", "alpha": 0.75, "pad": 0.5},
    )


def label_ends(axes: Axes, labels: list[str], ends: list[float]) -> None:
    low, high = axes.get_ylim()
    places = _spread_apart(ends, gap=0.065 * (high - low))
    for index, (label, place) in enumerate(zip(labels, places, strict=True)):
        name = label if len(label) <= LABEL_LENGTH else label[: LABEL_LENGTH - 1] + "…"
        axes.annotate(
            name,
            xy=(1.0, place),
            xycoords=axes.get_yaxis_transform(),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colour(index),
            fontweight="bold",
            parse_math=False,
        )


def _spread_apart(heights: list[float], gap: float) -> list[float]:
    """The same heights in the same order, moved up only as far as keeps neighbours `gap` apart."""
    places = list(heights)
    lowest_first = sorted(range(len(heights)), key=lambda index: heights[index])
    for below, above in zip(lowest_first, lowest_first[1:], strict=False):
        places[above] = max(places[above], places[below] + gap)
    return places
