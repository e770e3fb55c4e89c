"""Proposition 1 is measured against value iteration in loops, and fails where the paper says that it must."""

import numpy as np
import pytest
from examples.proposition_1 import (
    GAMMA,
    STATES,
    Reading,
    agreed_at,
    best_values,
    ensembles,
    readings_of,
    ring,
    worst,
)

UNIFORM, MEAN = "REM, uniform, K=8", "REM, mean, K=8"


def test_the_best_values_are_those_of_bellmans_equation():
    mdp, values = ring(), best_values()
    for row in range(2 * STATES):
        state, following = int(mdp.observation[row].argmax()), int(mdp.next_observation[row].argmax())
        moves_on = mdp.action[row] == 0
        assert following == ((state + 1) % STATES if moves_on else state)
        expected = mdp.reward[row] + GAMMA * max(values[following])
        np.testing.assert_allclose(values[state, mdp.action[row]], expected, rtol=1e-6)


@pytest.fixture(scope="module")
def readings():
    some = {label: agent for label, agent in ensembles().items() if label in (UNIFORM, MEAN)}
    return list(readings_of(some, steps=9_000, count=9, runs=2))


def last(readings, label):
    return [each for each in readings if each.agent == label and each.step == 9_000]


def test_mixtures_of_full_support_make_the_heads_one_function_and_it_is_the_best(readings):
    found = last(readings, UNIFORM)
    assert [each.seed for each in found] == [0, 1]
    for each in found:
        assert each.disagreement < 1e-4 and each.head_distance < 1e-3 and each.spread < 1e-9


def test_the_plain_mean_leaves_the_heads_apart(readings):
    for each in last(readings, MEAN):
        assert each.distance < 1e-3 < 0.1 < each.disagreement  # the mean is right, the heads are not


def test_runs_begin_with_other_heads(readings):
    one, other = (each for each in readings if each.agent == UNIFORM and each.step == 0)
    assert one.disagreement != other.disagreement


def test_the_table_has_the_largest_figure_and_the_step_from_which_all_agree():
    def reading(seed, step, disagreement):
        return Reading("REM", 8, seed, step, disagreement, 0.1 * seed, 1.0, 2.0 - seed)

    found = [reading(0, 0, 1), reading(1, 0, 1), reading(0, 10, 0), reading(1, 10, 1)]
    assert agreed_at(worst(found)) is None
    found += [reading(seed, step, 5e-4) for step in (20, 30) for seed in (0, 1)]
    assert worst(found)[1] == Reading("REM", 8, -1, 10, 1, 0.1, 1.0, 2.0)
    assert agreed_at(worst(found)) == 20
