"""`select` ranks every kept policy and writes the choice down; the choice can be loaded and exported."""

import json
import os
import re
from pathlib import Path

import jax
import numpy as np
import pytest
from benchmarks.simulators import clinic, plant, shop

import optimist
from little import played, small
from optimist.choosing import evidence, ranking, selecting
from optimist.choosing.analysis import Analysis
from optimist.choosing.evidence import Steps, gather, read_sources
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


def cart(**more) -> Dataset:
    """Ten short episodes of vectors."""
    random = np.random.default_rng(0)
    return Dataset.from_arrays(
        random.normal(size=(100, 3)),
        random.integers(2, size=100),
        random.normal(size=100),
        np.arange(100) % 10 == 9,
        truncations=False,
        **more,
    )


def train(data, out: Path, agent: str = "dqn", seeds=(3, 5), **settings) -> Path:
    training = Training(**{**SHORT, **settings})
    OfflineTraining(small(agent), data, training, out=out, seeds=seeds).run()
    return out


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
    assert any("scored on episodes from which they learned" in note for note in selection.notes)
    assert any("3 updates are fewer than 1,000, so the values may" in note for note in selection.notes)
    for each in selection.ranking:
        both = (each.scores["fqe"], each.scores["supported"])
        np.testing.assert_allclose(each.value, np.mean(both), rtol=1e-6)
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
            assert f"{reason}" in (line := capsys.readouterr().err) and "--anyway" in line, command
        assert optimist.select(runs, updates=3).chosen is None  # in Python it is no error
    finally:
        selection.write()


def test_the_choice_is_one_policy_of_one_run(selection, runs):
    (mine,), (other,) = (
        [run for run in runs if (run == selection.chosen.run) is is_] for is_ in (True, False)
    )
    loaded = optimist.load(mine, step="chosen")
    assert (loaded.step, loaded.seeds) == (selection.chosen.step, (selection.chosen.seed,))
    whole = optimist.load(mine, step=selection.chosen.step).params_of(selection.chosen.seed)
    for one, all_ in zip(jax.tree.leaves(loaded.params), jax.tree.leaves(whole), strict=True):
        np.testing.assert_array_equal(one[0], all_)
    with pytest.raises(RunError, match=f"the policy that was chosen is of {mine}: name that run"):
        optimist.load(other, step="chosen")


@pytest.mark.parametrize(
    ("simulator", "episodes", "ships"),
    [
        (clinic().exploring(0.2), 1200, True),  # rewards of +-15 at the end; the lowest return is a death
        (plant(), 250, True),  # costs without an end: every episode is cut off
        (shop().exploring(0.1, shop().best().argmax(axis=1)), 1200, None),  # the log is near the best
    ],
    ids=["clinic", "plant", "shop"],
)
def test_what_is_chosen_is_better_and_its_gain_is_near_the_truth(
    simulator, episodes, ships, tmp_path, capsys
):
    """A clone is compared with the log, whose policy and whose clone have exactly known values."""
    simulator.log(episodes, seed=0, propensities=False).save(tmp_path / "log")
    settings = {"steps": 1000, "evaluate_every": 1000, "hold_out": 0.4, "environment": "none"}
    settings |= {"out": tmp_path / "run", "gamma": simulator.gamma}
    run = optimist.train("behaviour_cloning", tmp_path / "log", **settings)
    code = main(["select", str(run.path), "--updates", "1500", "--out", str(tmp_path / "page")])
    said = " ".join(capsys.readouterr().out.split())  # lines are wrapped to the terminal
    record = read_selection(tmp_path / "page")
    true = simulator.value(simulator.played(run.policy)) - simulator.value(simulator.behaviour)
    for found, exact in (
        (record["candidates"][0]["gain"], true),
        (record["today"], simulator.value(simulator.behaviour)),
    ):
        slack = (found["high"] - found["low"]) / 2  # errors of fitted values are not in the intervals
        assert found["low"] - slack < exact < found["high"] + slack
    assert code == (7 if record["chosen"] is None else 0) and ships in (None, code == 0)
    assert record["chosen"] is None or true > 0
    assert "by a clone's propensities" in said and "effective episodes of" in said
    if ships:
        assert f"ship {run.path} step 1,000 seed 0: it is better than today's policy by" in said
        assert "FQE's error in states that are not in the log is left out" in said


