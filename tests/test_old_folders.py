"""Datasets and studies that earlier commits wrote still open and report (tests/samples). Their checkpoints do
not say which step of which run they are, so that the runs cannot be continued."""

import tarfile
from pathlib import Path

import pytest

import optimist
from optimist.cli.main import main
from optimist.data.verify import verify
from optimist.studies.status import read_jobs

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.tar.xz"))
AGENT = ["rem", "data", "--network", "linear", "--columns", "4", "--seeds", "0,1"]
TRAINING = ["--evaluate-every", "20", "--episodes", "2"]


@pytest.fixture(params=SAMPLES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def folder(request, tmp_path, monkeypatch):
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_dataset_opens_and_is_whole(folder):
    data = optimist.open("data")
    assert len(data) == 640
    assert data.spec.actions == 2
    assert verify("data") == []


def test_a_study_reports_and_finds_its_runs_done(folder, capsys):
    assert main(["study", "report", "study"]) == 0
    assert "REM" in (folder / "study/report.html").read_text()
    assert main(["study", "status", "study"]) == 0
    assert "done" in capsys.readouterr().out


def test_the_jobs_of_a_study_keep_their_recipe(folder):
    """Earlier versions wrote it as "scale"."""
    assert '"scale": "small"' in (folder / "study/study.json").read_text()
    assert {job.recipe for job in read_jobs(folder / "study")[1]} == {"small"}


def test_a_study_run_again_finds_its_runs_done_or_says_what_differs(folder, capsys):
    """The first build gave all seeds one log. Today each seed has its own: that is another study."""
    exit_code, said = main(["study", "run", "study.toml", "--out", "study"]), capsys.readouterr().err
    if (folder / "study/logs/gym-cartpole-v1/agent/config.toml").read_text().count("seeds = [0]"):
        assert exit_code != 0 and "logs/gym-cartpole-v1 has seeds: [0] saved, [0, 1] requested" in said
    else:
        assert exit_code == 0 and "4 of 4 runs are done already" in said
