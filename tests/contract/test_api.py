"""Three lines of Python: open a log, train on it, act by what was learned."""

import gymnasium
import jax
import numpy as np
import pytest

import optimist
from little import GAME, outcome, played, small, vectors
from optimist.cli.main import main
from optimist.data.intake import Intake, copy_into
from optimist.errors import DataError, RunError, UsageError

SHORT = {"steps": 30, "evaluate_every": 15, "episodes": 2, "batch": 8}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return played(tmp_path_factory.mktemp("log"), rows=60)


@pytest.fixture(scope="module")
def run(log, tmp_path_factory):
    data = optimist.open(log)
    return optimist.train(small("rem"), data, seeds=range(2), out=tmp_path_factory.mktemp("run"), **SHORT)


def test_a_policy_acts_on_one_observation_and_on_many(run):
    observation = np.zeros((10, 10, 4), bool)
    action = run.policy(observation)
    assert type(action) is int and action in range(3)
    batch = run.policy(np.stack([observation] * 5))
    assert batch.shape == (5,) and set(batch.tolist()) == {action}
    assert run.policy(np.zeros((0, 10, 10, 4), bool)).shape == (0,)


def test_a_policy_chooses_the_best_value_of_its_own_seed(run):
    observations = np.random.default_rng(0).random((40, 10, 10, 4)) < 0.2
    chosen, network = [], run.learner.agent.table(run.learner.spec)
    for place, seed in enumerate((0, 1)):
        params = jax.tree.map(lambda leaf, place=place: leaf[place], run.params["q"])
        best = [int(np.argmax(network(params, one).mean())) for one in observations]
        chosen.append(run.policy_of(seed)(observations).tolist())
        assert chosen[-1] == best
    assert chosen[0] != chosen[1]
    assert run.policy(observations).tolist() == chosen[0]


def test_what_a_policy_does_not_know_is_refused(run):
    with pytest.raises(UsageError, match=r"one \(10, 10, 4\) or a batch"):
        run.policy(np.zeros((10, 10, 3), bool))
    with pytest.raises(UsageError, match="has no seed 7: it has 0, 1"):
        run.policy_of(7)


def test_recorded_data_is_evaluated_where_it_came_from(run):
    assert run.environment == GAME
    assert [row[:3] for row in run.episodes()] == [
        (s, seed, n) for s in (15, 30) for seed in (0, 1) for n in (0, 1)
    ]
    assert run.evaluate(episodes=2) == run.episodes()[-4:]


def test_a_run_says_what_it_is(run):
    lines = repr(run).splitlines()
    assert lines[0] == f"Run {run.path}"
    said = dict(line.split(maxsplit=1) for line in lines[1:])
    assert (said["agent"], said["environment"], said["steps"], said["seeds"]) == ("rem", GAME, "30", "0, 1")
    assert said["data"] and said["return"].startswith("last ") and "best" in said["return"]


def test_a_run_is_loaded_as_it_was_trained(run):
    loaded = optimist.load(run.path)
    assert (loaded.seeds, loaded.step, loaded.learner) == (run.seeds, 30, run.learner)
    observations = np.random.default_rng(0).random((20, 10, 10, 4)) < 0.2
    np.testing.assert_array_equal(loaded.policy(observations), run.policy(observations))


def test_the_same_call_again_continues(run, log, tmp_path):
    optimist.train(small("rem"), log, seeds=(0, 1), out=tmp_path, **{**SHORT, "steps": 15})
    again = optimist.train(small("rem"), str(log), seeds=[0, 1], out=tmp_path, **SHORT)
    assert again.step == 30
    assert outcome(tmp_path) == outcome(run.path)


def test_pictures_are_frames_of_play(run):
    frames = run.pictures(frames=7)
    assert len(frames) == 7
    assert {frame.shape for frame in frames} == {(160, 160, 3)}


def test_a_log_of_ones_own_needs_no_environment_and_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = vectors()
    run = optimist.train(small("dqn"), data, steps=20, batch=4)
    assert run.path.parts == ("runs", f"dqn-{data.fingerprint[:8]}")
    assert run.policy(np.zeros(4)) in (0, 1)
    assert run.policy(np.zeros((3, 4))).shape == (3,)
    assert run.policy([0.0, 0.5, 1.0, 2.0]) in (0, 1)
    for strange in ([0.0, np.nan, 1.0, 2.0], [0.0, np.inf, 1.0, 2.0], ["a", "b", "c", "d"]):
        with pytest.raises(UsageError, match="holds NaN, infinity or text: give finite numbers"):
            run.policy(strange)
    with pytest.raises(UsageError, match="has no environment: .*; without one, optimist select ranks"):
        run.evaluate()


def test_seeds_may_be_numbers_of_numpy_and_an_empty_environment_means_no_evaluation(log, tmp_path):
    short = {"steps": 4, "evaluate_every": 4, "environment": ""}
    run = optimist.train(small("dqn"), log, seeds=np.arange(2), out=tmp_path, **short)
    assert run.seeds == (0, 1) and run.episodes() == []