def test_real_episodes_decide_against_what_the_log_returned(runs, log):
    known = Dataset.open(log).episodes
    found = optimist.select(runs, updates=3, episodes=40, environment=GAME)
    first, logged = found.ranking[0], known.returns[known.complete]
    gain = ranking.estimate(np.array(first.returns), logged)
    assert (found.chosen is first) is (gain.low > 0)
    assert f"its return is {gain.mean:.4g} [" in found.answer
    assert f"{len(first.returns)} real episodes and {len(logged)} complete ones of the log" in found.answer


def test_what_is_written_down_is_the_ranking(selection, runs, tmp_path):
    selection.write(tmp_path)
    record = read_selection(tmp_path)
    assert [each["run"] for each in record["candidates"]] == [str(each.run) for each in selection.ranking]
    assert record["chosen"]["run"] == str(selection.chosen.run) and record["rule"] == "cautious"
    assert record["answer"] == selection.answer and record["today"]["mean"] == selection.today.mean
    of_run = read_selection(runs[0])
    first = {}
    for each in selection.ranking:
        if each.run == runs[0]:
            first.setdefault(str(each.seed), each.step)
    assert of_run["seeds"] == first and len(of_run["candidates"]) == 4


def test_the_command_line_and_python_choose_alike(selection, runs, log, tmp_path, capsys):
    words = ["--rule", "cautious", "--updates", "3", "--data", str(log), "--out", str(tmp_path), "--anyway"]
    assert main(["select", *map(str, runs), *words]) == 0
    said = capsys.readouterr().out
    assert f"chosen: {selection.chosen.name}" in said
    record = read_selection(tmp_path)
    assert record["candidates"] == [each.record() for each in selection.ranking]
    page = (tmp_path / "selection.html").read_text()
    assert " ".join(["optimist select", *map(str, runs), *words]) in page
    assert "Which policy to ship" in page and "episodes from which they learned" in page
    run = str(selection.chosen.run)
    assert main(["export", run, "--step", "chosen", "--to", str(tmp_path / "p.npz")]) == 0
    assert "actions are the policy" in capsys.readouterr().out


def test_held_out_episodes_are_those_that_the_run_did_not_learn_from(log, tmp_path):
    data = Dataset.open(log)
    train(data, tmp_path / "run", hold_out=0.2, seeds=(0,))
    OfflineTraining(
        small("dqn"), data, Training(**{**SHORT, "hold_out": 0.2}), out=tmp_path / "part",
        part=lambda whole: whole.first(60),
    ).run()  # fmt: skip
    for name, unseen in (("run", True), ("part", False)):
        sources = read_sources([tmp_path / name])
        evidence = gather(sources)
        assert any("episodes from which they learned" in note for note in evidence.notes) != unseen
        kept, held = data.hold_out(0.2)
        assert evidence.logs[0].held.fingerprint == held.fingerprint
        assert evidence.logs[0].learned.fingerprint == kept.fingerprint


def test_the_last_episodes_are_held_out_for_the_choice_too(log, tmp_path):
    data = Dataset.open(log)
    sources = read_sources([train(data, tmp_path / "run", hold_out_last=0.2, seeds=(0,))])
    found = gather(sources)
    assert found.logs[0].held.fingerprint == data.hold_out(0.2, last=True)[1].fingerprint
    assert not any("episodes from which they learned" in note for note in found.notes)


def test_a_thinned_log_is_scored_on_episodes_that_the_run_held_back(tmp_path, monkeypatch):
    data = cart()
    sources = read_sources([train(data, tmp_path / "run", hold_out=0.3, seeds=(0,))])
    monkeypatch.setattr(evidence, "ROOM", 50 * 44)  # bytes for half of the steps
    (log,) = gather(sources, data).logs
    kept, held = data.hold_out(0.3)
    assert len(log.learned) < len(kept) and len(log.held) < len(held)
    assert set(log.held.steps()) < set(held.steps()) and set(log.learned.steps()) < set(kept.steps())


