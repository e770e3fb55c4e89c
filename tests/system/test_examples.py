"""The examples run, each with few steps, in a folder of its own."""

import runpy
import sys
from pathlib import Path

import pytest

from little import small_words, vectors
from optimist.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(monkeypatch, name: str, steps: int) -> None:
    monkeypatch.setattr(sys, "argv", [name, str(steps)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_arrays(monkeypatch, capsys):
    run(monkeypatch, "arrays.py", 100)
    assert "at 12 degrees:" in capsys.readouterr().out


@pytest.mark.slow  # tests/system/test_tutorials.py goes the same way in the suite
def test_a_gymnasium_loop(monkeypatch, capsys):
    run(monkeypatch, "gymnasium_loop.py", 100)
    said = capsys.readouterr().out
    assert "the log chooses" in said
    assert "its mean return in 5 episodes" in said


@pytest.mark.slow  # `optimist demo` goes the same way in the suite
def test_a_game(monkeypatch, tmp_path):
    run(monkeypatch, "game.py", 6_000)
    assert (tmp_path / "rem.gif").stat().st_size > 1000


def test_proposition_1(monkeypatch, tmp_path, capsys):
    run(monkeypatch, "proposition_1.py", 20)
    assert "REM, uniform, K=200" in capsys.readouterr().out
    assert (tmp_path / "proposition-1" / "heads.png").stat().st_size > 1000


def test_an_agent_of_ones_own(tmp_path):
    vectors().save(tmp_path / "data")
    words = ["train", f"{EXAMPLES / 'double_dqn.py'}:DoubleDqn", "data", "--steps", "8", "--batch", "4"]
    assert main([*words, "--out", "run", *small_words("dqn")]) == 0


def test_a_study_of_ones_own(capsys):
    assert main(["study", "run", str(EXAMPLES / "study.toml"), "--dry-run"]) == 0
    assert "5 runs: 90,000 steps played, 18,000 updates offline" in capsys.readouterr().out


def test_every_example_is_in_the_list():
    text = (EXAMPLES / "README.md").read_text("utf-8")
    names = [path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".toml")]
    assert [name for name in names if name not in text] == []
