"""HDF5 files in D4RL's layout and in d3rlpy's are read and written."""

import sys

import h5py
import numpy as np
import pytest

from format_logs import SPECS, assert_equal_steps, recorded
from optimist.cli.main import main
from optimist.data import formats, from_arrays, open_dataset
from optimist.errors import DataError, UsageError

FORMAT = formats.find("hdf5")


def arrays(steps: int = 60, **more) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    end = np.arange(steps) % 10 == 9
    return {
        "observations": random.normal(size=(steps, 3)).astype(np.float32),
        "actions": random.uniform(-1, 1, (steps, 2)).astype(np.float32),
        "rewards": random.normal(size=steps).astype(np.float32),
        "terminals": end & (np.arange(steps) % 20 < 10),
        "timeouts": end & (np.arange(steps) % 20 >= 10),
        **more,
    }


def saved(path, content) -> None:
    with h5py.File(path, "w") as file:
        for name, values in content.items():
            file[name] = values


def test_d4rls_layout_is_read_like_from_arrays_and_the_rest_is_said(tmp_path):
    log = arrays()
    saved(tmp_path / "log.hdf5", {**log, "infos/goal": np.zeros(60), "metadata/algorithm": "SAC"})
    summary = FORMAT.read(tmp_path / "log.hdf5", tmp_path / "data")
    lost = log["rewards"][log["timeouts"]].sum()
    assert summary.lines() == [
        "57 steps in 6 episodes",
        f"left out: 3 last steps with an unknown successor, whose rewards sum to {lost:,.6g}",
        "left out: infos, metadata",
    ]
    names = {"timeouts": "truncations"}
    expected = from_arrays(**{names.get(name, name): values for name, values in log.items()})
    data = open_dataset(tmp_path / "data")
    assert_equal_steps(data, expected)
    assert data.spec == expected.spec


@pytest.mark.parametrize("stored", [list, lambda texts: np.array(texts, "S")], ids=["any length", "equal"])
def test_texts_are_read_like_those_of_from_arrays(tmp_path, stored):
    """h5py writes Python's texts with any length, and NumPy's bytes with equal ones."""
    names = ["left", "right", "up"] * 20
    visits = [f"visit {row // 10}" for row in range(60)]
    log = arrays(actions=stored(names), episodes=stored(visits))
    del log["timeouts"]
    saved(tmp_path / "log.hdf5", log)
    assert FORMAT.verify(tmp_path / "log.hdf5").problems == []
    FORMAT.read(tmp_path / "log.hdf5", tmp_path / "data")
    data, expected = open_dataset(tmp_path / "data"), from_arrays(**log | {"actions": names})
    assert data.spec.action_names == ("left", "right", "up")
    assert_equal_steps(data, expected)
    log["episodes"] = stored([f"visit {row // 10 % 3}" for row in range(60)])
    saved(tmp_path / "again.hdf5", log)
    with pytest.raises(DataError, match="episode visit 0 appears again near row 30"):
        FORMAT.read(tmp_path / "again.hdf5", tmp_path / "none")


NEAR = 1e9 + np.random.default_rng(0).normal(size=60)
WRONG = [
    ({"observations": np.where(np.arange(180).reshape(60, 3) == 100, np.inf, 0)}, "first in row 33"),
    ({"terminals": np.full(60, 2)}, "terminals hold other values than true and false"),
    ({"rewards": np.zeros(59)}, "arrays of different lengths"),
    ({"rewards": NEAR}, "rewards are near 1e.09, and float32 holds them in steps of 64"),
]


@pytest.mark.parametrize(("change", "said"), WRONG)
def test_wrong_arrays_are_named_in_one_line(tmp_path, change, said):
    saved(tmp_path / "log.h5", arrays(**change))
    with pytest.raises(DataError, match=said) as refused:
        FORMAT.read(tmp_path / "log.h5", tmp_path / "data")
    assert "\n" not in str(refused.value) and not (tmp_path / "data").exists()