@pytest.mark.slow
def test_action_vectors_can_be_selected_too(tmp_path):
    """Nothing corrects FQE's estimate there, so that there is a value and no gain."""
    random, ends = np.random.default_rng(0), np.arange(40) % 10 == 9
    observations, actions = random.normal(size=(40, 3)), random.uniform(-1, 1, size=(40, 2))
    bounds = {"action_low": [-1.0, -1.0], "action_high": [1.0, 1.0]}
    data = Dataset.from_arrays(observations, actions, np.ones(40), ends, truncations=False, **bounds)
    run = train(data.save(tmp_path / "log"), tmp_path / "run", "td3_bc", seeds=(0,), steps=20)
    found = optimist.select(run, updates=2)
    (only,) = found.ranking
    assert 0 <= only.support <= 1 and only.gain is None and only.scores["importance"] is None
    assert found.chosen is None


def test_a_mask_holds_for_the_candidates_too(tmp_path):
    random = np.random.default_rng(0)
    allowed = np.stack([np.arange(40) % 2 == 0, np.arange(40) % 2 == 1], axis=1)
    data = Dataset.from_arrays(
        random.normal(size=(40, 3)), np.arange(40) % 2, np.ones(40), np.arange(40) % 10 == 9,
        truncations=False, actions_count=2, allowed_actions=allowed,
    ).save(tmp_path / "data")  # fmt: skip
    sources = read_sources([train(data, tmp_path / "run", seeds=(0,), steps=20)])
    found = gather(sources)
    (said,), held = Analysis(found, updates=1).held, found.logs[0].held
    np.testing.assert_array_equal(said.action, held.timeline.action[held.steps()])
    goes_on = ~held.timeline.terminal[held.steps()][:-1]
    np.testing.assert_array_equal(said.next_action[:-1][goes_on], said.action[1:][goes_on])


def test_real_episodes_reorder_the_best(runs, selection):
    found = optimist.select(runs, updates=3, episodes=4, environment=GAME)
    means = [np.mean(each.returns) for each in found.ranking if each.returns]
    assert sum(len(each.returns) for each in found.ranking) == 4 and means == sorted(means, reverse=True)
    assert "4 real episodes reordered the first 2 policies" in found.notes
    untouched = [each.name for each in selection.ranking[len(means) :]]
    assert [each.name for each in found.ranking[len(means) :]] == untouched


def test_fewer_real_episodes_than_were_asked_for_are_said(runs):
    """Each policy of a round plays equally often, so that 5 are 4; 20 are 20 (they were 18)."""
    found = optimist.select(runs, updates=3, episodes=5, environment=GAME)
    said = "4 real episodes of at most 5, equally many for each policy of a round, reordered the first 2"
    assert f"{said} policies" in found.notes


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
    said = f"{runs[1]} is read-only, and select writes its choice into it: select in a copy of it"
    with pytest.raises(StorageError, match=re.escape(said)):
        optimist.select(runs)
    assert main(["select", *map(str, runs)]) == StorageError.exit_code
    assert said in capsys.readouterr().err


def test_mistakes_are_one_line(runs, log, tmp_path):
    other = train(cart().save(tmp_path / "other"), tmp_path / "run")
    with pytest.raises(RunError, match="select among runs of one dataset"):
        optimist.select([runs[0], other])
    with pytest.raises(UsageError, match='no estimator "fqq": did you mean "fqe"'):
        optimist.select(runs, rule="fqq")
    with pytest.raises(UsageError, match="updates is 0: it must be at least 1"):
        optimist.select(runs, updates=0)
    with pytest.raises(UsageError, match="steps is 0: it must be at least 1"):
        optimist.select(runs, steps=0)
    with pytest.raises(RunError, match="keeps no policies: train again"):
        optimist.select(train(Dataset.open(log), tmp_path / "none", keep_policies=0))
    with pytest.raises(RunError, match="is not the data that .*, or it has grown since: .* or train again"):
        optimist.select(runs, data=tmp_path / "other")
    (tmp_path / "other").rename(tmp_path / "moved")
    with pytest.raises(DataError, match="--data DATA"):
        optimist.select(other)
    sources = read_sources([other])
    assert gather(sources, tmp_path / "moved").logs
    with pytest.raises(RunError, match='no "chosen" step yet'):
        optimist.load(tmp_path / "none", step="chosen")


