"""The folder of formats is the registry: all formats have the same functions, which the commands use."""

import dataclasses
import zipfile
from typing import get_type_hints

import numpy as np
import pytest

from little import pixels, vectors
from optimist.cli.main import main
from optimist.data import formats, open_dataset
from optimist.errors import DataError, UsageError


@pytest.mark.parametrize("name", formats.available())
def test_every_format_offers_the_whole_contract(name):
    found = formats.find(name)
    options_of = [found.ReadOptions, *([] if name == "rlds" else [found.WriteOptions])]
    assert callable(found.detect) and found.open.__doc__
    for options in options_of:
        assert dataclasses.is_dataclass(options) and options.__dataclass_params__.frozen
        hints = get_type_hints(options, include_extras=True)
        assert all(hints[field.name].__metadata__[0] for field in dataclasses.fields(options))
        options()  # every option has a default
    assert found.source.__doc__.partition("\n")[0].endswith(".")  # help shows it


def test_names_have_dashes_and_close_ones_are_suggested():
    assert formats.available() == ["dqn-replay", "hdf5", "minari", "npz", "parquet", "rlds"]
    assert formats.find("dqn_replay").name == "dqn-replay"
    with pytest.raises(UsageError, match='there is no format "dqn-reply": did you mean "dqn-replay"?'):
        formats.find("dqn-reply")
    with pytest.raises(UsageError, match='there is no format "CSV": the format parquet reads such files too'):
        formats.find("CSV")


def test_a_log_in_no_known_format_is_told_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"log.csv does not exist; check its spelling"):
        formats.detect(tmp_path / "log.csv")
    (tmp_path / "log.json").write_text("{}")
    with pytest.raises(DataError, match=r"none of the known formats .* or convert it to a .csv or .parquet"):
        formats.detect(tmp_path / "log.json")


def test_a_folder_of_logs_is_told_to_name_one(tmp_path):
    npz = formats.find("npz")
    npz.write(pixels(tmp_path / "data", lanes=1), tmp_path / "export")
    with pytest.raises(DataError, match=r"export is a folder: name a file in it, such as .*/export/log.npz$"):
        formats.detect(tmp_path / "export")
    (tmp_path / "export" / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="none of the known formats"):
        formats.detect(tmp_path / "export")


def test_a_recording_of_ours_is_none_of_the_formats(tmp_path):
    pixels(tmp_path / "data", lanes=1)
    assert formats.detected(tmp_path / "data") is None
    with pytest.raises(DataError, match=r"none of the known formats \(dqn-replay, hdf5, minari, npz"):
        formats.detect(tmp_path / "data")


def test_arrays_of_ones_own_are_imported_without_naming_the_format(tmp_path, capsys):
    data = vectors(50)
    log = tmp_path / "mine.npz"
    step = data.batch(40)
    np.savez(log, observations=step.observation, actions=step.action, rewards=step.reward,
             terminals=np.arange(40) % 10 == 9)  # fmt: skip
    assert main(["data", "import", str(log), "--out", str(tmp_path / "out")]) == 3
    assert "terminals do not show where time limits ended episodes" in capsys.readouterr().err
    assert main(["data", "import", str(log), "--out", str(tmp_path / "out"), "--truncations", "no"]) == 0
    assert f"40 steps in 4 episodes: {tmp_path / 'out'}" in capsys.readouterr().out
    assert len(open_dataset(tmp_path / "out")) == 40
    assert main(["data", "verify", str(log)]) == 0
    assert "(40, 4)" in capsys.readouterr().out
    assert main(["data", "import", str(log), "--out", str(tmp_path / "out")]) == 3


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_in_fortran_order_as_a_data_frame_gives_them_are_the_same_log(tmp_path, save):
    observations = np.random.default_rng(0).normal(size=(5_000, 3)).astype("float32")
    rest = {
        "actions": np.arange(5_000) % 3,
        "rewards": np.arange(5_000.0),
        "terminals": np.arange(5_000) % 9 == 8,
    }
    for name, turn in (("rows", np.ascontiguousarray), ("columns", np.asfortranarray)):
        save(tmp_path / f"{name}.npz", observations=turn(observations), **rest)
        words = ["data", "import", str(tmp_path / f"{name}.npz"), "--out", str(tmp_path / name)]
        assert main([*words, "--truncations", "no"]) == 0
    by_rows, by_columns = (open_dataset(tmp_path / name) for name in ("rows", "columns"))
    assert by_columns.fingerprint == by_rows.fingerprint
    np.testing.assert_array_equal(by_columns.observation(1_234), observations[1_234])


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"observation": np.zeros((3, 2))}, 'holds an array "observation": did you mean "observations"'),
        ({"observations": np.zeros((3, 2))}, "holds observations, and lacks actions, rewards, terminals"),
        ({"observations": np.array([{}, {}, {}])}, "is not a readable .npz file"),
    ],
)
def test_other_npz_files_are_refused_in_one_line(tmp_path, arrays, said):
    np.savez(tmp_path / "log.npz", **arrays)
    with pytest.raises(DataError, match=said) as refused:
        formats.find("npz").read(tmp_path / "log.npz", tmp_path / "out")
    assert "\n" not in str(refused.value)
    assert formats.find("npz").verify(tmp_path / "log.npz").problems == [str(refused.value)]


