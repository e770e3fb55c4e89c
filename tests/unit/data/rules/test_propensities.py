"""Probabilities that cannot be those of the log's policy are found, and those of any policy are not."""

import numpy as np
import pytest

from optimist.data.rules.checks import Propensities

STEPS = 4000


def played(table: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Actions in random states with these probabilities, (states, actions); and their probabilities."""
    random = np.random.default_rng(seed)
    states = random.integers(0, len(table), STEPS)
    actions = (random.random((STEPS, 1)) < table[states].cumsum(axis=1)).argmax(axis=1)
    return actions, table[states, actions]


UNIFORM = np.full((1, 4), 0.25)
GREEDY = np.eye(4) * 0.96 + 0.01
HALVES = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]])  # in no state all actions
MIXED = np.array([[1, 0, 0, 0], [0.7, 0.3, 0, 0], [0.02, 0.9, 0.04, 0.04], [0.25, 0.25, 0.25, 0.25]])
RARE = np.array([[0.999, 0.001, 0, 0]])


@pytest.mark.parametrize("table", [UNIFORM, GREEDY, HALVES, MIXED, RARE, np.eye(4)], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_true_probabilities_are_not_doubted(table, seed):
    assert Propensities(4).add(*played(table, seed)).doubts() == []


def doubts_of(table, change):
    actions, probabilities = played(table)
    return Propensities(4).add(actions, change(probabilities)).doubts(("a", "b", "c", "d"))


def test_large_probabilities_in_every_step_are_doubted():
    (line,) = doubts_of(UNIFORM, lambda p: np.full_like(p, 0.9))
    assert "4,000 steps have one above 0.5, so that other actions must have been taken in about 444" in line
    assert "only 0 have a smaller one" in line


def test_small_probabilities_and_those_of_other_steps_are_doubted():
    (line,) = doubts_of(UNIFORM, lambda p: np.full_like(p, 0.1))
    assert "which could be chosen in 4,000 steps (4 of 4 actions are like this)" in line
    (line,) = doubts_of(MIXED, lambda p: np.random.default_rng(1).permutation(p))
    assert "they are too small, or those of other actions" in line


def test_masks_say_how_often_an_action_could_be_chosen():
    """With half of the actions allowed in turn the inverses sum to half of the steps."""
    actions, probabilities = played(HALVES)
    allowed = np.repeat(np.array([[1, 1, 0, 0], [0, 0, 1, 1]], bool), 2, axis=0)[actions]
    assert Propensities(4).add(actions, probabilities, allowed).doubts() == []
    half = Propensities(4).add(actions, probabilities / 2, allowed).doubts()
    assert len(half) == 1 and Propensities(4).add(actions, probabilities / 2).doubts() == []


def test_parts_add_up_and_few_steps_say_nothing():
    actions, probabilities = played(UNIFORM)
    whole = Propensities(4).add(actions, probabilities / 3)
    parts = Propensities(4).add(actions[:999], probabilities[:999] / 3)
    parts.add(actions[999:], probabilities[999:] / 3)
    assert parts.doubts() == whole.doubts() and len(whole.doubts()) == 1
    assert Propensities(4).add(actions[:20], np.full(20, 0.9)).doubts() == []
