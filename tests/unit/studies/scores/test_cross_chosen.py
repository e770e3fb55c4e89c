"""Every draw of cross-chosen runs chooses its evaluations again, so that its intervals cover the truth."""

from functools import partial

import numpy as np
import pytest

from optimist.studies.scores import intervals
from optimist.studies.scores.curves import ScoreFile
from optimist.studies.scores.normalisation import Normaliser
from optimist.studies.scores.statistics import (
    FEW,
    CrossChosen,
    aggregates,
    iqm,
    mean,
    optimality_gap,
    paired_difference,
    performance_profile,
    stratified_bootstrap,
)


def best_for(others):
    """The first evaluation at which the mean of these curves is largest."""
    means = [np.mean([curve[at] for curve in others]) for at in range(len(others[0]))]
    return means.index(max(means))


def chosen_by_loops(curves, drawn):
    """The scores of the drawn runs of one game; copies of a run do not choose for it."""
    found = []
    for run in drawn:
        others = [curves[other] for other in drawn if other != run]
        others = others or [curve for number, curve in enumerate(curves) if number != run]
        found.append(curves[run][best_for(others)])
    return found


def runs(curves):
    """Runs of games whose curves are (runs, evaluations) each."""
    each = [chosen_by_loops(game, range(len(game))) for game in curves]
    return CrossChosen(np.array(each).T, curves)


@pytest.mark.parametrize("count", [2, 3, 5, FEW, FEW + 1])
def test_a_draw_is_scored_as_loops_score_it(count):
    random = np.random.default_rng(count)
    games = [random.normal(size=(count, evaluations)) for evaluations in (4, 7)]
    drawn = random.integers(count, size=(200, count, 2))
    found = runs(games).drawn(drawn)
    for draw in range(200):
        for game, curves in enumerate(games):
            expected = chosen_by_loops(curves, drawn[draw, :, game])
            np.testing.assert_array_equal(found[draw, :, game], expected)


def test_a_draw_of_every_run_once_has_the_scores():
    some = runs([np.random.default_rng(0).normal(size=(5, 9))])
    np.testing.assert_array_equal(some.drawn(np.arange(5)[None, :, None])[0], some.scores)


def test_a_single_evaluation_leaves_no_choice():
    scores = np.random.default_rng(0).normal(size=(5, 3))
    only = CrossChosen(scores, [game[:, None] for game in scores.T])
    drawn = np.random.default_rng(1).integers(5, size=(50, 5, 3))
    np.testing.assert_array_equal(only.drawn(drawn), scores[drawn, np.arange(3)])


def test_the_mean_of_the_draws_is_the_estimate():
    some, drawn = runs([np.random.default_rng(7).normal(size=(4, 12))]), []
    found = stratified_bootstrap(lambda s: drawn.append(mean(s)) or mean(s), some, repetitions=400)
    shift = found.estimate - np.mean(drawn[1:])
    expected = np.quantile(np.ravel(drawn[1:]) + shift, [0.025, 0.975])
    assert (found.low, found.high) == pytest.approx(tuple(expected))
    assert shift > 0  # fewer distinct runs choose worse


def test_agents_with_the_same_curves_do_not_differ():
    curves = [np.random.default_rng(game).normal(size=(4, 6)) for game in range(3)]
    found = paired_difference(runs(curves), runs([game - 0.5 for game in curves]), repetitions=300)
    assert (found.estimate, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))


def test_intervals_cover_the_truth_and_those_that_keep_the_choice_do_not():
    """Runs of one quality throughout, with noise that lasts for some evaluations: whichever evaluation the
    others choose, a run is expected to score 1."""
    random = np.random.default_rng(0)
    covered = {"chosen again": 0, "kept": 0}
    for trial in range(150):
        noise = random.normal(size=(4, 5, 20))
        for at in range(1, 20):
            noise[..., at] = 0.7 * noise[..., at - 1] + np.sqrt(1 - 0.7**2) * noise[..., at]
        some = runs(list(1 + noise))
        for name, scores in (("chosen again", some), ("kept", some.scores)):
            found = stratified_bootstrap(mean, scores, repetitions=300, seed=trial)
            covered[name] += found.low <= 1 <= found.high
    assert 0.9 * 150 <= covered["chosen again"] <= 0.99 * 150
    assert covered["kept"] <= 0.88 * 150


def test_the_intervals_of_a_file_choose_again():
    random = np.random.default_rng(0)
    seeds = {seed: dict(enumerate(random.normal(size=30).tolist())) for seed in range(5)}
    file = ScoreFile({"REM": {"pong": seeds}, "DQN": {"pong": seeds}}, "step")
    found = intervals.matrices(file, Normaliser({"pong": 1.0}, {"pong": 0.0}))["cross"]["REM"]
    again = stratified_bootstrap(iqm, found, repetitions=500)
    kept = stratified_bootstrap(iqm, np.asarray(found), repetitions=500)
    assert again.estimate == kept.estimate
    curves = [list(seeds[seed].values()) for seed in range(5)]
    np.testing.assert_allclose(found.scores[:, 0], chosen_by_loops(curves, range(5)))
    assert again.high - again.low > kept.high - kept.low


def test_a_band_of_shares_stays_within_shares():
    """The draws of a profile are shifted; three runs of one game leave the shares from 0 to 1."""
    random = np.random.default_rng(0)
    found = runs([random.normal(size=(3, 10))])
    thresholds = np.linspace(-2, 2, 81)

    def band(**more):
        share = partial(performance_profile, thresholds=thresholds)
        return stratified_bootstrap(share, found, repetitions=500, **more)

    free, kept = band(), intervals.profiles({"cross": {"DQN": found}})["cross"]["DQN"][1]
    assert free.low.min() < 0 and free.high.max() > 1
    assert kept.low.min() >= 0 and kept.high.max() <= 1


def test_an_optimality_gap_is_never_below_zero():
    """The draws are shifted: the interval of a gap began below zero."""
    found = runs([np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([[0.02, 1.0, 1.0], [1.0, 1.0, 1.0]])])
    assert stratified_bootstrap(optimality_gap, found).low < 0
    assert aggregates(found)["optimality_gap"].low == 0 < aggregates(found)["optimality_gap"].high
