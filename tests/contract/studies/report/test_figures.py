"""The paper's figures draw what they are given: lines, bars in order, bands, levels, and readable scales.
Files of them are the same bytes every time, keep their text, and carry nothing that a page must not have."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from made_study import write_study
from optimist import plugins
from optimist.errors import DataError, UsageError
from optimist.studies.report import drawing, figures, study_figures
from optimist.studies.report.drawing import Line, chart
from optimist.studies.report.figures import bars
from optimist.studies.report.figures import curves as grids
from optimist.studies.report.figures import medians as figure_1
from optimist.studies.report.figures.curves import smoothed
from optimist.studies.report.figures.intervals import interval_plot
from optimist.studies.report.figures.profiles import profiles
from optimist.studies.results.findings import find
from optimist.studies.scores.intervals import Certainty, Medians
from optimist.studies.scores.statistics import Interval

MEDIANS = {
    "REM": Medians([1, 2], np.array([0.5, 1.2]), np.array([[0.4, 1.1], [0.6, 1.3]]), np.array([1, 40])),
    "QR-DQN": Medians([1, 2], np.array([0.6, 1.1]), np.empty((0, 2)), np.array([3, 30])),
}
SEEDS = {0: {1: 0.0, 2: 10.0, 3: 20.0}, 1: {1: 4.0, 2: 10.0, 3: 40.0}}


def medians(agents=MEDIANS, yardstick="DQN"):
    return figure_1.medians(agents, yardstick=yardstick, one=yardstick, games=60, xlabel="iteration")


def improvement_bars(improvements, title="", marks=None, heading="best"):
    words = {"title": title, "yardstick": "DQN (Nature)", "bars": heading, "marks": marks or {}}
    return bars.improvement_bars(improvements, **words)


def curve_grid(games, levels=None, columns=None, **more):
    columns = columns or min(len(games), 5)
    return grids.curve_grid(games, levels or {}, xlabel="iteration", columns=columns, **more)


def heights(axes) -> list[list[float]]:
    return [list(line.get_ydata()) for line in axes.lines]


def legend(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def drawn(figure):
    """The figure after its layout: only then are ticks and extents what a reader sees."""
    figure.draw_without_rendering()
    return figure


def test_figure_1_has_traces_medians_and_the_yardstick_beside_counts():
    left, right = (figure := medians()).axes
    assert heights(left) == [[0.4, 1.1], [0.6, 1.3], [0.5, 1.2], [0.6, 1.1], [1, 1]]
    assert heights(right) == [[1, 40], [3, 30]]
    assert legend(figure) == ["REM", "QR-DQN", "DQN"]
    assert right.get_ylabel() == "games better than DQN (of 60)"
    assert left.yaxis.get_major_formatter()(1.2, None) == "120%"


def test_an_agent_has_one_colour_in_both_panels():
    turned = {agent: MEDIANS[agent]._replace(traces=[]) for agent in ("QR-DQN", "REM")}
    left, right = medians(turned).axes
    assert right.lines[1].get_color() == left.lines[1].get_color() == drawing.colour(1)  # REM
    assert right.lines[0].get_color() == left.lines[0].get_color() == drawing.colour(0)


def test_a_long_yardstick_leaves_the_label_inside_the_figure():
    figure = drawn(medians(yardstick="DQN (Nature) in training"))
    label = figure.axes[1].yaxis.label.get_window_extent()
    assert figure.bbox.ymin <= label.ymin < label.ymax <= figure.bbox.ymax


def test_bars_are_sorted_and_their_scale_is_linear_only_near_nought():
    (axes,) = improvement_bars(
        {"Pong": 50.0, "Qbert": -120.0, "Hero": 3.0, "Alien": 2000.0}, title="REM"
    ).axes
    assert [bar.get_height() for bar in axes.patches] == [-120, 3, 50, 2000]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["Qbert", "Hero", "Pong", "Alien"]
    assert axes.get_title(loc="left") == "REM"
    assert axes.get_yscale() == "symlog"
    assert axes.yaxis.get_transform().linthresh == 10
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert shown == ["\N{MINUS SIGN}100%", "\N{MINUS SIGN}10%", "0", "+10%", "+100%", "+1,000%"]
    assert axes.get_ylabel() == "improvement over DQN (Nature)"
    assert len({bar.get_facecolor() for bar in axes.patches}) == 2  # loss and gain
    (axes,) = improvement_bars({"A": 50.0}).axes
    assert list(axes.get_yticks()) == [0, 10, 100]  # a bar beyond 10% has a tick above it


@pytest.mark.parametrize("count", [5, 60])
def test_names_of_games_do_not_run_into_each_other(count):
    figure = drawn(improvement_bars({f"ChopperCommand{n}": float(n) for n in range(count)}))
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert len(boxes) == count
    if count == 60:  # upright names: one column each
        assert all(left.x1 <= right.x0 for left, right in zip(boxes, boxes[1:], strict=False))
    assert all(box.x0 >= 0 and box.y0 >= 0 for box in boxes)


def test_a_panel_has_a_band_traces_a_mean_and_levels():
    levels = {"Pong": {"best policy": 30.0, "average behaviour": 12.0}}
    (axes,) = (figure := curve_grid({"Pong": {"REM": SEEDS}}, levels, window=1)).axes
    assert heights(axes) == [[0, 10, 20], [4, 10, 40], [2, 10, 30], [30, 30], [12, 12]]
    assert [line.get_linestyle() for line in axes.lines[-2:]] == ["-", "--"]
    (band,) = axes.collections
    edge = band.get_paths()[0].vertices
    assert {tuple(point) for point in edge} >= {(1, 0), (1, 4), (2, 10), (3, 20), (3, 40)}
    assert axes.get_title() == "Pong"
    assert legend(figure) == ["REM", "best policy", "average behaviour"]


def test_a_curve_is_smoothed_over_what_came_before():
    curve = {10 * n: float(n) for n in range(7)}
    assert smoothed(curve) == {0: 0, 10: 0.5, 20: 1, 30: 1.5, 40: 2, 50: 3, 60: 4}
    assert smoothed(curve, 1) == curve


def test_each_seed_is_smoothed_before_the_mean_and_the_deviation():
    (axes,) = curve_grid({"Pong": {"REM": SEEDS}}).axes
    assert heights(axes) == [[0, 5, 10], [4, 7, 18], [2, 6, 14]]


def test_a_level_and_an_agent_look_the_same_in_every_panel():
    games = {"A": {"X": SEEDS, "Y": SEEDS}, "B": {"Y": SEEDS}}
    first, second = curve_grid(games, {"A": {"one": 1, "two": 2}, "B": {"two": 2}}, traces=False).axes
    assert first.lines[1].get_color() == second.lines[0].get_color()
    assert first.lines[3].get_linestyle() == second.lines[1].get_linestyle() == "--"


@pytest.mark.parametrize(
    ("count", "across"), [(1, 1), (5, 5), (7, 5), pytest.param(60, 6, marks=pytest.mark.slow)]
)
def test_a_grid_has_a_panel_per_game_and_its_legend_inside(count, across):
    games = {f"game {n}": {"REM": SEEDS, "Averaged Ensemble-DQN": SEEDS} for n in range(count)}
    levels = {game: {"best policy in the data (fully trained DQN)": 9.0} for game in games}
    figure = drawn(curve_grid(games, levels, across))
    assert [axes.get_title() for axes in figure.axes] == list(games)
    assert len({round(axes.get_position().x0, 3) for axes in figure.axes}) == across
    assert sum(axes.get_xlabel() == "iteration" for axes in figure.axes) == min(count, across)
    box, page = figure.legends[0].get_window_extent(), figure.bbox
    assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0
    lowest = min(axes.get_tightbbox().y0 for axes in figure.axes)
    assert box.y1 <= lowest + 1  # the legend hides no label


@pytest.mark.parametrize("label", ["$x^", "\\frac{", "_hidden", "a & b < c"])
def test_any_name_can_be_drawn(label):
    for figure in (
        medians({label: MEDIANS["REM"]}),
        improvement_bars({label: 5.0}, title=label),
        curve_grid({label: {label: SEEDS}}),
    ):
        assert drawing.svg(figure).startswith("<svg")


def test_marks_stand_beside_the_bars_in_their_order_and_widen_the_scale():
    figure = improvement_bars(
        {"A": 5.0, "B": -3.0}, heading="best of 9", marks={"last": {"A": -200.0, "B": -40.0}}
    )
    (axes,) = figure.axes
    assert list(axes.lines[0].get_ydata()) == [-40, -200]  # B is the worse bar, so it stands first
    assert legend(figure) == ["best of 9", "last"]
    assert min(axes.get_yticks()) == -100


def test_the_label_of_one_row_belongs_to_its_axis():
    figure = drawn(curve_grid({"Pong": {"REM": SEEDS}}))
    assert figure.axes[0].get_ylabel() == "average return"
    ticks = min(label.get_window_extent().x0 for label in figure.axes[0].get_yticklabels())
    words = figure.axes[0].yaxis.label.get_window_extent()
    assert 0 <= ticks - words.x1 < 12  # pixels


def test_counts_of_nothing_have_a_whole_scale():
    _, right = medians({"REM": MEDIANS["REM"]._replace(better=np.zeros(2))}).axes
    assert right.get_ylim() == (0, 1)


def test_a_profile_has_its_band_and_each_kind_its_panel():
    share = Interval(np.array([1.0, 0.5, 0.0]), np.array([1.0, 0.2, 0.0]), np.array([1.0, 0.8, 0.1]))
    figure = profiles({"last": {"REM": (np.array([0.0, 0.5, 1.0]), share)}, "best of 4": {}})
    left, right = figure.axes
    assert (left.get_title(), right.get_title()) == ("last", "best of 4")
    assert heights(left) == [[1.0, 0.5, 0.0]]
    edges = left.collections[0].get_paths()[0].vertices[:, 1]
    assert {0.2, 0.8} <= set(edges.tolist())
    assert legend(figure) == ["REM"]


def test_a_fixed_layout_is_the_one_that_would_be_found():
    figure, again = (medians() for _ in range(2))
    drawing.laid_out(figure)
    drawn(again)
    for fixed, found in zip(figure.axes, again.axes, strict=True):
        assert fixed.get_position().bounds == pytest.approx(found.get_position().bounds, abs=1e-3)
    assert drawing.laid_out(figure) is figure  # nothing is left to be found


# --- Charts and their files ---

CURVES = {"REM": [1.0, 5.0], "DQN": [1.0, 2.0]}


def chart_of(label: str = "REM") -> Figure:
    lines = {label: Line([0, 10], CURVES["REM"]), "DQN": Line([0, 10], CURVES["DQN"])}
    return chart(lines, xlabel="iteration", ylabel="median normalised score")


def certainty(agent: str, kind: str, seeds: int = 3) -> Certainty:
    bounds = (0.6, 1.1) if seeds > 1 else (None, None)
    return Certainty(agent, kind, games=1, seeds=seeds, iqm=Interval(0.8, *bounds))


def texts(text: str) -> set[str]:
    return {element.text for element in ElementTree.fromstring(text).iter() if element.tag.endswith("text")}


@pytest.mark.parametrize("tall", [False, True])
def test_an_agent_has_a_dot_and_a_bar_for_its_last_and_its_best(tall):
    found = [certainty(agent, kind) for agent in CURVES for kind in ("best", "cross", "last", "area")]
    figure = interval_plot(found, 4, "DQN", tall=tall)
    assert [axes.get_title() for axes in figure.axes] == ["last", "best of 4", "cross-chosen best"]
    bar, dot = figure.axes[0].lines[:2]
    assert list(bar.get_xdata()) == [0.6, 1.1] and list(dot.get_xdata()) == [0.8]


def test_one_seed_has_a_dot_and_no_bar():
    figure = interval_plot([certainty("REM", "last", seeds=1)], 4, "DQN")
    assert [len(line.get_xdata()) for line in figure.axes[0].lines] == [1, 2]  # the dot, and the line at 1


def test_the_same_curves_give_the_same_bytes_without_dates_and_colliding_ids():
    first, second = (drawing.svg(chart_of()) for _ in range(2))
    assert first == second
    assert not any(each in first for each in ("<metadata", "figure_1", "axes_1"))


@pytest.mark.parametrize("label", ["$x^", "a & b < c", "\\frac{", "a name that goes on and on and on"])
def test_any_label_of_a_chart_can_be_drawn(label):
    text = drawing.svg(chart_of(label))
    assert texts(text) >= {label, "DQN", "iteration", "median normalised score"}  # text stays text


def test_a_figure_that_is_laid_out_is_drawn_once_for_each_file(tmp_path, monkeypatch):
    figure, drawn, draw = drawing.laid_out(chart_of()), [], Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda self, renderer: drawn.append(self) or draw(self, renderer))
    drawing.save_png(figure, tmp_path / "curves.png")
    drawing.svg(figure)
    assert len(drawn) == 2
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("count", "short"), [(0, "0"), (500, "500"), (20_000, "20k"), (1_500_000, "1.5M")])
def test_counts_are_short(count, short):
    assert drawing.short_count(count) == short


# --- A figure of the user ---

OWN = """
from matplotlib.figure import Figure
from optimist.studies.report.figures import StudyFigure