def test_missing_arrays_and_other_files_are_refused(tmp_path, capsys):
    saved(tmp_path / "log.h5", {"observations": np.zeros((3, 2)), "acts": np.zeros(3)})
    (said,) = FORMAT.verify(tmp_path / "log.h5").problems
    assert "holds acts, observations, and lacks actions, rewards, terminals: save them" in said
    (tmp_path / "text.h5").write_text("no")
    assert not FORMAT.detect(tmp_path / "text.h5")
    assert "not a readable HDF5 file" in FORMAT.verify(tmp_path / "text.h5").problems[0]
    saved(tmp_path / "log.h5", arrays())
    with pytest.raises(DataError, match='has no array "timeout": did you mean "timeouts"'):
        FORMAT.read(tmp_path / "log.h5", tmp_path / "data", FORMAT.ReadOptions(drop="timeout"))
    with pytest.raises(UsageError, match="--truncations timeouts"):
        FORMAT.read(tmp_path / "log.h5", tmp_path / "x", FORMAT.ReadOptions(truncations="timeouts"))
    with pytest.raises(UsageError, match="choose d3rlpy or d4rl"):
        FORMAT.WriteOptions(layout="d5rl")


def test_without_h5py_the_command_to_install_it_is_named(tmp_path, monkeypatch):
    saved(tmp_path / "log.h5", arrays())
    monkeypatch.setitem(sys.modules, "h5py", None)
    assert FORMAT.detect(tmp_path / "log.h5")
    with pytest.raises(UsageError, match=r'pip install "optimist-rl\[hdf5\]"'):
        FORMAT.read(tmp_path / "log.h5", tmp_path / "data")
    assert main(["data", "verify", str(tmp_path / "log.h5")]) == 2


def test_d3rlpys_file_holds_every_transition(tmp_path):
    """d3rlpy's loader takes the observation after a step from the next row of its episode."""
    data = recorded(tmp_path / "data", SPECS["images"])
    FORMAT.write(data, tmp_path / "log.h5")
    episodes, timeline, first = data.episodes, data.timeline, 0
    with h5py.File(tmp_path / "log.h5") as file:
        assert file["version"][()].decode() == "2.1"
        assert file["columns"][()].tolist() == [b"observations", b"actions", b"rewards", b"terminated"]
        assert file["num_episodes"][()] == len(episodes)
        for number in range(len(episodes)):
            ends, steps = bool(file[f"terminated_{number}"][()]), int(episodes.lengths[number])
            observations, rewards = file[f"observations_{number}"][()], file[f"rewards_{number}"][()]
            assert ends == episodes.terminal[number]
            assert observations.shape == (steps + (not ends), 1, 6, 5)
            frames = timeline.frames(np.arange(first, first + len(observations)))
            np.testing.assert_array_equal(np.moveaxis(observations, 1, -1), frames)
            assert rewards.shape == file[f"actions_{number}"].shape == (len(observations), 1)
            assert rewards.sum() == pytest.approx(episodes.returns[number], abs=1e-4)
            first += steps + 1
    summary = FORMAT.read(tmp_path / "log.h5", tmp_path / "back")
    assert not summary.counts.left_out.steps and "left_out" not in open_dataset(tmp_path / "back").provenance


def test_the_row_that_d3rlpy_needs_at_a_cut_has_an_action_that_can_be(tmp_path):
    """It had zeros, which no bound need hold, and the file could not be read back."""
    data = from_arrays(
        np.arange(20.0)[:, None],
        np.linspace(32, 2500, 20)[:, None],
        np.ones(20),
        np.zeros(20, bool),
        truncations=np.arange(20) % 5 == 4,
    )
    FORMAT.write(data, tmp_path / "log.h5")
    FORMAT.read(tmp_path / "log.h5", tmp_path / "back")
    assert_equal_steps(open_dataset(tmp_path / "back"), data, but_ends=True)


def test_a_file_of_d3rlpy_is_read_without_our_attributes(tmp_path):
    data = recorded(tmp_path / "data", SPECS["vectors"])
    FORMAT.write(data, tmp_path / "log.h5")
    with h5py.File(tmp_path / "log.h5", "a") as file:
        del file.attrs["optimist"]
    FORMAT.read(tmp_path / "log.h5", tmp_path / "again")
    assert_equal_steps(open_dataset(tmp_path / "again"), data, but_ends=True)
    with h5py.File(tmp_path / "log.h5", "a") as file:
        del file["version"]
        file["version"] = "2.0"
    assert "has version 2.0 of d3rlpy's files" in FORMAT.verify(tmp_path / "log.h5").problems[0]


def test_the_flat_files_of_d3rlpy_1_are_read(tmp_path):
    log = arrays()
    log["episode_terminals"] = log["terminals"] | log.pop("timeouts")
    saved(tmp_path / "old.h5", log)
    FORMAT.read(tmp_path / "old.h5", tmp_path / "data")
    data = open_dataset(tmp_path / "data")
    assert (data.episodes.terminal.sum(), data.episodes.truncated.sum()) == (3, 3)
