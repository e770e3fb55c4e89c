"""A run whose evaluations fail says why in one line; what the process that played printed last is kept."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from little import played, small, small_words
from optimist.agents import described
from optimist.cli.main import main
from optimist.data import Dataset
from optimist.training.evaluator import CrashError, Evaluator, EvaluatorError, device
from optimist.training.evaluator_child import Child
from optimist.training.last_output import MOST, LastOutput
from optimist.training.learner import Learner
from optimist.training.storage import checkpoint

GAME = f"{Path(__file__).with_name('failing_game.py')}:Game/walk"
HOW = {"seeds": [3], "episodes": 1, "steps": None, "epsilon": 0.0}


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Dataset:
    return Dataset.open(played(tmp_path_factory.mktemp("log") / "data", game=GAME))


def config(log: Dataset) -> dict:
    agent = described(Learner(small("dqn"), log.spec).agent)
    return {"agent": agent, "spec": log.spec.as_json(), "environment": GAME}


def parameters(log: Dataset):
    return jax.device_get(Learner(small("dqn"), log.spec).init((3,)).params)


def evaluated(log: Dataset, output: Path) -> list:
    """The episodes of one evaluation by a child process."""
    evaluator = Evaluator(config(log), HOW, output)
    try:
        evaluator.begin(20, parameters(log))
        assert evaluator.is_over(120)
        return evaluator.episodes()
    finally:
        evaluator.end()


def test_a_child_plays_although_its_game_prints_and_imports_nothing_of_the_folder(
    log, tmp_path, monkeypatch, capfd
):
    (tmp_path / "json.py").write_text("import pathlib; pathlib.Path(__file__ + '.ran').touch()\n")
    monkeypatch.chdir(tmp_path)
    (row,) = evaluated(log, tmp_path / "output")
    assert row[:3] == (20, 3, 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["json.py"]  # no output is kept either
    assert "a step is made" not in "".join(capfd.readouterr())


def test_a_child_that_crashes_is_told_by_its_signal_and_its_stack_is_kept(log, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIL", "crash")
    with pytest.raises(CrashError) as caught:
        evaluated(log, tmp_path / "output")
    line = f"crashed (its process was ended by SIGSEGV; more in {tmp_path / 'output'}): mend the environment"
    assert line in str(caught.value)
    kept = (tmp_path / "output").read_text()
    assert "Segmentation fault" in kept and "failing_game.py" in kept and "a step is made" in kept


@pytest.mark.slow
def test_a_child_that_ends_is_told_by_its_code_and_last_line(log, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIL", "die")
    with pytest.raises(EvaluatorError) as caught:
        evaluated(log, tmp_path / "output")
    assert str(caught.value) == (
        f"its process ended with code 7 (a step is made); more in {tmp_path / 'output'}"
    )
    monkeypatch.setattr("optimist.training.evaluator.CHILD", "optimist.no_such_module")
    with pytest.raises(EvaluatorError, match="ended with code 1 .*No module named optimist.no_such_module"):
        evaluated(log, tmp_path / "output")


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ("raise", "its environment failed, ZeroDivisionError: the walk?is broken"),
        ("exit", "its environment failed, SystemExit: 3"),
    ],
)
def test_a_child_whose_game_raises_answers_with_a_line_and_prints_where(log, monkeypatch, capfd, how, line):
    monkeypatch.setenv("FAIL", how)
    content = b"".join(checkpoint.content(parameters(log)))
    child = Child(json.loads(json.dumps(config(log))), HOW, settings={}, device=device())
    assert child.answer(20, content) == {"problem": line}
    assert "failing_game.py" in capfd.readouterr().err


# A whole run.


def words(log: Dataset, out: Path, evaluation: str) -> list[str]:
    sizes = ("--steps", "20", "--evaluate-every", "10", "--episodes", "1", "--batch", "8")
    more = ("--environment", GAME, "--evaluation", evaluation, "--out", str(out))
    return ["train", "dqn", str(log.path), *more, *sizes, *small_words("dqn")]


def complaints(capfd) -> list[str]:
    """What a command said of its failure."""
    return [line for line in capfd.readouterr().err.splitlines() if line.startswith("optimist: ")]


@pytest.mark.parametrize("way", ["wait", pytest.param("beside", marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", ["raise", "exit"])
def test_a_game_that_raises_stops_the_run_in_one_line_that_names_it(
    log, tmp_path, monkeypatch, capfd, way, how
):
    monkeypatch.setenv("FAIL", how)
    assert main(words(log, tmp_path / "run", way)) == 4
    cause = {"raise": "ZeroDivisionError: the walk?is broken", "exit": "SystemExit: 3"}[how]
    line = complaints(capfd)[-1]
    assert line.startswith(f"optimist: the environment {GAME} failed ({cause}): mend it")
    assert (tmp_path / "run" / "evaluator.txt").exists() == (way == "beside")


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


@pytest.mark.slow
def test_a_crash_stops_the_run_and_the_mended_game_continues_it(log, tmp_path, monkeypatch, capfd):
    """The crash spares this process, so that a run which plays here would go on."""
    monkeypatch.setenv("FAIL", "crash")
    monkeypatch.setenv("SPARED", str(os.getpid()))
    run = tmp_path / "run"
    assert main(words(log, run, "beside")) == 4
    (line,) = complaints(capfd)
    assert f"ended by SIGSEGV; more in {run / 'evaluator.txt'}" in line and "continues" in line
    assert not (run / "episodes.csv").exists()
    monkeypatch.delenv("FAIL")
    assert main(words(log, run, "beside")) == 0
    assert main(words(log, tmp_path / "waited", "wait")) == 0
    rows = [(folder / "episodes.csv").read_bytes() for folder in (run, tmp_path / "waited")]
    assert rows[0] == rows[1]
    assert main([*words(log, run, "beside"), "--restart"]) == 0
    assert not (run / "evaluator.txt").exists()


# The output of any child.


def printing(program: str, **more) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, **more)


def test_a_child_that_prints_much_never_waits_and_its_end_is_kept():
    child = printing(f"import sys; sys.stderr.write('x' * {50 * MOST} + '\\nthe end\\n \\n')")
    output = LastOutput(child.stderr)
    assert child.wait(60) == 0
    assert output.last_line() == "the end" and len(output.text()) == MOST
    child.stderr.close()


def test_a_process_that_keeps_the_output_open_is_not_waited_for():
    program = "import os, sys; print('here', file=sys.stderr, flush=True); os.fork() or sys.stdin.read()"
    child = printing(program, stdin=subprocess.PIPE)
    output = LastOutput(child.stderr)
    assert child.wait(60) == 0
    assert output.text() == "here\n"  # while the process that it started still runs
    for pipe in (child.stdin, child.stderr):
        pipe.close()
