"""Aggregates are what loops over their definitions give, intervals are rliable's up to chance, and no score
that is missing or not a number is averaged in silence."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.errors import UsageError
from optimist.studies.scores import statistics
from optimist.studies.scores.statistics import (
    Interval,
    aggregates,
    iqm,
    mean,
    median,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    score_matrix,
    stratified_bootstrap,
)
from traces import GOLDEN

# Three runs on two games: the means over runs are 2 and 0.4.
SCORES = [[1.0, 0.1], [2.0, 0.4], [3.0, 0.7]]
AGGREGATES = [iqm, median, mean, optimality_gap]


def matrices(games: int | None = None):
    """Small matrices of scores; few distinct ones, so that ties are common."""
    score = st.integers(-8, 8).map(lambda eighths: eighths / 4)
    width = st.integers(1, 6) if games is None else st.just(games)
    sizes = st.tuples(st.integers(1, 6), width)
    return sizes.flatmap(
        lambda size: st.lists(
            st.lists(score, min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0]
        )
    )


def columns(scores):
    return [[row[game] for row in scores] for game in range(len(scores[0]))]


def average(values):
    values = [Fraction(value) for value in values]
    return sum(values) / len(values)


def loop_mean(scores):
    return average(average(column) for column in columns(scores))


def loop_median(scores):
    means = sorted(average(column) for column in columns(scores))
    below, above = means[(len(means) - 1) // 2], means[len(means) // 2]
    return (below + above) / 2


def loop_iqm(scores):
    left = sorted(score for row in scores for score in row)
    for _ in range(len(left) // 4):
        left = left[1:]
    for _ in range(len(scores) * len(scores[0]) // 4):
        left = left[:-1]
    return average(left)


def loop_gap(scores, gamma=1):
    return average(max(gamma - score, 0) for row in scores for score in row)


def loop_improvement(x, y):
    per_game = []
    for ours, theirs in zip(columns(x), columns(y), strict=True):
        wins = [1 if a > b else 0.5 if a == b else 0 for a in ours for b in theirs]
        per_game.append(average(wins))
    return average(per_game)


def test_the_aggregates_of_a_case_done_by_hand():
    assert mean(SCORES) == pytest.approx(1.2)
    assert median(SCORES) == pytest.approx(1.2)
    assert iqm(SCORES) == pytest.approx((0.4 + 0.7 + 1 + 2) / 4)  # 6 // 4 = 1 goes at either end
    assert optimality_gap(SCORES) == pytest.approx((0.9 + 0.6 + 0.3) / 6)
    assert optimality_gap(SCORES, gamma=2) == pytest.approx((1 + 1.9 + 1.6 + 1.3) / 6)


@given(matrices())
def test_aggregates_are_those_of_loops(scores):
    assert mean(scores) == pytest.approx(float(loop_mean(scores)))
    assert median(scores) == pytest.approx(float(loop_median(scores)))
    assert iqm(scores) == pytest.approx(float(loop_iqm(scores)))
    assert optimality_gap(scores) == pytest.approx(float(loop_gap(scores)))
    assert optimality_gap(scores, gamma=-0.5) == pytest.approx(float(loop_gap(scores, Fraction(-1, 2))))


@pytest.mark.parametrize("statistic", [*AGGREGATES, lambda scores: performance_profile(scores, [-1, 0, 1])])
def test_axes_in_front_are_kept(statistic):
    many = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    each = [[statistic(matrix) for matrix in row] for row in many]
    np.testing.assert_allclose(statistic(many), each, rtol=1e-13)


def test_a_profile_counts_what_is_strictly_above():
    assert performance_profile(SCORES, [0.1, 0.4, 2.5, 3.0]).tolist() == pytest.approx(
        [5 / 6, 4 / 6, 1 / 6, 0]
    )


def test_ties_are_half_an_improvement():
    assert probability_of_improvement([[1.0], [2.0]], [[1.0]]) == 0.75
    assert probability_of_improvement([[1.0, 5.0]], [[1.0, 9.0]]) == 0.25


@given(st.integers(1, 4).flatmap(lambda games: st.tuples(matrices(games), matrices(games))))
def test_improvement_is_that_of_loops_and_one_side_gains_what_the_other_loses(both):
    x, y = both
    assert probability_of_improvement(x, y) == pytest.approx(float(loop_improvement(x, y)))
    assert probability_of_improvement(x, y) + probability_of_improvement(y, x) == pytest.approx(1)


def test_improvement_needs_the_same_games():
    with pytest.raises(UsageError, match="2 games and 1 games"):
        probability_of_improvement(SCORES, [[1.0]])


# ---- The bootstrap ----


def test_two_runs_of_one_game_have_the_interval_one_counts_out():
    """Of 0 and 1 the mean of two draws is 0, 1/2 or 1 with chances 1/4, 1/2, 1/4."""
    assert stratified_bootstrap(mean, [[0.0], [1.0]], confidence=0.6) == Interval(0.5, 0.0, 1.0)
    assert stratified_bootstrap(mean, [[0.0], [1.0]], confidence=0.4) == Interval(0.5, 0.5, 0.5)


def test_runs_are_drawn_within_their_game_and_on_their_own():
    """Means of both games, drawn together; runs drawn as whole rows would make the two always equal."""
    rows = []

    def keep(drawn):
        rows.append(drawn)
        return mean(drawn)

    stratified_bootstrap(keep, [[0.0, 10.0], [1.0, 11.0]], repetitions=40_000)
    drawn = np.concatenate(rows[1:])
    first, second = drawn[..., 0], drawn[..., 1] - 10
    assert set(np.unique(first)) == set(np.unique(second)) == {0.0, 1.0}
    assert drawn[..., 0].mean() == pytest.approx(0.5, abs=0.01)
    assert np.mean(first == second) == pytest.approx(0.5, abs=0.01)
    assert np.mean(first[:, 0] == first[:, 1]) == pytest.approx(0.5, abs=0.01)


def test_two_matrices_are_drawn_independently():
    matrix = np.arange(4.0).reshape(4, 1)
    same = stratified_bootstrap(lambda x, y: mean(np.abs(x - y)), matrix, matrix, repetitions=2000)
    assert same.estimate == 0
    assert same.high > 1


def test_the_deviation_of_the_mean_is_the_exact_one():
    """Games are drawn on their own: variance = sum over games of (variance of its runs / runs) / games²."""
    scores = np.random.default_rng(3).lognormal(size=(5, 20))
    drawn = []
    stratified_bootstrap(lambda s: drawn.append(mean(s)) or mean(s), scores)
    deviation = math.sqrt((scores.var(axis=0) / 5).sum()) / 20
    assert np.concatenate(drawn[1:]).std() == pytest.approx(deviation, rel=0.02)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    scores = np.random.default_rng(0).normal(size=(4, 6))
    first = aggregates(scores, repetitions=500, seed=7)
    assert aggregates(scores, repetitions=500, seed=7) == first
    assert aggregates(scores, repetitions=500, seed=8) != first


@pytest.mark.parametrize("at_once", [1, 100, 2**30])
def test_how_many_are_drawn_at_once_changes_nothing(monkeypatch, at_once):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(3, 7)), random.normal(size=(5, 7))

    def lead(x, y):
        return mean(x) - mean(y)

    expected = stratified_bootstrap(lead, x, y, repetitions=300)
    monkeypatch.setattr(statistics, "AT_ONCE", at_once)
    found = stratified_bootstrap(lead, x, y, repetitions=300)
    np.testing.assert_allclose([found.low, found.high], [expected.low, expected.high], rtol=1e-12)


def test_all_aggregates_together_are_each_alone():
    scores = np.random.default_rng(0).lognormal(size=(4, 6))
    together = aggregates(scores, repetitions=400, confidence=0.9, seed=2)
    assert list(together) == ["iqm", "median", "mean", "optimality_gap"]
    for aggregate in AGGREGATES:
        alone = stratified_bootstrap(aggregate, scores, repetitions=400, confidence=0.9, seed=2)
        assert together[aggregate.__name__] == alone


def test_one_run_can_only_be_drawn_again():
    for interval in aggregates(np.random.default_rng(0).normal(size=(1, 9)), repetitions=50).values():
        assert interval.low == interval.estimate == interval.high


# ---- Against rliable: numbers recorded by record_rliable.py ----

RLIABLE = json.loads((GOLDEN / "rliable.json").read_text())
X, Y, THRESHOLDS = RLIABLE["x"], RLIABLE["y"], RLIABLE["thresholds"]
COMPARED = {
    "aggregates": (lambda s: np.stack([aggregate(s) for aggregate in AGGREGATES], axis=-1), (X,)),
    "performance_profile": (lambda s: performance_profile(s, THRESHOLDS), (X,)),
    "probability_of_improvement": (lambda x, y: probability_of_improvement(x, y)[..., None], (X, Y)),
}


@pytest.mark.parametrize("name", COMPARED)
def test_estimates_are_those_of_rliable(name):
    statistic, scores = COMPARED[name]
    np.testing.assert_allclose(statistic(*scores), RLIABLE[name]["estimate"], rtol=1e-14)


@pytest.mark.parametrize("name", COMPARED)
def test_bounds_are_those_of_rliable_up_to_chance(name):
    """Within four deviations of what rliable's own bounds do from seed to seed."""
    statistic, scores = COMPARED[name]
    interval = stratified_bootstrap(statistic, *scores, repetitions=RLIABLE[name]["repetitions"])
    for side in ("low", "high"):
        theirs = np.array(RLIABLE[name][side])
        ours, chance = getattr(interval, side), theirs.std(axis=0, ddof=1)
        assert (np.abs(ours - theirs.mean(axis=0)) <= 4 * chance + 1e-12).all(), (ours, theirs)


