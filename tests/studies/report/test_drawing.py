"""Figures are the same bytes every time, keep their text, and carry nothing that a page must not have."""

import xml.etree.ElementTree as ElementTree

import pytest
from matplotlib.figure import Figure

from optimist.studies.report import drawing
from optimist.studies.report.drawing import Line, chart
from optimist.studies.report.figures import intervals
from optimist.studies.scores.intervals import Certainty
from optimist.studies.scores.statistics import Interval

CURVES = {"REM": [1.0, 5.0], "DQN": [1.0, 2.0]}


def curves(label: str = "REM") -> Figure:
    lines = {label: Line([0, 10], CURVES["REM"]), "DQN": Line([0, 10], CURVES["DQN"])}
    return chart(lines, xlabel="iteration", ylabel="median normalised score")


def certainty(agent: str, kind: str, seeds: int = 3) -> Certainty:
    bounds = (0.6, 1.1) if seeds > 1 else (None, None)
    return Certainty(agent, kind, games=1, seeds=seeds, iqm=Interval(0.8, *bounds))


def words(text: str) -> set[str]:
    return {element.text for element in ElementTree.fromstring(text).iter() if element.tag.endswith("text")}


@pytest.mark.parametrize("tall", [False, True])
def test_an_agent_has_a_dot_and_a_bar_for_its_last_and_its_best(tall):
    found = [certainty(agent, kind) for agent in CURVES for kind in ("best", "cross", "last", "area")]
    figure = intervals.interval_plot(found, 4, "DQN", tall=tall)
    assert [axes.get_title() for axes in figure.axes] == ["last", "best of 4", "cross-chosen best"]
    bar, dot = figure.axes[0].lines[:2]
    assert list(bar.get_xdata()) == [0.6, 1.1] and list(dot.get_xdata()) == [0.8]


def test_one_seed_has_a_dot_and_no_bar():
    figure = intervals.interval_plot([certainty("REM", "last", seeds=1)], 4, "DQN")
    assert [len(line.get_xdata()) for line in figure.axes[0].lines] == [1, 2]  # the dot, and the line at 1


def test_the_same_curves_give_the_same_bytes_without_dates_and_colliding_ids():
    first, second = (drawing.svg(curves()) for _ in range(2))
    assert first == second
    assert not any(each in first for each in ("<metadata", "figure_1", "axes_1"))


@pytest.mark.parametrize("label", ["$x^", "a & b < c", "\\frac{", "a name that goes on and on and on"])
def test_any_label_can_be_drawn(label):
    text = drawing.svg(curves(label))
    assert words(text) >= {label, "DQN", "iteration", "median normalised score"}  # text stays text


def test_a_figure_that_is_laid_out_is_drawn_once_for_each_file(tmp_path, monkeypatch):
    figure, drawn, draw = drawing.laid_out(curves()), [], Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda self, renderer: drawn.append(self) or draw(self, renderer))
    drawing.save_png(figure, tmp_path / "curves.png")
    drawing.svg(figure)
    assert len(drawn) == 2
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("count", "short"), [(0, "0"), (500, "500"), (20_000, "20k"), (1_500_000, "1.5M")])
def test_counts_are_short(count, short):
    assert drawing.short_count(count) == short
