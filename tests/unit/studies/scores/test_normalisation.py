"""Scores become medians and counts as one works them out by hand, and nothing incomplete is averaged in."""

import csv
import gzip
import io

import numpy as np
import pytest

from optimist.errors import DataError, UsageError
from optimist.studies.scores import normalisation
from optimist.studies.scores import normalisation as reference
from optimist.studies.scores.curves import complete, read_scores
from optimist.studies.scores.finding import Finding, paper_numbers
from optimist.studies.scores.intervals import medians
from optimist.studies.scores.normalisation import Normaliser, scores_by_kind

# On B, DQN is worse than random play.
BY = Normaliser({"A": 100, "B": 10, "C": 50}, {"A": 0, "B": 20, "C": -50})
HEADER = "game,agent,seed,iteration,score"
# Means over the two seeds of REM: A 90, 110; B 15, 9; C 50, 100. DQN (Adam) never moves: 50, 30, 0.
REM_ROWS = """
A,REM,0,1,80   A,REM,1,1,100   A,REM,0,2,120   A,REM,1,2,100
B,REM,0,1,12   B,REM,1,1,18    B,REM,0,2,8     B,REM,1,2,10
C,REM,0,1,50   C,REM,1,1,50    C,REM,0,2,150   C,REM,1,2,50
"""
REM = REM_ROWS.split()
ADAM = [
    f"{game},DQN (Adam),{seed},{step},{score}"
    for game, score in (("A", 50), ("B", 30), ("C", 0))
    for seed in (0, 1)
    for step in (1, 2)
]


def write_csv(folder, *rows, header=HEADER):
    path = folder / "scores.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def scores(tmp_path):
    return read_scores(write_csv(tmp_path, *REM, *ADAM))


# one score


@pytest.mark.parametrize(
    ("game", "score", "normalised"),
    [("A", 0, 0), ("A", 100, 1), ("A", -50, -0.5), ("C", 0, 0.5), ("C", 150, 2)],
)
def test_random_play_is_nought_and_dqn_is_one(game, score, normalised):
    assert BY.normalised(game, score) == normalised
    assert BY.improvement(game, score) == 100 * (normalised - 1)


def test_where_dqn_is_below_random_the_worse_is_still_nought():
    assert BY.bounds("B") == (10, 20)
    assert [BY.normalised("B", score) for score in (10, 20, 15, 0)] == [0, 1, 0.5, -1]


def test_better_than_dqn_is_about_dqn_and_strict():
    assert not BY.is_better("A", 100)
    assert BY.is_better("A", 100.1)
    assert BY.is_better("B", 11) and BY.normalised("B", 11) == 0.1  # better than DQN, worse than random


@pytest.mark.parametrize("game", ["Skiing", "Solaris"])
def test_the_default_finds_dqn_below_random_where_the_paper_does(game):
    by = normalisation.normaliser("dqn-random")
    assert by.yardstick_scores[game] < by.random_scores[game]
    assert by.normalised(game, by.random_scores[game]) == 1


@pytest.mark.parametrize("name", normalisation.BUILT_IN)
def test_a_built_in_normaliser_knows_sixty_games_and_where_they_come_from(name):
    by = normalisation.normaliser(name)
    for game in reference.published():
        low, high = by.bounds(game)
        assert low < high
    assert len(by.yardstick_scores) == len(by.random_scores) == 60
    assert by.name == name and by.provenance


def test_a_human_is_one_by_the_human_normaliser():
    by = normalisation.normaliser("human-random")
    assert by.normalised("Pong", 14.6) == pytest.approx(1)
    assert by.normalised("Pong", -20.7) == pytest.approx(0)
    assert by.yardstick == "human"