# ---- What is refused ----


def test_games_stand_in_the_order_asked_for():
    by_game = {"pong": [3, 4], "asterix": [1, 2]}
    assert score_matrix(by_game).tolist() == [[1, 3], [2, 4]]
    assert score_matrix(by_game, ["pong", "asterix"]).tolist() == [[3, 1], [4, 2]]
    assert score_matrix(by_game, ["pong"]).tolist() == [[3], [4]]
    with pytest.raises(UsageError, match="breakout has no scores"):
        score_matrix(by_game, ["pong", "breakout"])


@pytest.mark.parametrize(
    ("by_game", "message"),
    [
        ({"asterix": [1, 2, 3], "pong": [1, 2]}, "pong has 2 runs and asterix has 3: finish"),
        ({"asterix": [], "pong": [1, 2]}, "asterix has 0 runs and pong has 2: finish"),
        ({"asterix": [1, 2], "pong": [1, math.nan]}, "pong, run 2: a score of nan"),
        ({"asterix": [-math.inf, 2], "pong": [1, 2]}, "asterix, run 1: a score of -inf"),
        ({"asterix": [1], "pong": [None]}, "pong, run 1: a score of nan"),
        ({"asterix": ["high"]}, "must be numbers"),
        ({"asterix": []}, "at least one of each"),
        ({}, "at least one of each"),
    ],
)
def test_what_is_missing_is_named(by_game, message):
    with pytest.raises(UsageError, match=message) as refusal:
        score_matrix(by_game)
    assert "\n" not in str(refusal.value)


