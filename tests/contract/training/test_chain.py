"""Every agent that solves a small chain solves it in any unit, and with one absurd number in its log."""

import numpy as np
import pytest
from benchmarks import chain

import optimist
from optimist import agents
from optimist.training.offline import OfflineTraining
from optimist.training.resolve import RECIPES
from optimist.training.settings import Training

SOLVES = ("dqn", "rem", "c51", "qr_dqn", "cql", "discrete_iql")
CASES = ("x0.0001", "-1/0", "one reward of 1e6", "one feature of 1e6")
FEW = {"columns": 20}  # instead of 200 heads or quantiles, to be quick
UNITS = [case for case in chain.CASES if case.startswith("x")]
STEPS = {"rem": 10_000}  # its values are noisy for longer


def agent(name: str):
    options = FEW if name in ("rem", "qr_dqn") else {}
    return RECIPES["small"].fitted(agents.agent_class(name)(**options))


def trained(name: str, case: str, out) -> OfflineTraining:
    steps = STEPS.get(name, 3_000)
    training = Training(steps=steps, evaluate_every=steps, keep_policies=0)
    return OfflineTraining(agent(name), chain.dataset(case), training, out=out).prepare()


# A mean, and atoms with fixed ends, meet every case; that the others do takes minutes.
EVERY = [(name, case) for case in CASES for name in SOLVES]
QUICK = [each for each in EVERY if each[0] in ("dqn", "c51") or each[1] == "one reward of 1e6"]


@pytest.mark.parametrize(
    ("name", "case"),
    [pytest.param(*each, marks=() if each in QUICK else pytest.mark.slow) for each in EVERY],
)
def test_the_chain_is_solved(name, case, tmp_path):
    run = trained(name, case, tmp_path / "run")
    run.run()
    actions = optimist.load(tmp_path / "run").policy(chain.observations())
    assert chain.score(np.asarray(actions)) > 0.95


@pytest.mark.parametrize("name", [*SOLVES, "rem_cql", "hl_gauss"])
def test_units_make_no_difference(name, tmp_path):
    """Agents are given the same rewards, and have the same loss."""
    runs = [trained(name, case, tmp_path / case) for case in UNITS]
    rewards = [run.data.samplers(run.training, False)[0].all_rows().reward for run in runs]
    for each in rewards:
        np.testing.assert_allclose(each, rewards[0], rtol=1e-5)
    assert len({run.learner for run in runs}) == 1


def test_the_best_policy_scores_1_and_others_less():
    assert chain.score(np.ones(4)) == pytest.approx(1)
    assert chain.score(np.full(4, 0.5)) == pytest.approx(0)
    assert chain.score([1, 1, 0, 1]) < chain.score([0, 1, 1, 1]) < 0.5