def test_a_file_is_a_normaliser(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("game,expert,random\nA,4,2\n")
    by = normalisation.normaliser(str(path))
    assert (by.yardstick, by.bounds("A"), by.provenance) == ("expert", (2, 4), f"the file {path}")
    path.write_text("dqn,game,random\n4,A,2\n")
    assert normalisation.normaliser(str(path)).yardstick == "DQN"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("game,dqn\nA,1\n", "is not a normaliser: it needs the columns game,random,dqn"),
        ("game,dqn,random,human\nA,1,2,3\n", "is not a normaliser"),
        ("game,dqn,random\n", "is not a normaliser"),
        ("game,dqn,random\nA,1,0\nA,2,0\n", 'several rows of "A": keep one'),
        ("game,dqn,random\nA,inf,0\n", 'line 2 has the score "inf": it needs a finite number'),
        ("game,dqn,random\nA,1\n", "line 2 has more or fewer cells than the header"),
        ("game,random,random\nA,1,2\n", "two columns with the same name"),
    ],
)
def test_a_normaliser_that_cannot_be_read_is_refused(tmp_path, text, message):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        normalisation.normaliser(str(path))


def test_an_unknown_normaliser_is_named():
    with pytest.raises(
        UsageError, match='no normaliser "dqn-randm": did you mean "dqn-random".* or name a CSV'
    ):
        normalisation.normaliser("dqn-randm")
    with pytest.raises(DataError, match="missing.csv does not exist"):
        normalisation.normaliser("missing.csv")


def test_a_game_without_scores_is_named_with_the_remedy():
    with pytest.raises(
        UsageError, match='no DQN score of "Pon": did you mean "Pong".* or give both .*--normaliser'
    ):
        normalisation.normaliser("dqn-random").normalised("Pon", 1)
    with pytest.raises(UsageError, match='no random score of "A": leave the game out or give both'):
        Normaliser({"A": 1}, {}).is_better("A", 1)


def test_two_equal_scores_measure_nothing():
    with pytest.raises(
        UsageError, match="A: DQN and random play both score 3 in .*leave the game out, or give"
    ):
        Normaliser({"A": 3}, {"A": 3}).normalised("A", 1)


# curves


def test_curves_end_in_five_ways():
    """Means over seeds: 5, 4, 3, 5.5. Seed 0 is best for itself at 10, seed 1 at 40."""
    seeds = {0: {10: 9.0, 20: 1.0, 30: 2.0, 40: 3.0}, 1: {10: 1.0, 20: 7.0, 30: 4.0, 40: 8.0}}
    # Seed 0 is scored where seed 1 is best, at 40; seed 1 where seed 0 is, at 10.
    assert scores_by_kind(seeds, recent=2) == {
        "best": [3, 8],
        "cross": [3, 1],
        "last": [3, 8],
        "mean_of_last": [2.5, 6],
        "area": [15 / 4, 5],
    }


def test_one_seed_is_chosen_by_no_other():
    assert scores_by_kind({7: {0: 4.0}}) == dict.fromkeys(("best", "last", "mean_of_last", "area"), [4])
    with pytest.raises(DataError, match="different steps"):  # the last of each would be of other steps
        scores_by_kind({0: {1: 4.0}, 1: {1: 4.0, 2: 4.0}})


def test_the_best_of_noise_flatters_and_the_cross_chosen_best_does_not():
    random = np.random.default_rng(0)
    flattered, fair = [], []
    for _ in range(200):
        seeds = {seed: dict(enumerate(random.normal(size=25))) for seed in range(5)}
        flattered.append(np.mean(scores_by_kind(seeds)["best"]))
        fair.append(np.mean(scores_by_kind(seeds)["cross"]))
    assert np.mean(flattered) > 0.8 and abs(np.mean(fair)) < 0.1


def test_seeds_are_averaged_before_the_median_and_a_trace_is_the_median_of_one_seed(scores):
    """Means over seeds: A 90, 110; B 15, 9; C 50, 100."""
    found = medians(scores.agents["REM"], BY)
    assert found.steps == [1, 2]
    assert found.median == pytest.approx([0.9, 1.1])  # of .9 .5 1, and 1.1 -.1 1.5
    assert found.better.tolist() == [1, 2]  # B; then A and C
    np.testing.assert_allclose(found.traces, [[0.8, 1.2], [1.0, 1.0]])  # seed 0: .8 .2 1, and 1.2 -.2 2


