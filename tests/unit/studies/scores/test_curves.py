"""Scores are what one computes by hand from episodes.csv, and no row of it is passed over in silence."""

import pytest

from optimist.errors import RunError
from optimist.studies.scores.curves import curves, mean_curve, sheet

HEADER = "step,seed,episode,return,length"
# Two seeds, evaluated four times with two episodes each: the averages are 1, 5, 3, 4 and 2, 2, 9, 7.
EPISODES = """
0,0,0,0,9    0,0,1,2,9
10,0,0,4,9   10,0,1,6,9
20,0,0,3,9   20,0,1,3,9
30,0,0,8,9   30,0,1,0,9
0,1,0,2,9    0,1,1,2,9
10,1,0,1,9   10,1,1,3,9
20,1,0,9,9   20,1,1,9,9
30,1,0,7,9   30,1,1,7,9
"""


def write(folder, *rows, header=HEADER):
    (folder / "episodes.csv").write_text("\n".join([header, *rows]) + "\n")
    return folder


@pytest.fixture
def run(tmp_path):
    return write(tmp_path, *EPISODES.split())


def test_episodes_of_one_evaluation_are_averaged(run):
    assert curves(run) == {0: {0: 1, 10: 5, 20: 3, 30: 4}, 1: {0: 2, 10: 2, 20: 9, 30: 7}}


def test_the_table_has_the_mean_of_the_seeds_and_their_sample_deviation(run, tmp_path):
    """Last 4 and 7, best 5 and 9, mean of the last three 4 and 6."""
    shown = sheet({"REM": curves(run)}, {"best policy": 12.0, "unknown": None})
    assert shown.heads == ["", "last", "each seed's best of n", "mean of last 3"]
    texts = [[cell.text for cell in row] for row in shown.cells()]
    assert texts == [
        ["REM", "5.5 ± 2.1", "7.0 ± 2.8 of 4", "5.0 ± 1.4"],
        ["best policy", "12.0", "", ""],
    ]
    one = sheet({"REM": curves(write(tmp_path, "5,3,0,2.5,9"))}, {})
    assert [cell.text for cell in one.cells()[0]] == ["REM", "2.5", "2.5 of 1"]


def test_rows_may_come_in_any_order(run, tmp_path):
    assert curves(write(tmp_path, *reversed(EPISODES.split()))) == {
        0: {0: 1, 10: 5, 20: 3, 30: 4},
        1: {0: 2, 10: 2, 20: 9, 30: 7},
    }


def test_a_seed_that_stopped_early_does_not_move_the_mean(tmp_path):
    run = write(tmp_path, "0,0,0,1,9", "10,0,0,3,9", "0,1,0,3,9")
    assert mean_curve(curves(run)) == {0: 2}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no evaluation episodes"),
        (["0,0,0,1,9", "0,0,1"], "a row that is no episode .*#3"),
        (["0,0,0,fine,9"], "a row that is no episode .*Row #2"),
        (["0,0,0,nan,9"], "holds a return that is not finite"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, rows, message):
    with pytest.raises(RunError, match=message):
        curves(write(tmp_path, *rows))


def test_a_foreign_header_is_refused(tmp_path):
    with pytest.raises(RunError, match="line 1 is damaged"):
        curves(write(tmp_path, "0,1,2", header="a,b,c"))


def test_a_run_without_evaluations_says_how_to_get_them(tmp_path):
    with pytest.raises(RunError, match="optimist evaluate"):
        curves(tmp_path)
