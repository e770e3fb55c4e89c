"""Figures are the same bytes every time, keep their text, and draw what the run folders say."""

import xml.etree.ElementTree as ElementTree

import pytest

from optimist.studies.report import figures

HEADER = "step,seed,episode,return,length"


@pytest.fixture
def runs(tmp_path):
    rows = {"REM": ["0,0,0,1,9", "10,0,0,5,9", "0,1,0,3,9", "10,1,0,9,9"], "DQN": ["0,0,0,1,9", "10,0,0,2,9"]}
    for label, lines in rows.items():
        (tmp_path / label).mkdir()
        (tmp_path / label / "episodes.csv").write_text("\n".join([HEADER, *lines]))
    return {label: tmp_path / label for label in rows}


def words(drawing: str) -> set[str]:
    return {
        element.text for element in ElementTree.fromstring(drawing).iter() if element.tag.endswith("text")
    }


def test_curves_are_one_line_per_seed_and_their_mean(runs):
    (axes,) = figures.learning_curves(runs).axes
    drawn = [list(line.get_ydata()) for line in axes.lines]
    assert drawn == [[1, 5], [3, 9], [2, 7], [7], [1, 2], [1, 2], [2]]  # seeds, mean, end point; twice


def test_the_log_is_drawn_as_two_levels(runs):
    (axes,) = figures.learning_curves(runs, best=7.5, average=4.0).axes
    dashed, dotted = axes.lines[-2:]
    assert (dashed.get_linestyle(), dashed.get_ydata()[0]) == ("--", 7.5)
    assert (dotted.get_linestyle(), dotted.get_ydata()[0]) == (":", 4.0)


def test_text_stays_text(runs):
    drawing = figures.svg(figures.learning_curves(runs, best=7.5, average=4.0, title="Breakout"))
    expected = {"REM", "DQN", "Breakout", "gradient updates", "average return"}
    assert words(drawing) >= expected | {"best policy in the data", "average behaviour"}


def test_the_same_runs_give_the_same_bytes(runs):
    first, second = (figures.svg(figures.learning_curves(runs, best=1.0)) for _ in range(2))
    assert first == second


def test_a_drawing_carries_no_date_and_no_colliding_ids(runs):
    drawing = figures.svg(figures.learning_curves(runs))
    assert "<metadata" not in drawing
    assert "figure_1" not in drawing
    assert "axes_1" not in drawing


@pytest.mark.parametrize(
    "label", ["$x^", "a & b < c", "\\frac{", "_hidden", "a name that goes on and on and on"]
)
def test_any_label_can_be_drawn(runs, label):
    drawing = figures.svg(figures.learning_curves({label: runs["REM"]}, title=label))
    assert label in words(drawing)


def test_labels_of_equal_ends_do_not_overlap():
    assert figures._spread_apart([5.0, 5.0, 1.0], gap=0.5) == [5.0, 5.5, 1.0]


def test_experience_is_one_bar_per_tenth():
    (axes,) = figures.returns_over_experience({"return_per_tenth": [1, 2, None]}).axes
    assert [bar.get_height() for bar in axes.patches][:2] == [1, 2]


def test_a_png_is_written(runs, tmp_path):
    figures.save_png(figures.learning_curves(runs), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("count", "short"), [(0, "0"), (500, "500"), (20_000, "20k"), (1_500_000, "1.5M")])
def test_counts_are_short(count, short):
    assert figures.short_count(count) == short