EMPTY = StudyFigure("Nothing", "It has no panel.", lambda study, finding: Figure())
NEEDY = StudyFigure("Never", "", lambda study, finding: None, needs="it needs luck")
NUMBER = 3
"""


def test_a_users_figure_is_found_by_its_address_and_a_name_of_no_figure_is_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_figures.py").write_text(OWN)
    figures.check("own_figures:EMPTY")
    assert figures.figure("own_figures:EMPTY").title == "Nothing"
    assert figures.file_name("own_figures:EMPTY") == "EMPTY"
    with pytest.raises(UsageError, match="not a figure: it must be an optimist.studies.report.figures.Study"):
        figures.check("own_figures:NUMBER")
    with pytest.raises(UsageError, match='there is no figure "medans": did you mean "medians"'):
        figures.check("medans")


def test_a_users_figure_is_drawn_or_its_reason_is_given(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "more_figures.py").write_text(OWN)
    names = ("more_figures:EMPTY", "more_figures:NEEDY")
    out = write_study(tmp_path / "out", said={"figures": names})
    study = find(out)
    with pytest.raises(DataError, match="--allow more_figures"):  # somebody else's folder may name anything
        list(study_figures.drawings(study, names[0]))
    plugins.allow(["more_figures"])
    ((path, title, _),) = study_figures.drawings(study, names[0])
    assert (path, title) == ("all/EMPTY", "Nothing")
    monkeypatch.setattr(study_figures, "OPENING", ())
    drawn, left_out = study_figures.draw(study, are_files=False)
    assert [each.name for each in drawn] == [names[0]]
    assert left_out == [f'the figure "{names[1]}" is left out: it needs luck']