def test_an_npz_file_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    np.savez(tmp_path / "log.npz", observations=np.zeros((3, 2)))

    def refused(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(zipfile, "ZipFile", refused)
    with pytest.raises(DataError, match="log.npz may not be read: Permission denied; change its rights"):
        formats.find("npz").read(tmp_path / "log.npz", tmp_path / "data")


OWN = """
from dataclasses import dataclass
from typing import Annotated

from optimist.data.formats import npz


@dataclass(frozen=True)
class Options:
    actions: Annotated[int, "how many actions there are"] = 7


class Mine:
    "A format of one's own."

    ReadOptions = WriteOptions = Options
    detect = staticmethod(lambda address: str(address).endswith(".mine"))
    write = staticmethod(npz.write)

    @staticmethod
    def open(address, options):
        return npz.open(address, npz.ReadOptions(actions_count=options.actions))
"""


def test_a_format_of_ones_own_is_named_by_its_address(tmp_path, capsys):
    (tmp_path / "own.py").write_text(OWN)
    name, npz = f"{tmp_path / 'own.py'}:Mine", formats.find("npz")
    npz.write(vectors(50), tmp_path / "log.npz")
    (tmp_path / "log.npz").rename(tmp_path / "log.mine")
    words = ["data", "import", name, str(tmp_path / "log.mine"), "--out", str(tmp_path / "out")]
    assert main([*words, "--actions", "5"]) == 0
    assert open_dataset(tmp_path / "out").spec.actions == 5
    assert main(["data", "verify", str(tmp_path / "log.mine")]) == 3  # nothing says that it is of this format
    assert formats.find(name).verify(tmp_path / "log.mine").problems == []
    assert main(["data", "import", f"{tmp_path / 'own.py'}:Yours", *words[3:]]) == 2
    assert 'has no "Yours": known: ' in capsys.readouterr().err


@pytest.mark.parametrize("name", ["npz", "hdf5"])
def test_the_folder_of_an_export_is_refused_with_the_name_of_the_file(tmp_path, capsys, name):
    """The export named the folder, and the import of it said "Is a directory", or that a read failed."""
    vectors(20).save(tmp_path / "data")
    assert main(["data", "export", name, str(tmp_path / "data"), "--out", str(tmp_path / "out")]) == 0
    (file,) = (tmp_path / "out").iterdir()
    assert main(["data", "import", name, str(tmp_path / "out"), "--out", str(tmp_path / "back")]) == 3
    assert f"{tmp_path / 'out'} is a folder: name a file, such as {file}" in capsys.readouterr().err
    assert main(["data", "import", name, str(file), "--out", str(tmp_path / "back")]) == 0