def test_a_trace_goes_by_the_order_of_the_seeds_where_games_have_others():
    by_game = {"A": {3: {1: 70.0}, 9: {1: 90.0}}, "C": {0: {1: 25.0}, 1: {1: 75.0}}}
    expected = [(BY.normalised("A", a) + BY.normalised("C", c)) / 2 for a, c in ((70, 25), (90, 75))]
    np.testing.assert_allclose(medians(by_game, BY).traces, np.transpose([expected]))


@pytest.mark.parametrize(
    ("by_game", "message"),
    [
        ({"A": {0: {1: 1.0}}, "C": {0: {2: 1.0}}}, "the games differ in seeds or steps"),
        ({"A": {0: {1: 1.0}, 1: {1: 1.0}}, "C": {0: {1: 1.0}}}, "the games differ in seeds or steps"),
        ({"A": {0: {1: 1.0}, 1: {1: 1.0, 2: 1.0}}}, r"the seeds \[0, 1\] were evaluated at different steps"),
    ],
)
def test_curves_that_do_not_match_have_no_median(by_game, message):
    with pytest.raises(DataError, match=message):
        medians(by_game, BY)


# the file


def test_rows_and_columns_come_in_any_order(tmp_path, scores):
    turned = [",".join(reversed(row.split(","))) for row in reversed(REM)]
    found = read_scores(write_csv(tmp_path, *turned, header="score,step,seed,agent,game"))
    assert found.agents["REM"] == scores.agents["REM"]
    assert found.axis == "step"


def test_a_compressed_file_is_read(tmp_path, scores):
    """The page of a large study has one."""
    text = write_csv(tmp_path, *REM, *ADAM).read_bytes()
    (tmp_path / "scores.csv.gz").write_bytes(gzip.compress(text))
    assert read_scores(tmp_path / "scores.csv.gz") == scores
    (tmp_path / "scores.csv.gz").write_bytes(text)
    with pytest.raises(DataError, match="is not a CSV file"):
        read_scores(tmp_path / "scores.csv.gz")


def test_a_file_without_iterations_has_one_evaluation(tmp_path):
    found = read_scores(write_csv(tmp_path, "A,REM,0,5", header="\ufeffgame, agent, seed, score"))
    assert found.agents == {"REM": {"A": {0: {0: 5}}}}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "holds no scores"),
        (["A,REM,0,1,5", "A,REM,0,1,6"], r"line 3 is the second score of REM on A \(seed 0, iteration 1\)"),
        (["A,REM,0,1,5", "A,REM,0,1,5"], "keep one of the two"),
        (["A,REM,0,1"], "line 2 has more or fewer cells than the header"),
        (["A,REM,0,1,5,6"], "line 2 has more or fewer cells than the header"),
        (["A,REM,0,1,high"], 'line 2 has the score "high": it needs a finite number'),
        (["A,REM,0,1,nan"], 'line 2 has the score "nan"'),
        (["A,REM,zero,1,5"], 'line 2 has "zero": it needs a whole number, 0 or more'),
        (["A,REM,0,-1,5"], 'line 2 has "-1": it needs'),
        ([",REM,0,1,5"], "line 2 has no game"),
        (["A, ,0,1,5"], "line 2 has no agent"),
        (['A,"REM,0,1,5'], "is not a CSV file"),
    ],
)
def test_a_row_that_says_nothing_clear_is_refused(tmp_path, rows, message):
    with pytest.raises(DataError, match=message):
        read_scores(write_csv(tmp_path, *rows))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "game,agent,seed,iteration,value",
            'has no column "score": it needs game,agent,seed,iteration,score',
        ),
        ("game;agent;seed;score;x", "has more or fewer cells than the header"),
        ("game,agent,seed,iterations,score", 'unknown column "iterations": did you mean "iteration"?'),
        ("iteration,step,seed,agent,score", "both iteration and step"),
        ("game,agent,seed,score,score", "two columns with the same name"),
    ],
)
def test_a_header_that_is_another_is_refused(tmp_path, header, message):
    with pytest.raises(DataError, match=message):
        read_scores(write_csv(tmp_path, "1,2,3,4,5", header=header))


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_scores(tmp_path / "nowhere.csv")
    (tmp_path / "scores.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not a CSV file in UTF-8"):
        read_scores(tmp_path / "scores.csv")


