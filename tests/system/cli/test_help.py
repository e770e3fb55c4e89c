"""Help and mistyped words are answered at once: without JAX, and within 0.3 s of CPU."""

import os
import resource
import subprocess
import sys

import pytest

from optimist.agents import available, presets
from optimist.cli.main import main
from optimist.cli.study import titles
from optimist.cli.words import settings_of, shown
from optimist.studies.study_file import catalogue
from optimist.training.resolve import RECIPES
from patience import is_quick

COMMANDS = {
    "": ["demo", "collect", "train", "evaluate", "play", "data", "agents", "environments", "scores", "study"],
    "demo": ["--online-steps", "--out"],
    "collect": ["ENV", "--out", "--lanes", "--optimizer.learning-rate", "--sticky"],
    "collect atari/Pong": ["--sticky"],
    "train": ["AGENT", "DATA", "--evaluate-every", "behaviour_cloning"],
    "train rem": ["--columns", "--mixture.kind", "--evaluate-every", "networks-4"],
    "evaluate": ["RUN", "--environment", "--epsilon"],
    "play": ["RUN", "--environment", "--fps"],
    "data": ["info", "verify", "import", "export"],
    "data info": ["DATA", "--json", "--best"],
    "data verify": ["PATH"],
    "data import": ["FORMAT", "ADDRESS", "--actions"],
    "data import dqn-replay": ["--actions-count"],
    "data export": ["FORMAT", "DATA", "--out", "--capacity"],
    "agents": ["usage"],
    "environments": ["usage"],
    "scores": ["FILE.csv", "--normaliser", "game,agent,seed,score"],
    "study": ["run", "status", "report"],
    "study run": ["NAME", "--scale", "--engine", "asymptotic", "random-scores"],
    "study run asymptotic": ["--scale", "--workers"],
    "study status": ["FOLDER"],
    "study report": ["FOLDER", "--normaliser"],
    "bench": ["--quick", "--rounds", "updates"],
}
LIGHT = [*(f"{words} --help" for words in COMMANDS), "agents", "environments", "--version", "help", ""]
WRONG = [
    "trian",
    "train rme",
    "train rem log --lr 1",
    "collect x --preset dqn-natur",
    "study run asymptotics",
]
PROGRAM = """
import sys
from optimist.cli.main import main
for line in sys.argv[1:]:
    heavy = sorted({"jax", "numpy", "pyarrow", "matplotlib"} & set(sys.modules))
    print(line, "->", main(line.split()), heavy)
"""


def help_of(capsys, line: str) -> str:
    """The help without its line breaks."""
    assert main([*line.split(), "--help"]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_has_help(line, capsys):
    text = help_of(capsys, line)
    assert text.startswith("usage: optimist")
    assert [word for word in COMMANDS[line] if word not in text] == []


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]], ids=str)
def test_the_first_page_names_the_exit_codes(words, capsys):
    assert main(words) == 0
    assert "130 or 143 interrupted" in capsys.readouterr().out


def test_help_and_mistakes_import_nothing_heavy():
    subprocess.run([sys.executable, "-c", PROGRAM, *LIGHT], capture_output=True)  # fills the cache
    found = subprocess.run([sys.executable, "-c", PROGRAM, *LIGHT, *WRONG], capture_output=True, text=True)
    answers = [line for line in found.stdout.splitlines() if " -> " in line]
    assert answers == [f"{line} -> 0 []" for line in LIGHT] + [f"{line} -> 2 []" for line in WRONG]


@pytest.mark.parametrize("line", ["--help", "train --help", "train rem --help", "agents", "trian"])
def test_help_and_mistakes_take_less_than_a_third_of_a_second(line):
    assert is_quick(lambda: cpu_seconds("-m", "optimist", *line.split()), 0.3)


def test_the_package_is_imported_within_a_third_of_a_second():
    assert is_quick(lambda: cpu_seconds("-c", "import optimist"), 0.3)


def test_a_policy_is_loaded_without_what_draws_pages():
    """matplotlib takes longer to import than everything that a first action needs."""
    program = "import sys, optimist; optimist.load; print({'matplotlib', 'jinja2'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def cpu_seconds(*words: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], capture_output=True, env=os.environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def assert_explained(record, text: str) -> None:
    for name, setting in settings_of(record).items():
        assert f"--{name.replace('_', '-')} {setting.kind} {setting.help} [{shown(setting.default)}]" in text


@pytest.mark.parametrize("name", available())
def test_every_setting_is_explained_with_its_default_at_a_recipe(name, capsys):
    for recipe, line, settings in (
        ("paper", f"train {name}", RECIPES["paper"].training),
        ("vectors", f"collect gym/CartPole-v1 --agent {name}", RECIPES["vectors"].collection),
    ):
        text = help_of(capsys, f"{line} --recipe {recipe}")
        assert_explained(settings, text)
        fitting = RECIPES[recipe].playing() if line.startswith("collect") else RECIPES[recipe]
        known = presets(name)
        assert_explained(fitting.fitted(known[fitting.preset_of(known)]), text)


def test_the_agents_fit_80_columns_and_are_told_apart_by_their_actions(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["agents"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    discrete, vectors = text.index("discrete actions:"), text.index("action vectors:")
    assert discrete < text.index("\n  rem\n") < vectors < text.index("\n  td3\n")


def test_every_study_of_the_catalogue_is_listed():
    assert set(catalogue()) == set(titles())
