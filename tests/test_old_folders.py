"""Datasets, runs and studies that earlier commits wrote still open, continue and report (tests/samples)."""

import tarfile
from pathlib import Path

import jax
import numpy as np
import pytest

import optimist
from optimist.cli.main import main
from optimist.data.verify import verify
from optimist.studies.status import read_jobs
from optimist.training.storage.run_folder import read_config

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


def test_a_run_loads_and_acts(folder):
    run = optimist.load("run")
    assert run.policy(np.zeros(4, np.float32)) in (0, 1)


def test_a_run_continues_where_it_stopped(folder):
    """From the old commit's step 40 to 60, as if today's code had trained all 60."""
    before = read_config("run")["training"]  # not what "auto" finds today
    usual = {"clip_rewards": "none", "reward_scale": 1, "observations": "none"}
    then = [f"--{name.replace('_', '-')}={before.get(name, value)}" for name, value in usual.items()]
    for out in ("run", "anew"):
        words = ["train", *AGENT, *TRAINING, *then, "--huber-limit", "1", "--steps", "60", "--out", out]
        assert main(words) == 0
    continued, anew = optimist.load("run"), optimist.load("anew")
    assert [row.split(",")[0] for row in (folder / "run/episodes.csv").read_text().split()[1:]] == (
        ["20"] * 4 + ["40"] * 4 + ["60"] * 4
    )
    for one, other in zip(leaves(continued), leaves(anew), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def leaves(run) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(run.policy.params)]


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
    """The first build gave all seeds one log, and the first two clipped the rewards of every environment:
    these are other studies than today's."""
    before = read_config("study/logs/gym-cartpole-v1/agent")
    exit_code, said = main(["study", "run", "study.toml", "--out", "study"]), capsys.readouterr().err
    if before["seeds"] == [0]:
        assert exit_code != 0 and "logs/gym-cartpole-v1 has seeds: [0] saved, [0, 1] requested" in said
    elif "clip_rewards" in before["training"]:
        assert exit_code != 0 and "training.clip_rewards: 1.0 saved, nothing requested" in said
    else:
        assert exit_code == 0 and "4 of 4 runs are done already" in said
