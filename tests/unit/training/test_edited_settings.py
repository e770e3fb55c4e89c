"""Settings of a run that were edited by hand, or that a stranger wrote, are answered in one line."""

import copy

import pytest

from little import played
from optimist.data import Dataset
from optimist.errors import RunError
from optimist.training.offline import OfflineTraining
from optimist.training.resolve import resolve_training
from optimist.training.run import load_run
from optimist.training.storage.configuration import changes, toml
from optimist.training.storage.run_folder import read_config


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that has just begun."""
    folder = tmp_path_factory.mktemp("edited")
    data = Dataset.open(played(folder / "log", game="gym/CartPole-v1", rows=5, lanes=2))
    agent, training = resolve_training(data.spec, "dqn", recipe="small")
    OfflineTraining(agent, data, training, out=folder / "run", environment="").prepare().folder.release()
    return folder / "run"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("seeds",), ["first"]),
        (("seeds",), [2**63]),
        (("spec",), ["x"]),
        (("agent", "optimizer"), ["x"]),
        (("agent", "initializer"), 0.5),
        (("agent", "network"), 3),
        (("agent", "network", "torso"), ["mlp"]),
    ],
)
def test_a_value_of_a_wrong_kind_is_one_line(place, value, run, tmp_path):
    config = copy.deepcopy(read_config(run))
    inside = config
    for name in place[:-1]:
        inside = inside[name]
    assert place[-1] in inside
    inside[place[-1]] = value
    (tmp_path / "config.toml").write_text(toml(config))
    with pytest.raises(RunError, match="config.toml is not the configuration of a run") as problem:
        load_run(tmp_path)
    assert "\n" not in str(problem.value)


def test_it_is_a_difference_when_the_run_continues(run):
    before = read_config(run)
    for name in ("steps", "on_divergence"):
        for value in ("many", 1.5, [100]):
            edited = {**before, "training": {**before["training"], name: value}}
            [difference] = changes(edited, before)
            assert difference.startswith(f"training.{name}: {value!r} saved")