STATISTICS = [
    *AGGREGATES,
    lambda scores: performance_profile(scores, [0]),
    lambda scores: probability_of_improvement(scores, [[0.0, 0.0]]),
    lambda scores: probability_of_improvement([[0.0, 0.0]], scores),
    lambda scores: stratified_bootstrap(mean, scores),
]


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[1.0, math.nan], [1.0, 1.0]], "game 2 of 2, run 1: a score of nan"),
        ([[1.0, 1.0], [math.inf, 1.0]], "game 1 of 2, run 2: a score of inf"),
        ([[1.0, 2.0], [1.0]], "the same number of runs"),
        ([1.0, 2.0], r"shape \(2,\)"),
        (np.empty((0, 2)), r"shape \(0, 2\)"),
        (np.empty((3, 0)), r"shape \(3, 0\)"),
    ],
)
def test_every_statistic_refuses_what_is_no_matrix_of_scores(statistic, scores, message):
    with pytest.raises(UsageError, match=message):
        statistic(scores)


def test_a_stack_of_matrices_is_not_resampled():
    with pytest.raises(UsageError, match=r"shape \(2, 3, 4\)"):
        stratified_bootstrap(mean, np.zeros((2, 3, 4)))


@pytest.mark.parametrize(
    ("statistic", "matrices", "options", "message"),
    [
        (np.mean, [SCORES], {}, "keep those before them"),
        (lambda scores: scores.mean(axis=0), [SCORES], {}, "keep those before them"),
        (mean, [], {}, "0 matrices"),
        (mean, [SCORES], {"repetitions": 0}, "at least one repetition"),
        (mean, [SCORES], {"confidence": 0}, "between 0 and 1"),
        (mean, [SCORES], {"confidence": 95}, "between 0 and 1"),
    ],
)
def test_a_bootstrap_that_makes_no_sense_is_refused(statistic, matrices, options, message):
    with pytest.raises(UsageError, match=message):
        stratified_bootstrap(statistic, *matrices, **options)


def test_pairs_are_drawn_together():
    """Two agents that differ by a constant on every log: the difference is certain, however the logs vary."""
    y = np.random.default_rng(1).normal(size=(5, 3), scale=10)
    found = statistics.paired_difference(y + 0.5, y, repetitions=500)
    assert (found.estimate, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    apart = statistics.stratified_bootstrap(lambda a, b: iqm(a) - iqm(b), y + 0.5, y, repetitions=500)
    assert apart.high - apart.low > 1


def test_a_paired_interval_is_the_quantiles_of_the_same_draws_by_loops():
    random = np.random.default_rng(2)
    x, y = random.normal(size=(4, 2)), random.normal(size=(4, 2))
    found = statistics.paired_difference(x, y, mean, repetitions=300, seed=7)
    draws = np.random.default_rng(7).integers(4, size=(300, 4, 2))
    by_hand = []
    for draw in draws:
        chosen = [
            [x[draw[run, game], game] - y[draw[run, game], game] for game in range(2)] for run in range(4)
        ]
        by_hand.append(np.mean(chosen))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(by_hand, [0.025, 0.975])))


def test_pairs_need_the_same_runs_and_games():
    with pytest.raises(UsageError, match="pairs need the same runs and games"):
        statistics.paired_difference(np.zeros((3, 2)), np.zeros((4, 2)))
