"""`select` ranks every kept policy and writes the choice down; the choice can be loaded and exported."""

import json
import os
import re
from pathlib import Path

import jax
import numpy as np
import pytest
from benchmarks.simulators import clinic, plant

import optimist
from little import played, small
from optimist.choosing import evidence, selecting
from optimist.choosing.analysis import Analysis
from optimist.choosing.evidence import Evidence, Steps, gather, read_sources
from optimist.choosing.ranking import DRAWS, Estimate, estimate
from optimist.cli.main import main
from optimist.data import Dataset
from optimist.errors import DataError, RunError, StorageError, UndecidedError, UsageError
from optimist.studies.report.selection_report import ranking_sheet
from optimist.training.offline import OfflineTraining
from optimist.training.settings import Training
from optimist.training.storage.run_folder import read_config
from optimist.training.storage.selected import NAME, read_selection

GAME = "gym/CartPole-v1"
SHORT = {"steps": 40, "evaluate_every": 20, "episodes": 1, "batch": 4, "feed": "device", "hold_out": 0}
SEEN = "episodes from which they learned"


def cart(steps: int = 100, length: int = 10, **more) -> Dataset:
    """Short episodes of vectors."""
    random, ends = np.random.default_rng(0), np.arange(steps) % length == length - 1
    observations, actions = random.normal(size=(steps, 3)), random.integers(2, size=steps)
    actions = more.pop("actions", actions)
    rewards = random.normal(size=steps)
    return Dataset.from_arrays(observations, actions, rewards, ends, truncations=False, **more)


def train(data, out: Path, agent: str = "dqn", seeds=(3, 5), part=None, **settings) -> Path:
    training, more = Training(**{**SHORT, **settings}), {"part": part} if part else {}
    OfflineTraining(small(agent), data, training, out=out, seeds=seeds, **more).run()
    return out


def gathered(data, out: Path, *, most=None, **settings) -> Evidence:
    """The evidence about a run of one seed with these settings."""
    return gather(read_sources([train(data, out, seeds=(0,), **settings)]), data, most=most)


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    return played(tmp_path_factory.mktemp("log") / "data", game=GAME, rows=200, lanes=2)


@pytest.fixture(scope="module")
def runs(log, tmp_path_factory) -> list[Path]:
    folder, data = tmp_path_factory.mktemp("runs"), Dataset.open(log)
    return [train(data, folder / name, name) for name in ("dqn", "behaviour_cloning")]


@pytest.fixture(scope="module")
def selection(runs):
    return optimist.select(runs, updates=3, anyway=True)


def test_every_kept_policy_of_every_seed_is_ranked(selection, runs):
    found = {(each.run, each.step, each.seed) for each in selection.ranking}
    assert found == {(run, step, seed) for run in runs for step in (20, 40) for seed in (3, 5)}
    values = [each.value for each in selection.ranking]
    assert values == sorted(values, reverse=True) and selection.chosen is selection.ranking[0]
    assert all(each.gain.low <= each.gain.mean <= each.gain.high for each in selection.ranking)
    assert "Selection of 8 policies of 2 runs by cautious" in repr(selection)
    notes = "\n".join(selection.notes)
    assert SEEN in notes and "3 updates are fewer than 1,000, so the values may" in notes
    for each in selection.ranking:
        np.testing.assert_allclose(each.value, (each.scores["fqe"] + each.scores["supported"]) / 2, rtol=1e-6)
    assert all("NaN" not in (run / "selection.json").read_text() for run in runs)  # JSON has no NaN
    assert "nan" not in str(ranking_sheet(selection).cells())


def test_todays_policy_stands_first(selection, log):
    """What the log's own policy earned in the held-out episodes, with an interval, is the first row."""
    (today, *others) = ranking_sheet(selection).cells()
    assert [cell.text for cell in today[:2]] == ["today", "the log's own policy"]
    held = Dataset.open(log).hold_out(0.1)[1]
    returns = evidence.Rewards(0.99, None).returns(held)[held.offsets[:-1]]
    np.testing.assert_allclose(selection.today.mean, returns.mean(), rtol=1e-5)
    assert today[5].value == selection.today.mean and len(others) == len(selection.ranking)
    assert selection.today.low < selection.today.mean < selection.today.high


