"""The regret of each rule is what plain loops find in the run folders of a study written by hand."""

import numpy as np
import pytest

from made_study import AGENTS, GAMES, RANDOM, SEEDS, STEPS, height, jobs, write_study
from optimist.studies.report.study_report import write_findings
from optimist.studies.results import regrets
from optimist.studies.results.findings import find
from optimist.training.selection.choice import RULES
from optimist.training.storage.selected import write_selection

NAMES = [rule.score for rule in RULES.values()]


def fqe(step: int, seed: int) -> float:
    """An estimator that prefers the last step for seed 0, and the best one, 300, for the others."""
    return {100: 1.0, 200: 2.0, 300: 3.0, 400: 4.0 if seed == 0 else 0.0}[step]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Every run with a selection.json: FQE as above, all other scores unknown."""
    out = write_study(tmp_path_factory.mktemp("study") / "out")
    for job in jobs():
        if job.label:
            unknown = dict.fromkeys(NAMES)
            candidates = [
                {"step": step, "seed": seed, "scores": unknown | {"fqe": fqe(step, seed), "support": 1.0}}
                for step in STEPS
                for seed in SEEDS
            ]
            seeds = {str(seed): 400 if seed == 0 else 300 for seed in SEEDS}
            write_selection(job.run_folder(out), {"candidates": candidates, "seeds": seeds})
    return out


def test_the_regret_within_a_run_is_the_one_of_plain_loops(study):
    found = [loss for loss in find(study).losses if loss.rule == "fqe" and loss.field.agent != regrets.ALL]
    assert len(found) == len(GAMES) * len(AGENTS) * len(SEEDS)
    for loss in found:
        field = loss.field
        truth = {step: height(field.game, field.agent, field.seed, step) for step in STEPS}
        picked = max(STEPS, key=lambda step: fqe(step, field.seed))
        expected = (max(truth.values()) - truth[picked]) / (max(truth.values()) - RANDOM)
        np.testing.assert_allclose(loss.first, expected)
        assert loss.three == 0  # step 300 is always among the first three
        assert (expected > 0) == (field.seed == 0)


def test_the_last_policy_and_the_same_step_stand_beside(study):
    by_rule = {}
    for loss in find(study).losses:
        by_rule.setdefault(loss.rule, []).append(loss)
    assert list(by_rule) == [
        *("fqe", "support", "last", "the same step for all"),
        *("the best of 3 that are played", "the best of 5 that are played"),
    ]
    assert all(loss.first > 0 for loss in by_rule["last"])
    assert all(loss.first == 0 for loss in by_rule["the same step for all"])  # 300 is best everywhere
    assert all(loss.first == 0 for loss in by_rule["the best of 5 that are played"])


def test_across_agents_all_policies_of_a_seed_compete(study):
    across = [loss for loss in find(study).losses if loss.field.agent == regrets.ALL and loss.rule == "fqe"]
    assert len(across) == len(GAMES) * len(SEEDS)
    assert all(len(loss.field.truth) == len(AGENTS) * len(STEPS) for loss in across)


def test_ranks_of_equal_values_are_shared():
    assert regrets.rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0])) == pytest.approx(
        0.5
    )
    assert regrets.rank_correlation(np.array([1.0, 1.0, 2.0]), np.array([5.0, 5.0, 9.0])) == pytest.approx(1)
    assert np.isnan(regrets.rank_correlation(np.array([1.0, 1.0]), np.array([5.0, 9.0])))


def test_the_report_shows_what_was_chosen_offline(study):
    finding = find(study).found[0]
    for rows in finding.games.values():
        for row in rows:
            chosen = [height(row.game, row.agent, seed, 400 if seed == 0 else 300) for seed in SEEDS]
            np.testing.assert_allclose(row.score.chosen, np.mean(chosen))
    assert {row.kind for row in finding.certainty} >= {"chosen", "best", "last"}
    write_findings(study)
    table = (study / "results" / "all" / "table.md").read_text()
    assert "chosen offline" in table
    assert "regret of each rule" in (study / "report.html").read_text().lower()
    assert (
        (study / "results" / "selection.csv").read_text().startswith("game,data,agent,seed,rule,regret_at_1")
    )


def test_without_a_selection_nothing_is_shown_about_it(tmp_path):
    out = write_study(tmp_path / "out")
    findings = find(out)
    assert not findings.losses
    assert "chosen" not in {row.kind for row in findings.found[0].certainty}