def without(start: str) -> list[str]:
    return [row for row in (*REM, *ADAM) if not row.startswith(start)]


@pytest.mark.parametrize(
    ("missing", "gap"),
    [
        ("B,REM,", "none of REM"),
        ("B,DQN (Adam),1,", "DQN (Adam) lacks seed 1"),
        ("B,REM,1,2,", "REM, seed 1 lacks iteration 2"),
    ],
)
def test_a_gap_is_told_and_left_out_only_when_asked(tmp_path, missing, gap):
    found = read_scores(write_csv(tmp_path, *without(missing)))
    assert found.gaps() == {"B": gap}
    with pytest.raises(DataError) as refusal:
        complete(found, leave_out=False)
    assert str(refusal.value) == (
        f"1 of 3 games is incomplete: B ({gap}): add the rows, or leave these games out "
        "with --incomplete leave-out"
    )
    kept, left_out = complete(found, leave_out=True)
    assert kept.games == ["A", "C"] and left_out == {"B": gap}
    assert all(set(by_game) == {"A", "C"} for by_game in kept.agents.values())


def test_an_agent_with_fewer_seeds_everywhere_leaves_nothing(tmp_path):
    rows = [row for row in (*REM, *ADAM) if "DQN (Adam),1" not in row]
    with pytest.raises(DataError, match="3 of 3 games are incomplete: .*no game is left; add the rows"):
        complete(read_scores(write_csv(tmp_path, *rows)), leave_out=True)


def test_each_game_may_have_seeds_of_its_own_as_of_the_best_players(tmp_path):
    """Every game with another best player than the others was left out, and so no game was left."""
    seeds = [("A", 4), ("A", 7), ("B", 0), ("B", 7)]
    rows = [f"{game},{agent},{seed},1,1" for agent in "XY" for game, seed in seeds]
    assert read_scores(write_csv(tmp_path, *rows)).gaps() == {}
    rows = [row for row in rows if row != "B,Y,7,1,1"]
    assert read_scores(write_csv(tmp_path, *rows)).gaps() == {"B": "Y lacks seed 7"}
    rows = [row for row in rows if row != "B,X,7,1,1"]  # fewer than in A, by all agents
    assert read_scores(write_csv(tmp_path, *rows)).gaps() == {"B": "X lacks seed 4"}


def test_many_gaps_are_counted(tmp_path):
    rows = [f"{game},X,0,1,1" for game in "ABCDE"] + ["F,X,0,1,1", "F,Y,0,1,1"]
    with pytest.raises(DataError, match="5 of 6 games are incomplete: .* and 2 more: add"):
        complete(read_scores(write_csv(tmp_path, *rows)), leave_out=False)


def test_agents_may_be_trained_for_different_times(tmp_path, scores):
    found = read_scores(write_csv(tmp_path, *REM, *(row for row in ADAM if ",2," not in row)))
    assert found.gaps() == {}
    assert "1 to 2 (more are an advantage)" in Finding(found, BY).table().notes[0]


# Table 1


def test_the_table_is_what_one_works_out_by_hand(scores):
    rem, adam = Finding(scores, BY).rows
    assert (rem.agent, rem.games, rem.seeds, rem.evaluations) == ("REM", 3, 2, 2)
    # best: A 110, B 15, C 100; last: A 110, B 9, C 100; mean of both: A 100, B 12, C 75
    kinds = ("best", "last", "mean_of_last")
    assert [rem.median_percent[kind] for kind in kinds] == pytest.approx([110, 110, 100])
    assert [rem.games_better[kind] for kind in kinds] == [3, 2, 2]  # A is DQN's equal in the mean, not better
    assert [adam.median_percent[kind] for kind in kinds] == pytest.approx([50] * 3)  # of 50, 200, 50
    assert [adam.games_better[kind] for kind in kinds] == [1] * 3


