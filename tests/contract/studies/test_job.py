"""A run counts as a job's if it has what the job's settings become once its data is known."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

import optimist
from little import played
from optimist.data import Dataset
from optimist.data.disk.records import record
from optimist.studies.job import Job, perform_job
from optimist.training.offline import OfflineTraining
from optimist.training.storage.run_folder import read_config


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log of CartPole that somebody else recorded."""
    return played(tmp_path_factory.mktemp("log"), game="gym/CartPole-v1", rows=5, lanes=2)


def job(log, **changes) -> Job:
    settings = {"steps": 7, "evaluate_every": 7, "episodes": 1, **changes}
    common = {"environment": "gym/CartPole-v1", "agent": "dqn", "preset": "adam", "recipe": "small"}
    return Job(name="runs/one", data=str(log), seeds=(0,), settings=settings, **common)


def begin(one: Job, out) -> None:
    """The run's folder as it is when the run begins, with a mark that it is done."""
    data = Dataset.open(one.data_folder(out))
    run = OfflineTraining(
        one.built_agent(), data, one.record(), out=one.run_folder(out), environment=one.environment
    ).prepare()
    run.folder.finish()
    run.folder.release()


def test_settings_that_follow_the_data_are_no_difference(log, tmp_path):
    begin(job(log), tmp_path)
    assert read_config(tmp_path / "runs/one")["training"]["observations"] == "standard"
    assert job(log).done(tmp_path) and job(log).standing(tmp_path).changes == []
    read_back = record(Job, job(log).written_down())  # as a report finds it in study.json
    assert read_back.done(tmp_path) and read_back.standing(tmp_path).changes == []


def test_a_study_and_train_find_the_same_values_in_a_log(tmp_path):
    """A study gave every agent the scale and the loss of the paper, whatever the rewards of the log."""
    steps = np.arange(400)
    seen, ends = np.ones((400, 4)), np.ones(400, bool)
    data = Dataset.from_arrays(seen, steps % 2, 1_000.0 * (steps % 2), ends).save(tmp_path / "log")
    one = job(tmp_path / "log")
    perform_job(one, tmp_path)
    common = {"preset": "adam", "recipe": "small", "seeds": (0,), "environment": one.environment}
    optimist.train("dqn", data, out=tmp_path / "trained", **common, **one.settings)
    studied, trained = (read_config(tmp_path / name) for name in ("runs/one", "trained"))
    assert {**studied, "dataset": 0} == {**trained, "dataset": 0}
    assert (studied["training"]["reward_scale"], studied["agent"]["huber_limit"]) == (0.05, 100.0)
    assert job(tmp_path / "log").done(tmp_path)


def test_targets_that_the_log_limits_are_no_difference_and_a_number_is_one(log, tmp_path):
    """Every report of a study with `target_limit = "auto"` said that its runs had other settings."""
    limited = replace(job(log), options={"target_limit": "auto"})
    begin(limited, tmp_path)
    found = read_config(tmp_path / "runs/one")["agent"]["target_limit"]
    assert found > 0 and limited.done(tmp_path) and limited.standing(tmp_path).changes == []
    assert record(Job, limited.written_down()).done(tmp_path)
    (other,) = replace(limited, options={"target_limit": 2 * found}).standing(tmp_path).changes
    assert other.startswith("agent.target_limit")
    begin(replace(limited, name="runs/two", options={"target_limit": found}), tmp_path)
    (other,) = replace(limited, name="runs/two").standing(tmp_path).changes
    assert other == f"agent.target_limit: {found!r} saved, 'auto' requested"


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"observations": "none"}, "training.observations: 'standard' saved, 'none' requested"),
        ({"clip_rewards": 1.0}, "training.clip_rewards: nothing saved, 1.0 requested"),
        ({"reward_scale": 0.5}, "training.reward_scale: 10.0 saved, 0.5 requested"),
    ],
)
def test_an_edited_study_does_not_count_the_run(changes, difference, log, tmp_path):
    begin(job(log), tmp_path)
    assert job(log, **changes).standing(tmp_path).changes == [difference]
    begin(job(log, **changes), tmp_path / "other")
    assert job(log, **changes).standing(tmp_path / "other").changes == []
    assert len(job(log).standing(tmp_path / "other").changes) == 1


@pytest.mark.parametrize(
    ("before", "after", "difference"),
    [
        ({"view": {"first": 0.5}}, {"view": {"first": 0.25}}, "'first 0.5' saved, 'first 0.25' requested"),
        ({}, {"view": {"first": 0.5}}, "'whole' saved, 'first 0.5' requested"),
        ({"share": {"fraction": 0.5}}, {}, "'fraction 0.5' saved, 'whole' requested"),
    ],
)
def test_a_run_on_another_part_of_the_log_is_not_counted(before, after, difference, log, tmp_path):
    """The label of a part can stay while what it means is edited."""
    perform_job(replace(job(log), **before), tmp_path)
    assert replace(job(log), **before).done(tmp_path)
    edited = replace(job(log), **after)
    assert not edited.done(tmp_path) and edited.standing(tmp_path).changes == [f"dataset.part: {difference}"]
    read_back = record(Job, edited.written_down())
    assert read_back.standing(tmp_path).changes == edited.standing(tmp_path).changes
    lost = replace(edited, data=str(tmp_path / "lost"))  # a log that was deleted since
    assert lost.standing(tmp_path).changes == edited.standing(tmp_path).changes


def test_a_run_of_fewer_players_than_are_kept_is_not_counted(log, tmp_path):
    begin(job(log), tmp_path)
    assert replace(job(log), kept=1).standing(tmp_path).changes == []
    assert replace(job(log), kept=2).standing(tmp_path).changes == [
        "seeds: [0] saved, the best 2 players requested"
    ]


def test_a_lost_log_is_no_difference(log, tmp_path):
    moved = tmp_path / "log"
    shutil.copytree(log, moved)
    begin(job(moved), tmp_path)
    shutil.rmtree(moved)
    assert job(moved).standing(tmp_path).changes == []
