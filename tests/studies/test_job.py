"""A run counts as a job's if it has what the job's settings become once its data is known."""

import shutil

import pytest

from little import played
from optimist.data import Dataset
from optimist.studies.job import Job
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
    )
    run.folder.finish()
    run.folder.release()


def test_settings_that_follow_the_data_are_no_difference(log, tmp_path):
    begin(job(log), tmp_path)
    assert read_config(tmp_path / "runs/one")["training"]["observations"] == "standard"
    assert job(log).done(tmp_path) and job(log).changes(tmp_path) == []
    read_back = Job.from_json(job(log).written_down())  # as a report finds it in study.json
    assert read_back.done(tmp_path) and read_back.changes(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"observations": "none"}, "training.observations: 'standard' saved, 'none' requested"),
        ({"clip_rewards": 1.0}, "training.clip_rewards: nothing saved, 1.0 requested"),
        ({"reward_scale": 0.5}, "training.reward_scale: 1.0 saved, 0.5 requested"),
    ],
)
def test_an_edited_study_does_not_count_the_run(changes, difference, log, tmp_path):
    begin(job(log), tmp_path)
    assert job(log, **changes).changes(tmp_path) == [difference]
    begin(job(log, **changes), tmp_path / "other")
    assert job(log, **changes).changes(tmp_path / "other") == []
    assert len(job(log).changes(tmp_path / "other")) == 1


def test_a_lost_log_is_no_difference(log, tmp_path):
    moved = tmp_path / "log"
    shutil.copytree(log, moved)
    begin(job(moved), tmp_path)
    shutil.rmtree(moved)
    assert job(moved).changes(tmp_path) == []


def test_a_log_that_the_study_records_needs_no_scaling(tmp_path):
    one = job("logs/one")
    needs = Job(**{**one.__dict__, "needs": ("logs/one",)})
    training = needs.expected(tmp_path)["training"]
    assert training["observations"] == "none" and "clip_rewards" not in training