def test_best_is_the_best_mean_and_not_the_mean_of_bests(tmp_path):
    rows = ["A,REM,0,1,100", "A,REM,0,2,0", "A,REM,1,1,0", "A,REM,1,2,100"]
    (row,) = Finding(read_scores(write_csv(tmp_path, *rows)), BY).rows
    assert row.median_percent["best"] == pytest.approx(50)


def test_games_are_sorted_by_improvement(scores):
    games = Finding(scores, BY).games
    assert [row.game for row in games["REM"]] == ["B", "A", "C"]
    assert [row.improvement["best"] for row in games["REM"]] == pytest.approx([-50, 10, 50])
    assert [row.improvement["last"] for row in games["REM"]] == pytest.approx([-110, 10, 50])
    assert [row.game for row in games["DQN (Adam)"]] == ["A", "C", "B"]


def test_the_paper_stands_beside_agents_of_its_names(scores):
    shown = Finding(scores, BY).table()
    means = ("last", "mean of last 2", "mean of all")  # there are no more than 2
    assert shown.heads == ["agent", "best", "cross-chosen best", *means, "paper, 1X", "paper, 5X"]
    rem, adam = ([cell.text for cell in row] for row in shown.cells())
    assert rem[1] == "110.0% / 3" and rem[3:5] == ["110.0% / 2", "100.0% / 2"]
    assert rem[-2:] == ["103.7% / 35", "123.8% / 49"]
    assert adam[-2:] == ["104.6% / 39", "111.9% / 41"]
    assert shown.title == "median normalised score / games > DQN, of 3 games"


@pytest.mark.parametrize("name", ["qr_dqn", "QR-DQN", "Qr Dqn"])
def test_a_name_is_known_in_any_spelling(name):
    assert paper_numbers(name) == {"paper, 1X": (115.0, 44), "paper, 5X": (118.9, 45)}
    assert paper_numbers(f"{name} (1X)") == {"paper, 1X": (115.0, 44)}


def test_dqn_alone_is_neither_of_the_papers_two():
    assert paper_numbers("DQN") == paper_numbers("C51") == {}
    assert paper_numbers("dqn-nature")["paper, 5X"] == (83.4, 17)


def test_the_paper_is_not_shown_beside_percent_of_something_else(scores):
    by = Normaliser(BY.yardstick_scores, BY.random_scores, yardstick="human")
    finding = Finding(scores, by)
    assert not any("paper" in kind for row in finding.rows for kind in row.median_percent)
    assert not any("the paper's numbers" in note for note in finding.table().notes)


def test_the_table_as_files(tmp_path, scores):
    paths = Finding(scores, BY, {"D": "none of REM"}).write(tmp_path / "out")
    assert [path.name for path in paths] == ["table.md", "table.csv", "per_game.csv", "aggregates.csv"]
    page = paths[0].read_text()
    assert page.splitlines()[0] == "# Median normalised score / games > DQN, of 3 games"
    assert "| REM | 110.0% / 3 | " in page
    assert page.endswith("\n- left out of every number: D (none of REM)\n")
    rem, adam = csv.DictReader(io.StringIO(paths[1].read_text()))
    assert rem["games_better_best"] == "3" and float(rem["median_percent_last"]) == pytest.approx(110)
    assert adam["median_percent_paper_5X"] == "111.9" and adam["evaluations"] == "2"
    first = next(csv.DictReader(io.StringIO(paths[2].read_text())))
    assert (first["agent"], first["game"], first["score_best"]) == ("REM", "B", "15.0")
    assert float(first["improvement_best"]) == -50