def test_a_log_that_cannot_tell_chooses_nothing(selection, runs, tmp_path, capsys):
    """The policies learned from every episode. Select chose one of them and said: to ship it, export."""
    words = ["select", *map(str, runs), "--updates", "3", "--out", str(tmp_path)]
    try:
        assert main(words) == UndecidedError.exit_code == 7
        said = capsys.readouterr()
        reason = "keep today's policy, or clone it: the policies learned from all episodes"
        assert reason in said.out  # after the progress
        assert "optimist train behaviour_cloning" in said.err and "--anyway chooses" in said.err
        assert read_selection(tmp_path)["chosen"] is None is read_selection(runs[0])["chosen"]
        assert "Keep today's policy" in (tmp_path / "selection.html").read_text().replace("&#39;", "'")
        for command in (["export", "--to", str(tmp_path / "p.npz")], ["evaluate"], ["play"]):
            assert main([command[0], str(runs[0]), *command[1:], "--step", "chosen"]) == 7, command
            assert reason in (line := capsys.readouterr().err) and "--anyway" in line, command
        assert optimist.select(runs, updates=3).chosen is None  # in Python it is no error
    finally:
        selection.write()


def test_the_choice_is_one_policy_of_one_run(selection, runs):
    mine, other = sorted(runs, key=lambda run: run != selection.chosen.run)
    loaded = optimist.load(mine, step="chosen")
    assert (loaded.step, loaded.seeds) == (selection.chosen.step, (selection.chosen.seed,))
    whole = optimist.load(mine, step=selection.chosen.step).params_of(selection.chosen.seed)
    for one, all_ in zip(jax.tree.leaves(loaded.params), jax.tree.leaves(whole), strict=True):
        np.testing.assert_array_equal(one[0], all_)
    with pytest.raises(RunError, match=f"the policy that was chosen is of {mine}: name that run"):
        optimist.load(other, step="chosen")


@pytest.mark.parametrize(
    ("simulator", "episodes"),
    [
        (clinic().exploring(0.2), 1200),  # rewards of +-15 at the end; the lowest return is a death
        (plant(), 250),  # costs without an end: every episode is cut off
    ],
    ids=["clinic", "plant"],
)
def test_what_is_chosen_is_better_and_its_gain_is_near_the_truth(simulator, episodes, tmp_path, capsys):
    """A clone is compared with the log, whose policy and whose clone have exactly known values."""
    simulator.log(episodes, seed=0, propensities=False).save(tmp_path / "log")
    settings = {"steps": 1000, "evaluate_every": 1000, "hold_out": 0.4, "environment": "none"}
    settings |= {"out": tmp_path / "run", "gamma": simulator.gamma}
    run = optimist.train("behaviour_cloning", tmp_path / "log", **settings)
    assert main(["select", str(run.path), "--updates", "1500", "--out", str(tmp_path / "page")]) == 0
    said = " ".join(capsys.readouterr().out.split())  # lines are wrapped to the terminal
    record, today = read_selection(tmp_path / "page"), simulator.value(simulator.behaviour)
    true = simulator.value(simulator.played(run.policy)) - today
    for found, exact in ((record["candidates"][0]["gain"], true), (record["today"], today)):
        slack = (found["high"] - found["low"]) / 2  # errors of fitted values are not in the intervals
        assert found["low"] - slack < exact < found["high"] + slack
    assert true > 0 and "by a clone's propensities" in said and "effective episodes of" in said
    assert f"ship {run.path} step 1,000 seed 0: it is better than today's policy by" in said
    assert "FQE's error in states that are not in the log is left out" in said


