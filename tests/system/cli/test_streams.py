"""Commands whose output cannot be written, and platforms that JAX does not have: one line, or none."""

import os
import subprocess
import sys

import numpy as np
import pytest

from little import played
from optimist.cli.main import main

OPTIONS = ["--network.torso", "linear", "--batch", "4", "--environment", "none", "--hold-out", "0"]
TRAIN = ["train", "dqn", "data", "--steps", "20", *OPTIONS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    played(tmp_path_factory.mktemp("streams") / "data", rows=20)
    return tmp_path_factory.getbasetemp() / "streams0"


def ran(folder, line: str, **variables) -> tuple[int, str]:
    """The exit code of a shell's line, and what is on standard error."""
    command = ["sh", "-c", line, sys.executable, "-m", "optimist", *TRAIN, "--out", folder / "run"]
    ended = subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True
    )
    return ended.returncode, ended.stderr


def test_closed_output_is_no_error(folder):
    assert ran(folder, '"$0" "$@" >&-') == (0, "")
    assert (folder / "run" / "DONE").exists()


def test_a_full_disk_under_the_output_is_called_the_output(folder):
    code, said = ran(folder, '"$0" "$@" --restart > /dev/full')
    assert code == 6
    assert said == "optimist: standard output: No space left on device; the same command continues\n"
    assert ran(folder, '"$0" "$@"')[0] == 0


@pytest.mark.parametrize("platform", ["cuda", "foo"])
def test_a_platform_that_is_not_there_is_one_line(folder, platform):
    code, said = ran(folder, '"$0" "$@" --restart', JAX_PLATFORMS=platform)
    assert code == 2
    assert said.count("\n") == 1
    assert said.startswith(f"optimist: JAX_PLATFORMS={platform}: JAX cannot compute there")


@pytest.mark.parametrize("words", [["data", "import", "a.npz", "--out"], ["data", "info"], ["report"]])
def test_a_path_that_is_not_utf_8_is_refused_first(words, tmp_path, monkeypatch, capsys):
    """An import accepted it, and every other command ended in a traceback."""
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", observations=np.zeros((4, 1)), actions=[0, 1, 0, 1], rewards=np.ones(4))
    assert main([*words, os.fsdecode(b"lat\xe9")]) == 2
    assert capsys.readouterr().err == "optimist: lat? is not UTF-8, as names in our files are: rename it\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]
