"""The results as a table, a CSV file and a figure."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from optimist.data import machine
from optimist.data.disk.files import make_folder
from optimist.studies.bench import peers
from optimist.studies.bench.measuring import Row
from optimist.studies.bench.timing import Subject
from optimist.studies.report import drawing
from optimist.studies.sheet import Cell, Sheet, as_csv

TABLE, FIGURE = "bench.csv", "bench.png"


def rounded(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def line(row: Row) -> str:
    """A row in words."""
    subject = row.subject
    size = f"{subject.network}, batch {subject.batch}, {subject.seeds} seed{'s' * (subject.seeds > 1)}"
    against = "".join(f", {times:.2f} x {peers.FORMS[form]}" for form, times in row.times.items())
    return (
        f"{subject.part}: {subject.name} ({size}): {rounded(row.rate)} {subject.unit}, "
        f"{row.rate / row.limit:.0%} of the limit{against}"
    )


def sheet(rows: Sequence[Row]) -> Sheet:
    """One table of this machine."""
    forms = [form for form in peers.FORMS if any(form in row.times for row in rows)]
    heads = ["part", "what", "network", "batch", "seeds", "rate", "unit", "limit", "of limit", "limited by"]
    shown = [
        [
            *(row.subject.part, row.subject.name, row.subject.network, row.subject.batch, row.subject.seeds),
            Cell(rounded(row.rate), row.rate),
            row.subject.unit,
            Cell(rounded(row.limit), row.limit),
            Cell(f"{row.rate / row.limit:.1%}", row.rate / row.limit),
            row.limit_by,
            *(_times(row.times.get(form)) for form in forms),
        ]
        for row in rows
    ]
    return Sheet(title(), [*heads, *(f"x {peers.FORMS[form]}" for form in forms)], shown, _notes(rows))


def title() -> str:
    return f"{jax.devices()[0].device_kind}, {machine.cores()} cores, JAX {jax.__version__}"


def _times(ratio: float | None) -> Cell | None:
    return None if ratio is None else Cell(f"{ratio:.2f}", ratio)


def _notes(rows: Sequence[Row]) -> list[str]:
    notes = [
        "A rate is the median over rounds; in each round all rows of a network are timed in turns. "
        "Updates are those of all seeds together.",
        "The limit of learning and data: the measured arithmetic or memory bandwidth, divided by "
        "what one update or batch needs.",
        "The limit of play: the environments alone with random actions, or the slower learner alone.",
    ]
    for form, name in peers.FORMS.items():
        found = sorted({row.forms[form] for row in rows if form in row.forms})
        notes += [f"{name}: {'; '.join(found)}."] if found else []
    return notes


def write_table(rows: Sequence[Row], folder: Path) -> Path:
    make_folder(folder)
    (folder / TABLE).write_text(as_csv(sheet(rows)), encoding="utf-8")
    return folder / TABLE


def write_figure(rows: Sequence[Row], folder: Path) -> Path:
    make_folder(folder)
    drawing.save_png(drawing.laid_out(chart(rows)), folder / FIGURE)
    return folder / FIGURE


def chart(rows: Sequence[Row]) -> Figure:
    """Every rate as a share of its limit, on a logarithmic axis; peers are marks on the same line."""
    figure = Figure(figsize=(8, 1.2 + 0.28 * len(rows)), layout="constrained")
    axes = figure.subplots()
    places = list(range(len(rows)))[::-1]
    shares = [row.rate / row.limit for row in rows]
    handles: list[Any] = [axes.barh(places, shares, height=0.6, color=drawing.COLOURS[0])]
    labels = ["Optimist"]
    for number, (form, name) in enumerate(peers.FORMS.items(), 1):
        marks = [
            (share / row.times[form], place)
            for row, share, place in zip(rows, shares, places, strict=True)
            if form in row.times
        ]
        if marks:
            handles.append(axes.scatter(*zip(*marks, strict=True), color=drawing.colour(number), zorder=3))
            labels.append(name)
    for row, share, place in zip(rows, shares, places, strict=True):
        axes.annotate(
            f"{rounded(row.rate)} {row.subject.unit}",
            (share, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=None))
    axes.set(xlabel="share of the limit", xlim=(min(0.001, *shares) / 2, 8), facecolor=drawing.PAPER)
    axes.axvline(1, color=drawing.FAINT, linewidth=1)
    axes.set_yticks(places, [_label(row.subject) for row in rows], fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    drawing.legend(figure, handles, labels)
    return figure


def _label(subject: Subject) -> str:
    if subject.part != "learner":
        return f"{subject.part}: {subject.name}"
    seeds = f", {subject.seeds} seeds" if subject.seeds > 1 else ""
    return f"{subject.name}, {subject.network}, batch {subject.batch}{seeds}"