def test_real_episodes_decide_against_what_the_log_returned(runs, log):
    known = Dataset.open(log).episodes
    found = optimist.select(runs, updates=3, episodes=40, environment=GAME)
    first, logged = found.ranking[0], known.returns[known.complete]
    gain = estimate(np.array(first.returns), logged)
    assert (found.chosen is first) is (gain.low > 0)
    assert f"its return is {gain.mean:.4g} [" in found.answer
    assert f"{len(first.returns)} real episodes and {len(logged)} complete ones of the log" in found.answer


def test_real_episodes_reorder_the_best(runs, selection):
    """Each policy of a round plays equally often, so that 5 episodes are 4; 20 are 20 (they were 18)."""
    found = optimist.select(runs, updates=3, episodes=5, environment=GAME)
    means = [np.mean(each.returns) for each in found.ranking if each.returns]
    assert sum(len(each.returns) for each in found.ranking) == 4 and means == sorted(means, reverse=True)
    said = "4 real episodes of at most 5, equally many for each policy of a round, reordered the first 2"
    assert f"{said} policies" in found.notes
    untouched = [each.name for each in selection.ranking[len(means) :]]
    assert [each.name for each in found.ranking[len(means) :]] == untouched


def test_the_command_line_and_python_choose_alike_and_write_it_down(selection, runs, log, tmp_path, capsys):
    words = ["--rule", "cautious", "--updates", "3", "--data", str(log), "--out", str(tmp_path), "--anyway"]
    assert main(["select", *map(str, runs), *words]) == 0
    assert f"chosen: {selection.chosen.name}" in capsys.readouterr().out
    record, of_run = read_selection(tmp_path), read_selection(runs[0])
    assert record["candidates"] == [each.record() for each in selection.ranking]
    assert record["chosen"]["run"] == str(selection.chosen.run) and record["rule"] == "cautious"
    assert record["answer"] == selection.answer and record["today"]["mean"] == selection.today.mean
    mine = [each for each in selection.ranking if each.run == runs[0]]
    assert of_run["seeds"] == {str(each.seed): each.step for each in reversed(mine)}
    assert len(of_run["candidates"]) == len(mine) == 4
    page = (tmp_path / "selection.html").read_text()
    assert " ".join(["optimist select", *map(str, runs), *words]) in page
    assert "Which policy to ship" in page and SEEN in page
    run = str(selection.chosen.run)
    assert main(["export", run, "--step", "chosen", "--to", str(tmp_path / "p.npz")]) == 0
    assert "actions are the policy" in capsys.readouterr().out


@pytest.mark.parametrize("last", [False, True])
def test_held_out_episodes_are_those_that_the_run_did_not_learn_from(last, log, tmp_path):
    data, name = Dataset.open(log), "hold_out_last" if last else "hold_out"
    train(data, tmp_path / "run", seeds=(0,), **{name: 0.2})
    train(data, tmp_path / "part", part=lambda whole: whole.first(60), **{name: 0.2})
    kept, held = data.hold_out(0.2, last=last)
    for folder, unseen in (("run", True), ("part", False)):
        found = gather(read_sources([tmp_path / folder]))
        assert any(SEEN in note for note in found.notes) != unseen
        assert found.logs[0].held.fingerprint == held.fingerprint
        assert found.logs[0].learned.fingerprint == kept.fingerprint


def test_a_thinned_log_is_scored_on_episodes_that_the_run_held_back(tmp_path, monkeypatch):
    data = cart()
    found = gathered(data, tmp_path / "run", hold_out=0.3, most=50)
    assert any("of 100 steps are used" in note for note in found.notes)
    monkeypatch.setattr(evidence, "ROOM", 50 * 44)  # bytes for half of the steps
    kept, held = data.hold_out(0.3)
    for each in (found, gathered(data, tmp_path / "run", hold_out=0.3)):
        (log,) = each.logs
        assert len(log.learned) + len(log.held) <= 60
        assert set(log.held.steps()) < set(held.steps()) and set(log.learned.steps()) < set(kept.steps())