def test_a_part_of_each_players_log_is_that_of_the_command_line(tmp_path):
    """In Python there was only the part of all players' play together, which is another log."""
    play = {"steps": 300, "lanes": 2, "warm_up": 50, "options": {"network.torso": "mlp"}}
    log = optimist.collect("gym/CartPole-v1", agent="dqn", seeds=(0, 1), out=tmp_path / "log", **play)
    words = "--best 0.3 --seeds 0,1 --data-per-seed own --steps 4 --batch 4 --evaluate-every 4"
    words += " --environment none --network.hidden 8"
    assert main(["train", "dqn", str(tmp_path / "log"), "--out", str(tmp_path / "a"), *words.split()]) == 0
    same = {"steps": 4, "batch": 4, "evaluate_every": 4, "environment": "none", "seeds": (0, 1)}
    same |= {"data_per_seed": "own", "options": {"network.hidden": 8}}

    def kept(name: str) -> set[str]:
        """The names of policies have a hash of their parameters."""
        return {path.name for path in (tmp_path / name / "policies").iterdir()}

    optimist.train("dqn", log, part=lambda each: each.best(0.3), out=tmp_path / "b", **same)
    optimist.train("dqn", log.best(0.3), out=tmp_path / "c", **same)
    assert kept("a") == kept("b") != kept("c")


@pytest.mark.parametrize("agent", [None, optimist.agents.Rem])
def test_what_is_not_an_agent_is_refused(agent, tmp_path):
    with pytest.raises(UsageError, match="is not an agent: pass"):
        optimist.train(agent, vectors(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("steps", [0, -1, 1.5, np.nan, np.inf])
def test_senseless_steps_are_refused_and_not_replaced(steps, tmp_path):
    with pytest.raises(UsageError, match="steps is"):
        optimist.train(small("dqn"), vectors(), steps=steps, out=tmp_path / "run")


def test_a_count_may_be_a_whole_float_and_no_other_one(run):
    few = [run.evaluate(episodes=each, steps=None) for each in (2, 2.0)]
    assert few[0] == few[1]
    assert optimist.load(run.path, step=float(run.step)).step == run.step
    asked = (
        lambda: run.evaluate(episodes=1.5),
        lambda: run.evaluate(steps=np.inf),
        lambda: run.pictures(frames=2.5),
        lambda: optimist.load(run.path, step=20.5),
        lambda: optimist.select(run, updates=1.5),
        lambda: optimist.select(run, updates=True),
    )
    for call in asked:
        with pytest.raises(UsageError, match="not a whole number"):
            call()


def test_what_is_not_there_is_said(tmp_path):
    for call, error, said in (
        (lambda: optimist.open(tmp_path / "nothing"), DataError, "does not exist"),
        (lambda: optimist.train(small("dqn"), tmp_path / "nothing"), DataError, "does not exist"),
        (lambda: optimist.load(tmp_path), RunError, "is not a run folder"),
    ):
        with pytest.raises(error, match=said):
            call()


def test_play_is_collected_into_a_dataset(tmp_path):
    data = optimist.collect(
        GAME, out=tmp_path, agent=small("dqn"), steps=40, lanes=4, warm_up=100, seeds=(3,)
    )
    assert len(data) == 40
    assert data.provenance["seeds"] == [3]


def test_a_path_may_begin_at_home_as_on_the_command_line(tmp_path, monkeypatch):
    """Nothing may be written into a folder with the name ~."""
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    vectors().save("~/log")
    assert optimist.open("~/log").path == tmp_path / "home" / "log"
    settings = {"steps": 4, "evaluate_every": 4, "out": "~/run"}
    assert optimist.train(small("dqn"), "~/log", **settings).path == tmp_path / "home" / "run"
    assert optimist.load("~/run").seeds == (0,)
    optimist.select("~/run", data="~/log", updates=1, out="~/page")
    optimist.export("~/run", "~/policy.npz", data="~/log")
    small_game = {"steps": 20, "lanes": 4, "warm_up": 100}
    optimist.collect(GAME, agent=small("dqn"), out="~/play", **small_game)
    optimist.collect(GAME, out="~/more", start_from="~/play/agent", **small_game)
    with optimist.Recorder("~/recorded", vectors().spec, lanes=1) as recorder:
        assert recorder.path == tmp_path / "home" / "recorded"
    with Intake("~/taken", vectors().spec) as intake:
        copy_into(intake, vectors())
    optimist.record(gymnasium.make("CartPole-v1"), "~/cart").close()
    found = {path.name for path in (tmp_path / "home").iterdir()}
    assert {"log", "run", "page", "policy.npz", "play", "more", "recorded", "taken", "cart"} <= found
    assert not list((tmp_path / "here").iterdir())


def test_what_is_given_in_place_of_the_data_is_one_line(log):
    for agent, data, said in (
        (optimist.open(log), "cql", 'the agent comes first, then the data, as in optimist.train("cql"'),
        (str(log), "cql", "the agent comes first, then the data"),
        ("cql", np.zeros((4, 2)), "the data is of type ndarray: give the folder of a dataset, or"),
    ):
        with pytest.raises(UsageError) as caught:
            optimist.train(agent, data)
        assert said in str(caught.value)


def test_select_asks_for_data_that_was_in_memory(tmp_path):
    run = optimist.train("dqn", vectors(), out=tmp_path / "run", steps=2, batch=4, evaluate_every=2)
    with pytest.raises(DataError, match="learned from data in memory: pass it as data=, or save it and name"):
        optimist.select(run)
    found = optimist.select(run, data=vectors(), updates=1)
    assert "Selection of 1 policy of 1 run by cautious" in repr(found)