def test_a_folder_that_is_no_run_is_named_for_what_it_is(runs, log, tmp_path):
    for folder, said in (
        (runs[0].parent, f"holds some: name them, such as {runs[1]}, {runs[0]}"),
        (log, "it is a dataset: name a run that learned from it"),
        (tmp_path, "has no config.toml: name the --out"),
        (tmp_path / "nowhere", "does not exist: name the --out"),
    ):
        with pytest.raises(RunError, match=re.escape(said)):
            optimist.select(folder)


def test_a_rule_without_a_score_says_what_it_needs_before_fqe_is_fitted(runs, log, tmp_path):
    with pytest.raises(UsageError, match="it needs discrete actions, and episodes in which the policies"):
        optimist.select(runs, rule="importance", updates=10**9)
    alone = train(Dataset.open(log), tmp_path / "run", seeds=(0,))
    with pytest.raises(UsageError, match="it needs several seeds"):
        optimist.select(alone, rule="agreement", updates=10**9)


def test_a_run_that_learned_from_a_part_in_python_is_as_that_of_the_command_line(log, tmp_path):
    """It knew only its part, so that select called its own log another one."""
    part = Dataset.open(log).first(50).fraction(0.5)
    words = ["--first", "50", "--fraction", "0.5", "--out", str(tmp_path / "words"), "--steps", "4"]
    assert main(["train", "dqn", str(log), *words, "--evaluate-every", "2", "--environment", "none"]) == 0
    run = optimist.train("dqn", part, out=tmp_path / "run", steps=4, evaluate_every=2, environment="")
    configs = [read_config(tmp_path / name)["dataset"] for name in ("words", "run")]
    assert configs[0] == configs[1]
    for data in (None, log, part):
        assert optimist.select(run, data=data, updates=2).ranking


def test_one_policy_is_no_choice(log, tmp_path):
    run = train(Dataset.open(log), tmp_path / "run", seeds=(0,), steps=20)
    assert "there is one policy to choose from" in optimist.select(run, updates=2).notes[0]


def test_a_few_steps_of_the_log_are_enough_if_they_are_asked_for(tmp_path):
    data = cart()
    sources = read_sources([train(data, tmp_path / "run", hold_out=0.3, seeds=(0,))])
    found = gather(sources, data, most=50)
    (log,) = found.logs
    assert len(log.learned) + len(log.held) <= 60 and len(data) == 100
    assert any("of 100 steps are used" in note for note in found.notes)


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
        file.write_text(text.replace('"seed": 3', '"seed": 5', 1))
        with pytest.raises(RunError, match="is damaged"):
            optimist.load(runs[1], step="chosen")
        file.write_text((runs[0] / NAME).read_text())
        with pytest.raises(RunError, match="is about another run"):
            optimist.load(runs[1], step="chosen")
        file.write_text(json.dumps([1]))
        with pytest.raises(RunError, match="is damaged"):
            optimist.load(runs[1], step="chosen")
    finally:
        file.write_text(text)


def test_a_choice_among_earlier_policies_is_refused(log, tmp_path, caplog):
    data = Dataset.open(log)
    run = train(data, tmp_path / "run")
    optimist.select([run], updates=3, anyway=True)
    train(data, run, steps=2 * SHORT["steps"])
    with pytest.raises(RunError, match="has kept policies since one was chosen"):
        optimist.load(run, step="chosen")
    optimist.select([run], updates=3, anyway=True)
    optimist.load(run, step="chosen")
    assert "chosen with --anyway; select said: keep today's policy" in caplog.text


def test_the_order_of_the_choice():
    scores = {"fqe": np.array([1.0, 2.0, np.nan, 2.0]), "support": np.array([0.5, 0.4, 0.9, 0.95])}
    assert selecting.ranked("fqe", scores) == [3, 1, 0, 2]  # more support first, no score last
    scores["fqe"][:] = np.nan
    with pytest.raises(UsageError, match="no score for any policy"):
        selecting.check_scored("fqe", scores["fqe"])


