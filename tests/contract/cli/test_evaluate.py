"""`optimist evaluate RUN --follow` scores the policies of a run in a second shell while the run trains."""

import threading
import time

import pytest

from little import GAME, played, small, vectors
from optimist.cli.main import main
from optimist.data import Dataset
from optimist.training.offline import OfflineTraining
from optimist.training.settings import Training
from patience import PATIENCE

TRAINING = Training(steps=6, evaluate_every=2, batch=4, hold_out=0)


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Dataset:
    return Dataset.open(played(tmp_path_factory.mktemp("log") / "data", rows=40))


@pytest.fixture
def run(log, tmp_path):
    """A run that keeps three policies and does not play."""
    OfflineTraining(small("dqn"), log, TRAINING, out=tmp_path / "run", seeds=(3, 5)).run()
    return tmp_path / "run"


def follow(run) -> int:
    return main(["evaluate", str(run), "--follow", "--episodes", "2", "--environment", GAME])


def steps_of(printed: str) -> list[str]:
    return [line.partition(":")[0] for line in printed.splitlines() if line.startswith("step ")]


def test_every_policy_is_scored_once_as_it_is_kept_until_the_run_is_done(run, tmp_path, capsys):
    aside = tmp_path / "aside"
    aside.mkdir()
    late = [run / "policies" / path.name for path in (run / "policies").glob("step-*6-*")] + [run / "DONE"]
    for path in late:  # the run still trains
        path.rename(aside / path.name)
    second_shell = threading.Thread(target=follow, args=[run], daemon=True)
    second_shell.start()
    printed, said, deadline = "", "", time.monotonic() + PATIENCE
    while len(steps_of(printed)) < 2:
        assert time.monotonic() < deadline and second_shell.is_alive(), said
        time.sleep(0.05)
        said = capsys.readouterr()
        printed += said.out
    assert steps_of(printed) == ["step 2", "step 4"] and second_shell.is_alive()
    for path in late:
        (aside / path.name).rename(path)
    second_shell.join(PATIENCE)
    printed += capsys.readouterr().out
    assert steps_of(printed) == ["step 2", "step 4", "step 6"]
    assert "(seed 3: " in printed and ", seed 5: " in printed
    assert f"in {run / 'evaluation-kept.csv'}" in printed


def test_a_followed_score_is_that_of_the_same_step(run, capsys):
    assert follow(run) == 0
    assert main(["evaluate", str(run), "--step", "4", "--episodes", "2", "--environment", GAME]) == 0
    kept, one = (
        [line for line in (run / name).read_text().splitlines() if line.startswith("4,")]
        for name in ("evaluation-kept.csv", "evaluation-4.csv")
    )
    assert kept == one and len(one) == 2 * 2


def test_what_cannot_be_followed_is_said_in_a_line(run, tmp_path, capsys):
    assert main(["evaluate", str(run), "--follow", "--step", "4"]) == 2
    assert "--follow scores every kept policy: leave out --step" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path / "nowhere"), "--follow"]) == 4
    none = Training(steps=2, evaluate_every=2, batch=4, keep_policies=0)
    OfflineTraining(small("dqn"), vectors(), none, out=tmp_path / "none").run()
    assert follow(tmp_path / "none") == 4
    assert "kept no policy: train with --keep-policies above 0" in capsys.readouterr().err