@pytest.mark.slow
def test_action_vectors_can_be_selected_too(tmp_path):
    """Nothing corrects FQE's estimate there, so that there is a value and no gain."""
    vectors = np.random.default_rng(0).uniform(-1, 1, size=(40, 2))
    data = cart(40, actions=vectors, action_low=[-1.0, -1.0], action_high=[1.0, 1.0]).save(tmp_path / "log")
    found = optimist.select(train(data, tmp_path / "run", "td3_bc", seeds=(0,), steps=20), updates=2)
    (only,) = found.ranking
    assert 0 <= only.support <= 1 and only.gain is None and only.scores["importance"] is None
    assert found.chosen is None


def test_a_mask_holds_for_the_candidates_too(tmp_path):
    turns = np.arange(40) % 2
    allowed = np.stack([turns == 0, turns == 1], axis=1)
    data = cart(40, actions=turns, actions_count=2, allowed_actions=allowed).save(tmp_path / "data")
    found = gathered(data, tmp_path / "run", steps=20)
    (said,), held = Analysis(found, updates=1).held, found.logs[0].held
    np.testing.assert_array_equal(said.action, held.timeline.action[held.steps()])
    goes_on = ~held.timeline.terminal[held.steps()][:-1]
    np.testing.assert_array_equal(said.next_action[:-1][goes_on], said.action[1:][goes_on])


def test_an_estimator_of_ones_own_is_one_file(runs, tmp_path):
    """The policies of the earliest step come first, in any process that can import the file."""
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n\n\nclass Earliest:\n    about, needs = 'an early step', ''\n\n"
        "    def scores(self, analysis):\n"
        "        return np.array([-each.step for each in analysis.candidates], float)\n"
    )
    rule = f"{file}:Earliest"
    found = optimist.select(runs, rule=rule, updates=3, out=tmp_path / "page")
    assert [each.step for each in found.ranking] == [20] * 4 + [40] * 4
    assert {each.scores[rule] for each in found.ranking} == {-20.0, -40.0}
    assert "policies by an early step" in ranking_sheet(found).title
    assert "An early step." in (tmp_path / "page" / "selection.html").read_text()
    file.write_text("class Nothing:\n    pass\n")
    with pytest.raises(UsageError, match="Nothing is not an estimator: it needs scores"):
        optimist.select(runs, rule=f"{file.rename(tmp_path / 'other.py')}:Nothing")


def test_a_run_that_cannot_be_written_is_refused_before_the_long_work(runs, monkeypatch, capsys):
    """Root may write anywhere, so the answer of the system is replaced."""
    monkeypatch.setattr(selecting, "gather", None)
    monkeypatch.setattr(os, "access", lambda folder, mode: Path(folder) != runs[1])
    assert main(["select", *map(str, runs)]) == StorageError.exit_code
    said = f"{runs[1]} is read-only, and select writes its choice into it: select in a copy of it"
    assert said in capsys.readouterr().err


