"""Figures are the same bytes every time, keep their text, and carry nothing that a page must not have."""

import xml.etree.ElementTree as ElementTree

import pytest
from matplotlib.figure import Figure

from optimist.studies.report import figures, interval_figures, paper_figures
from optimist.studies.scores.intervals import Certainty
from optimist.studies.scores.statistics import Interval

CURVES = {"REM": {0: 1.0, 10: 5.0}, "DQN": {0: 1.0, 10: 2.0}}


def certainty(agent: str, kind: str, seeds: int = 3) -> Certainty:
    sure = {"iqm": Interval(0.8, 0.6, 1.1)}
    return Certainty(agent, kind, games=1, seeds=seeds, aggregates=sure, better=None)


def words(drawing: str) -> set[str]:
    return {
        element.text for element in ElementTree.fromstring(drawing).iter() if element.tag.endswith("text")
    }


@pytest.mark.parametrize("tall", [False, True])
def test_an_agent_has_a_dot_and_a_bar_for_its_last_and_its_best(tall):
    found = [certainty(agent, kind) for agent in CURVES for kind in ("best", "cross", "last", "area")]
    figure = interval_figures.interval_plot(found, 4, "DQN", tall=tall)
    assert [axes.get_title() for axes in figure.axes] == ["last", "best of 4", "cross-chosen best"]
    bar, dot = figure.axes[0].lines[:2]
    assert list(bar.get_xdata()) == [0.6, 1.1] and list(dot.get_xdata()) == [0.8]


def test_one_seed_has_a_dot_and_no_bar():
    figure = interval_figures.interval_plot([certainty("REM", "last", seeds=1)], 4, "DQN")
    assert [len(line.get_xdata()) for line in figure.axes[0].lines] == [1, 2]  # the dot, and the line at 1


def test_text_stays_text():
    drawing = figures.svg(paper_figures.medians(CURVES))
    assert words(drawing) >= {"REM", "DQN", "iteration", "median normalised score"}


def test_the_same_curves_give_the_same_bytes():
    first, second = (figures.svg(paper_figures.medians(CURVES)) for _ in range(2))
    assert first == second


def test_a_drawing_carries_no_date_and_no_colliding_ids():
    drawing = figures.svg(paper_figures.medians(CURVES))
    assert "<metadata" not in drawing
    assert "figure_1" not in drawing
    assert "axes_1" not in drawing


@pytest.mark.parametrize("label", ["$x^", "a & b < c", "\\frac{", "a name that goes on and on and on"])
def test_any_label_can_be_drawn(label):
    drawing = figures.svg(paper_figures.medians({label: CURVES["REM"]}))
    assert label in words(drawing)


def test_a_png_is_written(tmp_path):
    figures.save_png(paper_figures.medians(CURVES), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_figure_that_is_laid_out_is_drawn_once_for_each_file(tmp_path, monkeypatch):
    figure, drawn, draw = figures.laid_out(paper_figures.medians(CURVES)), [], Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda self, renderer: drawn.append(self) or draw(self, renderer))
    figures.save_png(figure, tmp_path / "curves.png")
    figures.svg(figure)
    assert len(drawn) == 2


@pytest.mark.parametrize(("count", "short"), [(0, "0"), (500, "500"), (20_000, "20k"), (1_500_000, "1.5M")])
def test_counts_are_short(count, short):
    assert figures.short_count(count) == short
