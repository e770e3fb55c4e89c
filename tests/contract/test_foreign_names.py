"""An environment that data names is played only if that imports no module of somebody else's."""

import shlex
import sys

import numpy as np
import pytest

import optimist
from little import small, small_words
from optimist import agents, envs
from optimist.cli.main import main
from optimist.data import Recorder, Spec
from optimist.data.disk.manifest import spec_from
from optimist.errors import DataError, RunError
from optimist.training.learner import Learner
from optimist.training.run import load_run
from optimist.training.storage.checkpoint import load_state, save_state
from optimist.training.storage.configuration import fingerprint
from optimist.training.storage.run_folder import read_config

SPEC = Spec((4,), "float32", actions=2)
MODULE = """
from pathlib import Path
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv
(Path(__file__).parent / "executed").touch()
gymnasium.register("Theirs-v0", entry_point=CartPoleEnv, max_episode_steps=20)
"""
NAME = "gym/their_module:Theirs-v0"


@pytest.fixture
def executed(tmp_path, monkeypatch):
    """A file that appears when the module on the path is imported."""
    (tmp_path / "their_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "executed"
    import gymnasium

    sys.modules.pop("their_module", None)
    gymnasium.registry.pop("Theirs-v0", None)


def log(folder, environment):
    random = np.random.default_rng(0)
    frames = random.normal(size=(61, 1, 4)).astype(np.float32)
    with Recorder(folder, SPEC, lanes=1, provenance={"environment": environment}) as recorder:
        for now, following in zip(frames[:-1], frames[1:], strict=True):
            recorder.add(now, [0], [1.0], [True], [False], following)
    return folder


def words(data, out, *more):
    steps = ["--steps", 4, "--evaluate-every", 4, "--episodes", 1, "--batch", 4]
    return [*map(str, ["train", "dqn", data, "--out", out, *steps, *small_words("dqn"), *more])]


@pytest.mark.parametrize("name", [NAME, NAME + "?max_steps=5", "gym/their_module:"])
def test_a_dataset_cannot_have_a_module_imported(tmp_path, executed, name, capsys):
    data = log(tmp_path / "data", name)
    assert main(words(data, tmp_path / "run")) == 3
    complaint = capsys.readouterr().err
    assert "their_module" in complaint and complaint.count("\n") == 1
    remedy = shlex.split(complaint.partition("if you trust it: ")[2].partition(", in Python")[0])
    assert remedy == ["--environment", name]  # without its options it would be another game
    with pytest.raises(DataError, match="their_module"):
        optimist.train(small("dqn"), data, out=tmp_path / "run", steps=4)
    assert not executed.exists()


def forge_checkpoint(run) -> None:
    """As somebody would who hands the run on: the checkpoint fits the configuration."""
    config = read_config(run)
    learner = Learner(agents.from_description(config["agent"]), spec_from(config["spec"]))
    step, state = load_state(run / "checkpoints", learner.shapes((0,)))
    for path in (run / "checkpoints").iterdir():
        path.unlink()
    save_state(run / "checkpoints", step, state, fingerprint(config))


def test_a_run_cannot_have_a_module_imported(tmp_path, executed, capsys):
    data = log(tmp_path / "data", "gym/CartPole-v1")
    assert main(words(data, tmp_path / "run", "--environment", "none")) == 0
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace('environment = ""', f'environment = "{NAME}"'))
    forge_checkpoint(tmp_path / "run")
    capsys.readouterr()
    for command in (["evaluate"], ["play", "--out", str(tmp_path / "film.gif")]):
        assert main([*command, str(tmp_path / "run")]) == 3
        complaint = capsys.readouterr().err
        assert "their_module" in complaint and complaint.count("\n") == 1
    with pytest.raises(DataError, match="their_module"):
        load_run(tmp_path / "run").evaluate(1)
    assert not executed.exists()


def test_a_person_can(tmp_path, executed):
    data = log(tmp_path / "data", NAME)
    assert main(words(data, tmp_path / "run", "--environment", NAME)) == 0
    assert executed.exists()
    load_run(tmp_path / "run").evaluate(1)  # it is imported by now, so nothing more is


@pytest.mark.parametrize("name", [5, None, ["gym/CartPole-v1"], {"gym": 1}, True])
def test_a_name_that_is_no_text_is_refused_in_one_line(tmp_path, name, capsys):
    data = log(tmp_path / "data", name)
    assert main(words(data, tmp_path / "run")) == 3
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1 and "not the name of an environment" in complaint
    if name:  # a person's choice is compared with where the data is from, whatever that says
        assert main(words(data, tmp_path / "run", "--environment", "gym/CartPole-v1")) == 2
        assert f"the data is from {name}, not from gym/CartPole-v1" in capsys.readouterr().err


def test_a_run_whose_environment_is_no_text_is_refused(tmp_path):
    data = log(tmp_path / "data", "gym/CartPole-v1")
    main(words(data, tmp_path / "run", "--environment", "none"))
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace('environment = ""', "environment = 5"))
    with pytest.raises((RunError, DataError), match="environment"):
        load_run(tmp_path / "run").evaluate(1)


def test_what_is_registered_or_ours_is_taken():
    for name in ("", "gym/CartPole-v1", "minatar/breakout", "atari/Breakout?no_ops=30"):
        assert envs.from_data(name) == name
