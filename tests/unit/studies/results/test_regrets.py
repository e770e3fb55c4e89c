"""The regret of each rule is what plain loops find in the run folders of a study written by hand."""

import numpy as np
import pytest

from made_study import (
    AGENTS,
    GAMES,
    RANDOM,
    SEEDS,
    STEPS,
    empty_drawings,
    fqe,
    height,
    jobs,
    write_selections,
    write_study,
)
from optimist.studies.report import study_figures
from optimist.studies.report.study_report import write_findings
from optimist.studies.report.study_tables import facts
from optimist.studies.results import regrets
from optimist.studies.results.findings import find, score_file
from optimist.studies.status import write_jobs


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return write_selections(write_study(tmp_path_factory.mktemp("study") / "out"))


def test_the_regret_within_a_run_is_the_one_of_plain_loops(study):
    found = [loss for loss in regrets.losses(find(study)) if loss.rule == "fqe" and loss.agent != regrets.ALL]
    assert len(found) == len(GAMES) * len(AGENTS) * len(SEEDS)
    for loss in found:
        truth = {step: height(loss.game, loss.agent, loss.seed, step) for step in STEPS}
        picked = max(STEPS, key=lambda step: fqe(step, loss.seed))
        expected = (max(truth.values()) - truth[picked]) / (max(truth.values()) - RANDOM)
        np.testing.assert_allclose(loss.regret, expected)
        assert (expected > 0) == (loss.seed == 0)


def test_the_last_policy_and_the_same_step_stand_beside(study):
    by_rule = {}
    for loss in regrets.losses(find(study)):
        by_rule.setdefault(loss.rule, []).append(loss)
    assert list(by_rule) == [
        *("fqe", "support", "last", "the same step for all"),
        *("the best of 3 that are played", "the best of 5 that are played"),
    ]
    assert all(loss.regret > 0 for loss in by_rule["last"])
    assert all(loss.regret == 0 for loss in by_rule["the same step for all"])  # 300 is best everywhere
    assert all(loss.regret == 0 for loss in by_rule["the best of 5 that are played"])


def test_across_agents_all_policies_of_a_seed_compete(study):
    across = [
        loss for loss in regrets.losses(find(study)) if loss.agent == regrets.ALL and loss.rule == "fqe"
    ]
    assert len(across) == len(GAMES) * len(SEEDS)
    for loss in across:
        truth = {
            (agent, step): height(loss.game, agent, loss.seed, step) for agent in AGENTS for step in STEPS
        }
        picked = max(truth, key=lambda each: fqe(each[1], loss.seed))  # the first of equal scores
        np.testing.assert_allclose(
            loss.regret, (max(truth.values()) - truth[picked]) / (max(truth.values()) - RANDOM)
        )


def test_ranks_of_equal_values_are_shared():
    assert regrets.rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0])) == pytest.approx(
        0.5
    )
    assert regrets.rank_correlation(np.array([1.0, 1.0, 2.0]), np.array([5.0, 5.0, 9.0])) == pytest.approx(1)
    assert regrets.rank_correlation(np.array([1.0, 1.0]), np.array([5.0, 9.0])) is None


def test_the_report_shows_what_was_chosen_offline(study, monkeypatch):
    monkeypatch.setattr(study_figures, "drawings", empty_drawings)
    found = find(study)
    assert facts(found)["chosen offline by"] == "fqe, 50 updates; a note"  # noted in every game
    (finding,) = found.findings
    for rows in finding.games.values():
        for row in rows:
            chosen = [height(row.game, row.agent, seed, 400 if seed == 0 else 300) for seed in SEEDS]
            np.testing.assert_allclose(row.score["chosen"], np.mean(chosen))
    assert {row.score for row in finding.certainty} >= {"chosen", "best", "last"}
    write_findings(study)
    table = (study / "results" / "all" / "table.md").read_text()
    assert "chosen offline" in table
    assert "regret of each rule" in (study / "report.html").read_text().lower()
    assert (
        (study / "results" / "selection.csv")
        .read_text()
        .startswith("game,part,agent,seed,rule,regret,rank_correlation")
    )


def test_an_earlier_reading_has_the_choice_among_the_policies_up_to_there(study):
    """FQE rises up to step 300, so that the latest policy of an earlier reading is its choice."""
    runs = find(study).runs
    for until, expected in ((100, 100), (200, 200), (300, 300)):
        chosen = score_file(runs, "all", until).chosen_of(AGENTS[0], GAMES[0])
        assert chosen == dict.fromkeys(SEEDS, expected)
    assert score_file(runs, "all", 50).chosen_of(AGENTS[0], GAMES[0]) == {}


def test_a_study_that_does_not_select_shows_no_earlier_choice_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(study_figures, "drawings", empty_drawings)
    out = write_selections(write_study(tmp_path / "out"))
    write_findings(out)
    write_jobs(out, "the same", jobs(), selects=False)
    _, warned = write_findings(out)
    assert "policies that were chosen by the logs earlier are not shown, because of --no-select" in warned
    findings = find(out)
    assert not regrets.losses(findings) and "chosen offline by" not in facts(findings)
    assert "chosen" not in {row.score for row in findings.findings[0].certainty}
    assert not (out / "results" / "selection.csv").exists()
    write_jobs(out, "the same", jobs())
    assert regrets.losses(find(out))  # nothing was deleted
