"""A run or a recording whose environment fails says so in one line, and goes on when it is mended."""

from pathlib import Path

import pytest

from little import played, small_words
from optimist.cli.main import main
from optimist.data import Dataset

GAME = f"{Path(__file__).parents[2] / 'support' / 'failing_game.py'}:Game/walk"


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    return played(tmp_path_factory.mktemp("log") / "data", game=GAME)


def complaints(capfd) -> list[str]:
    """What a command said of its failure."""
    return [line for line in capfd.readouterr().err.splitlines() if line.startswith("optimist: ")]


@pytest.mark.parametrize(
    ("how", "cause"),
    [("raise", "ZeroDivisionError: the walk?is broken"), ("exit", "SystemExit: 3")],
)
def test_a_game_that_raises_stops_the_run_in_one_line_that_names_it(
    log, tmp_path, monkeypatch, capfd, how, cause
):
    monkeypatch.setenv("FAIL", how)
    sizes = ("--steps", "20", "--evaluate-every", "10", "--episodes", "1", "--batch", "8")
    more = ("--environment", GAME, "--out", str(tmp_path / "run"))
    assert main(["train", "dqn", str(log), *more, *sizes, *small_words("dqn")]) == 4
    line = complaints(capfd)[-1]
    assert line.startswith(f"optimist: the environment {GAME} failed ({cause}): mend it")


def test_a_game_that_raises_stops_a_recording_too_and_the_mended_game_continues_it(
    tmp_path, monkeypatch, capfd
):
    out = tmp_path / "log"
    words = ["collect", GAME, "--out", str(out), "--steps", "40", "--lanes", "2", *small_words("dqn")]
    monkeypatch.setenv("FAIL", "raise")
    assert main(words) == 4
    assert complaints(capfd)[-1].startswith(f"optimist: the environment {GAME} failed (ZeroDivisionError")
    monkeypatch.delenv("FAIL")
    assert main(words) == 0
    assert len(Dataset.open(out)) >= 40