def test_no_policy_is_chosen_without_evidence():
    """Every reason for abstaining, and that nothing else is one."""
    better, worse = ranking.Estimate(2.0, 1.0, 3.0), ranking.Estimate(-2.0, -3.0, -1.0)
    unsure = ranking.Estimate(2.0, -1.0, 5.0)
    assert (
        selecting.objection(better, better, better, 0.9)
        is selecting.objection(better, unsure, None, 1.0)
        is None
    )
    assert selecting.objection(better, better, unsure, 1.0) is None
    assert "the log cannot tell" in selecting.objection(better, better, better, 0.89)
    assert "may be zero" in selecting.objection(unsure, better, better, 1.0)
    assert "the first policy is worse: its gain over today's is -2" in selecting.objection(
        worse, better, better, 1.0
    )
    assert "estimators disagree: FQE" in selecting.objection(better, worse, better, 1.0)
    assert "estimators disagree: importance" in selecting.objection(better, better, worse, 1.0)
    assert "nothing in the log corrects" in selecting.objection(None, better, None, 1.0)
    assert "nothing in the log corrects" in selecting.objection(ranking.Estimate(2.0), better, None, 1.0)


def test_it_says_where_the_log_cannot_tell():
    names = ["a", "b"]
    near = {
        "fqe": np.array([10.0, 10.1]),
        "supported": np.array([9.0, 1.0]),
        "support": np.array([0.99, 0.3]),
    }
    lines = selecting.doubts([0, 1], near, names)
    assert any("FQE prefers b" in line for line in lines)
    assert any("support decides" in line for line in lines)
    clear = {
        "fqe": np.array([9.0, 1.0]),
        "supported": np.array([9.0, 1.0]),
        "support": np.array([0.99, 0.99]),
    }
    assert selecting.doubts([0, 1], clear, names) == []


def test_values_that_have_not_settled_are_said():
    """With few updates the values of bad policies were too high, without a word."""
    gain, exact = ranking.Estimate(2.0, 1.0, 3.0), ranking.Estimate(2.0)
    assert selecting.unsettled(1000, 0.9, gain) == selecting.unsettled(1000, 5.0, exact) == []
    (note,) = selecting.unsettled(10_000, -1.1, gain)
    assert "the first policy changed by -1.1 in the second half of the updates" in note
    (note,) = selecting.unsettled(999, 0.0, gain)
    assert "999 updates are fewer than 1,000" in note and "more --updates" in note


def test_the_interval_is_the_bootstraps():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    random = np.random.default_rng(0)
    means = [np.mean(values[row]) for row in random.integers(4, size=(ranking.DRAWS, 4))]
    expected = (2.5, *np.quantile(means, [0.025, 0.975]))
    np.testing.assert_allclose(ranking.estimate(values), expected)
    above = ranking.estimate(values, values)
    assert above.mean == 0 and above.low < -1 and above.high > 1  # the two are drawn apart


@pytest.mark.parametrize("episodes", [1, 5])  # of five, one is held out
def test_one_episode_has_no_interval(episodes, tmp_path, capsys):
    """An interval of width zero would say that the value is exact."""
    ends = np.arange(40) % (40 // episodes) == 40 // episodes - 1
    random = np.random.default_rng(0)
    given = (random.normal(size=(40, 3)), random.integers(2, size=40), random.normal(size=40), ends)
    Dataset.from_arrays(*given, truncations=False).save(tmp_path / "log")
    train(Dataset.open(tmp_path / "log"), tmp_path / "run", seeds=(0,))
    assert main(["select", str(tmp_path / "run"), "--updates", "2", "--out", str(tmp_path / "page")]) == 7
    shown = " ".join(capsys.readouterr().out.split())  # lines are as wide as the terminal
    assert "[" not in shown
    assert ("the log has one episode" in shown) == (episodes == 1)
    assert ("--hold-out 0.1 avoids this" in shown) == (episodes > 1)  # one episode cannot be held out
    gain = read_selection(tmp_path / "run")["candidates"][0]["gain"]
    assert gain["low"] is None and gain["high"] is None