def test_mistakes_are_one_line(runs, log, tmp_path):
    other, none = train(cart().save(tmp_path / "other"), tmp_path / "run", seeds=(0,)), tmp_path / "none"
    train(Dataset.open(log), none, keep_policies=0)

    def refused(error: type[Exception], said: str, *given, **more) -> None:
        with pytest.raises(error, match=said):
            optimist.select(*given, **more)

    refused(RunError, "select among runs of one dataset", [runs[0], other])
    refused(UsageError, 'no estimator "fqq": did you mean "fqe"', runs, rule="fqq")
    refused(UsageError, "updates is 0: it must be at least 1", runs, updates=0)
    refused(UsageError, "steps is 0: it must be at least 1", runs, steps=0)
    refused(RunError, "keeps no policies: train again", none)
    grown = "is not the data that .*, or it has grown since: .* or train again"
    refused(RunError, grown, runs, data=tmp_path / "other")
    # A rule without a score says what it needs before FQE is fitted.
    needs = "it needs discrete actions, and episodes in which the policies"
    refused(UsageError, needs, runs, rule="importance", updates=10**9)
    refused(UsageError, "it needs several seeds", other, rule="agreement", updates=10**9)
    (tmp_path / "other").rename(tmp_path / "moved")
    (tmp_path / "empty").mkdir()
    refused(DataError, "--data DATA", other)
    assert gather(read_sources([other]), tmp_path / "moved").logs
    for folder, said in (
        (runs[0].parent, f"holds some: name them, such as {runs[1]}, {runs[0]}"),
        (log, "it is a dataset: name a run that learned from it"),
        (tmp_path / "empty", "has no config.toml: name the --out"),
        (tmp_path / "nowhere", "does not exist: name the --out"),
    ):
        refused(RunError, re.escape(said), folder)
    with pytest.raises(RunError, match='no "chosen" step yet'):
        optimist.load(none, step="chosen")


def test_a_run_that_learned_from_a_part_in_python_is_as_that_of_the_command_line(log, tmp_path):
    """It knew only its part, so that select called its own log another one."""
    part = Dataset.open(log).first(50).fraction(0.5)
    words = ["--first", "50", "--fraction", "0.5", "--out", str(tmp_path / "words"), "--steps", "4"]
    assert main(["train", "dqn", str(log), *words, "--evaluate-every", "2", "--environment", "none"]) == 0
    run = optimist.train("dqn", part, out=tmp_path / "run", steps=4, evaluate_every=2, environment="")
    configs = [read_config(tmp_path / name)["dataset"] for name in ("words", "run")]
    assert configs[0] == configs[1]
    sources = read_sources([run.path])
    for data in (None, log, part):
        assert gather(sources, data).candidates


def test_logs_of_similar_lengths_are_read_in_chunks_of_one_size():
    data, rewards = cart(), evidence.Rewards(0.99, None)
    steps = Steps([data, data.first(70), data.first(64), data.first(1)], rewards)
    for log, size in enumerate((128, 128, 64, 1)):
        (inside,), length = steps.chunks(log), len(steps.views[log])
        assert len(inside) == size
        np.testing.assert_array_equal(inside[:length], np.arange(length))
        assert set(inside[length:]) <= {length - 1}  # the padding


def test_a_damaged_or_foreign_selection_is_refused(selection, runs, tmp_path):
    file, text = runs[1] / NAME, (runs[1] / NAME).read_text()
    try:
        for damaged, said in (
            (text.replace('"seed": 3', '"seed": 5', 1), "is damaged"),
            ((runs[0] / NAME).read_text(), "is about another run"),
            (json.dumps([1]), "is damaged"),
        ):
            file.write_text(damaged)
            with pytest.raises(RunError, match=said):
                optimist.load(runs[1], step="chosen")
    finally:
        file.write_text(text)


def test_a_choice_among_earlier_policies_is_refused(log, tmp_path, caplog):
    data = Dataset.open(log)
    run = train(data, tmp_path / "run", seeds=(0,), steps=20)
    assert "there is one policy to choose from" in optimist.select(run, updates=3, anyway=True).notes[0]
    train(data, run, seeds=(0,))
    with pytest.raises(RunError, match="has kept policies since one was chosen"):
        optimist.load(run, step="chosen")
    optimist.select([run], updates=3, anyway=True)
    optimist.load(run, step="chosen")
    assert "chosen with --anyway; select said: keep today's policy" in caplog.text


def test_the_order_of_the_choice():
    scores = {"fqe": np.array([1.0, 2.0, np.nan, 2.0]), "support": np.array([0.5, 0.4, 0.9, 0.95])}
    assert selecting.ranked("fqe", scores) == [3, 1, 0, 2]  # more support first, no score last
    with pytest.raises(UsageError, match="no score for any policy"):
        selecting.check_scored("fqe", np.full(4, np.nan))


