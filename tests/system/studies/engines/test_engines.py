"""An engine is one file, in this folder or of the user, and nothing else names it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from made_study import empty_drawings
from optimist.cli.main import main
from optimist.studies import engines
from optimist.studies.report import study_figures

ROOT = Path(__file__).parents[4]
STUDY = """
title = "A player"
recipe = "small"
seeds = 1
normaliser = "levels.csv"
environments = ["minatar/breakout"]
play = { steps = 40, lanes = 4, warm_up = 20, batch = 8, evaluate_every = 40, episodes = 1 }
[agents]
"Random" = { agent = "random" }
"""


def engine() -> str:
    """The engine that CONTRIBUTING shows."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    return next(block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "def run(" in block)


@pytest.fixture
def words(tmp_path, monkeypatch):
    (tmp_path / "polite.py").write_text(engine())
    (tmp_path / "mine.toml").write_text(STUDY)
    (tmp_path / "here").mkdir()  # packages are not searched for in the current folder
    (tmp_path / "here" / "levels.csv").write_text("game,random,dqn\nbreakout,0,1\n")
    monkeypatch.chdir(tmp_path / "here")
    return ["study", "run", str(tmp_path / "mine.toml"), "--out", str(tmp_path / "out")]


def test_the_folder_is_the_registry():
    assert engines.available() == ["local", "ray", "slurm"]
    for name in engines.available():
        assert engines.find(name).Options() == engines.find(name).Options()


@pytest.mark.parametrize("place", ["polite", "{folder}/polite.py:"])
def test_an_engine_of_ones_own_runs_a_study(place, words, tmp_path, monkeypatch, capsys):
    """By an entry point of a package, and by the path of a file."""
    package = tmp_path / "polite-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: polite\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[optimist.engines]\npolite = polite\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(study_figures, "drawings", empty_drawings)
    name = place.format(folder=tmp_path)
    assert main([*words, "--engine", name, "--niceness", "30"]) == 2
    assert "niceness is 30: choose from 0 to 19" in capsys.readouterr().err
    assert main([*words, "--engine", name, "--niceness", "3"]) == 0
    assert "all 1 runs are done" in capsys.readouterr().out


COUNTED = """
import sys
from optimist.cli.main import main
if __name__ == "__main__":
    assert main(sys.argv[1:]) == 0
    print(len([name for name in sys.modules if name.split(".")[0] == "optimist"]))
"""


def test_a_study_loads_few_of_our_modules(words, tmp_path):
    """173 were loaded in November; those of training belong to the workers alone."""
    (tmp_path / "counted.py").write_text(COUNTED)
    line = [sys.executable, tmp_path / "counted.py", *words, "--workers", "1"]
    ended = subprocess.run(line, env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout.splitlines()[-1]) <= 120


def test_an_option_of_another_engine_is_named(words, capsys):
    assert main([*words, "--partition", "gpu"]) == 2
    assert "--partition is for another engine: add --engine slurm" in capsys.readouterr().err
    assert main([*words, "--engine", "slurn"]) == 2
    assert 'there is no engine "slurn": did you mean "slurm"?' in capsys.readouterr().err