BETTER, WORSE, UNSURE = Estimate(2.0, 1.0, 3.0), Estimate(-2.0, -3.0, -1.0), Estimate(2.0, -1.0, 5.0)


@pytest.mark.parametrize(
    ("gain", "fqe", "weighted", "support", "said"),
    [
        (BETTER, BETTER, BETTER, 0.9, None),
        (BETTER, UNSURE, None, 1.0, None),
        (BETTER, BETTER, UNSURE, 1.0, None),
        (BETTER, BETTER, BETTER, 0.89, "the log cannot tell"),
        (UNSURE, BETTER, BETTER, 1.0, "may be zero"),
        (WORSE, BETTER, BETTER, 1.0, "the first policy is worse: its gain over today's is -2"),
        (BETTER, WORSE, BETTER, 1.0, "estimators disagree: FQE"),
        (BETTER, BETTER, WORSE, 1.0, "estimators disagree: importance"),
        (None, BETTER, None, 1.0, "nothing in the log corrects"),
        (Estimate(2.0), BETTER, None, 1.0, "nothing in the log corrects"),
    ],
)
def test_no_policy_is_chosen_without_evidence(gain, fqe, weighted, support, said):
    """Every reason for abstaining, and that nothing else is one."""
    against = selecting.objection(gain, fqe, weighted, support)
    assert against is None if said is None else said in against


def test_values_that_have_not_settled_are_said():
    """With few updates the values of bad policies were too high, without a word."""
    assert selecting.unsettled(1000, 0.9, BETTER) == selecting.unsettled(1000, 5.0, Estimate(2.0)) == []
    (note,) = selecting.unsettled(10_000, -1.1, BETTER)
    assert "the first policy changed by -1.1 in the second half of the updates" in note
    (note,) = selecting.unsettled(999, 0.0, BETTER)
    assert "999 updates are fewer than 1,000" in note and "more --updates" in note


def test_it_says_where_the_log_cannot_tell():
    def doubts(fqe, supported, support) -> str:
        scores = {"fqe": fqe, "supported": supported, "support": support}
        scores = {name: np.array(score) for name, score in scores.items()}
        return "\n".join(selecting.doubts([0, 1], scores, ["a", "b"]))

    near = doubts([10.0, 10.1], [9.0, 1.0], [0.99, 0.3])
    assert "FQE prefers b" in near and "support decides" in near
    assert doubts([9.0, 1.0], [9.0, 1.0], [0.99, 0.99]) == ""


def test_the_interval_is_the_bootstraps():
    values, random = np.array([1.0, 2.0, 3.0, 4.0]), np.random.default_rng(0)
    means = [np.mean(values[row]) for row in random.integers(4, size=(DRAWS, 4))]
    np.testing.assert_allclose(estimate(values), (2.5, *np.quantile(means, [0.025, 0.975])))
    above = estimate(values, values)
    assert above.mean == 0 and above.low < -1 and above.high > 1  # the two are drawn apart


@pytest.mark.parametrize("episodes", [1, 5])  # of five, one is held out
def test_one_episode_has_no_interval(episodes, tmp_path, capsys):
    """An interval of width zero would say that the value is exact."""
    train(cart(40, 40 // episodes).save(tmp_path / "log"), tmp_path / "run", seeds=(0,), steps=20)
    assert main(["select", str(tmp_path / "run"), "--updates", "2", "--out", str(tmp_path / "page")]) == 7
    shown = " ".join(capsys.readouterr().out.split())  # lines are as wide as the terminal
    assert "[" not in shown
    assert ("the log has one episode" in shown) == (episodes == 1)
    assert ("--hold-out 0.1 avoids this" in shown) == (episodes > 1)  # one episode cannot be held out
    gain = read_selection(tmp_path / "run")["candidates"][0]["gain"]
    assert gain["low"] is None and gain["high"] is None
