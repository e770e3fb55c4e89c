"""Every format that can hold a log gives it back: written, verified, detected and read, it is the same."""

import json

import numpy as np
import pytest

from format_logs import SPECS, assert_equal_steps, recorded, the_log_in, there_and_back
from optimist.cli.main import main
from optimist.data import Spec, formats, from_arrays, open_dataset
from optimist.data.formats._incoming import signed
from optimist.data.intake import Intake
from optimist.data.look import action_columns, feature_names
from optimist.errors import DataError

WRITTEN = [name for name in formats.available() if name != "rlds"]  # which can only be read
LAYOUTS = [(name, {}) for name in WRITTEN] + [("hdf5", {"layout": "d4rl"})]
CLIPPED = {"dqn-replay"}  # a format of its own tests: it holds clipped rewards and pads every episode


SMALL = {f"{dtype} {shape}": Spec(shape, dtype, actions=3) for dtype in ("uint8", "bool", "float32")
         for shape in ((5,), (9, 8, 3))}  # fmt: skip


@pytest.mark.parametrize("kind", [*SPECS, *SMALL])
@pytest.mark.parametrize(("name", "options"), LAYOUTS, ids=lambda value: str(value))
def test_a_log_comes_back_as_it_was(tmp_path, name, options, kind):
    data = recorded(tmp_path / "data", {**SPECS, **SMALL}[kind])
    if name in CLIPPED:
        found = formats.find(name)
        if kind == "images":
            assert f"{len(data)} steps" in found.write(data, tmp_path / "out").lines()[0]
            return
        with pytest.raises(DataError, match="they hold HxWx1 uint8 frames and discrete actions") as refused:
            found.write(data, tmp_path / "out")
        assert "\n" not in str(refused.value)
        return
    again, summary, _ = there_and_back(data, name, tmp_path, **options)
    assert f"{len(data)} steps" in summary.lines()[0]
    assert again.spec == data.spec
    assert_equal_steps(again, data, but_ends=name == "hdf5" and not options)


@pytest.mark.parametrize(("name", "options"), LAYOUTS, ids=lambda value: str(value))
def test_the_names_of_columns_come_back(tmp_path, name, options):
    if name in CLIPPED:
        return
    header, row = "inside,outside,heat,fan,reward,terminal,episode", "20.5,{0},0.25,{0},1.0,0,{0}"
    table = "\n".join([header, *(row.format(number // 5) for number in range(20))])
    (tmp_path / "heater.csv").write_text(table)
    parquet = formats.find("parquet")
    columns = parquet.ReadOptions(observations="inside,outside", actions="heat,fan")
    parquet.read(tmp_path / "heater.csv", tmp_path / "data", columns)
    again, _, _ = there_and_back(open_dataset(tmp_path / "data"), name, tmp_path, **options)
    assert feature_names(again) == ["inside", "outside"]
    assert action_columns(again) == ["heat", "fan"]


@pytest.mark.parametrize("names", [3, {"features": [1]}, {"modules": ["os"]}])
def test_damaged_names_of_columns_are_refused(names):
    spec = SPECS["vectors"].as_json()
    with pytest.raises(DataError, match="says what it holds in a damaged way .*export it again"):
        signed(json.dumps({"spec": spec, "environment": "", "names": names}), "log.npz")


@pytest.mark.parametrize("name", ["npz", "parquet", "hdf5", "minari"])
def test_a_view_is_written_with_its_cuts_as_truncations(tmp_path, name):
    data = recorded(tmp_path / "data", SPECS["vectors"])
    part = data.fraction(0.5, seed=1).first(40)
    again, _, _ = there_and_back(part, name, tmp_path)
    assert len(again) == 40
    assert (again.episodes.lengths == part.episodes.lengths).all()
    assert again.episodes.returns.tolist() == part.episodes.returns.tolist()


@pytest.mark.parametrize("name", ["npz", "parquet", "hdf5", "minari"])
def test_the_commands_convert_there_and_back_also_after_an_interruption(tmp_path, capsys, monkeypatch, name):
    recorded(tmp_path / "data", SPECS["vectors"])
    export = ["data", "export", name, str(tmp_path / "data"), "--out", str(tmp_path / "out")]
    assert main(export) == 0
    written = the_log_in(tmp_path / "out")
    assert main(["data", "verify", str(written)]) == 0
    words = ["data", "import", str(written), "--out", str(tmp_path / "again")]  # the format is detected

    def killed(intake, *_):
        raise SystemExit(9)  # and nothing is tidied up, as after a kill

    with monkeypatch.context() as patch:
        patch.setattr(Intake, "close", killed)
        patch.setattr(Intake, "cancel", lambda intake: intake._lock.release())
        with pytest.raises(SystemExit):
            main(words)
    assert main(["data", "info", str(tmp_path / "again")]) == 3
    assert main(words) == 3
    assert "import again with --restart" in capsys.readouterr().err
    capsys.readouterr()
    assert main([*words, "--restart"]) == 0
    assert "120 steps in" in capsys.readouterr().out and len(open_dataset(tmp_path / "again")) == 120
    assert main(words) == 3
    assert "holds a dataset already; choose a new folder" in capsys.readouterr().err
    assert main(export) == 3
    assert "exists already; export" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "options"),
    [("npz", {}), ("parquet", {}), ("hdf5", {"layout": "d4rl"}), ("hdf5", {}), ("minari", {})],
)
@pytest.mark.parametrize(
    ("names", "environment"),
    [(("left", "up", "right"), "gym/CartPole-v1"), ((7, 3, 2_000_000), "atari/Pong?no_ops=30")],
)
def test_all_that_a_log_says_is_kept_or_said_to_be_lost(tmp_path, name, options, names, environment):
    random, count = np.random.default_rng(0), 50
    actions, allowed = random.integers(0, 3, count), random.random((count, 3)) < 0.5
    allowed[np.arange(count), actions] = True
    data = from_arrays(
        random.integers(0, 256, (count, 3, 9, 8)).astype(np.uint8),
        actions if type(names[0]) is str else np.array(names, object)[actions],
        random.normal(size=count),
        np.arange(count) % 10 == 9,
        truncations=False,
        action_names=names,
        probabilities=random.uniform(0.1, 1, count),
        allowed_actions=allowed,
        provenance={"environment": environment},
    )
    assert data.spec.channels_first
    again, summary, read = there_and_back(data, name, tmp_path, **options)
    assert again.spec == data.spec and again.provenance["format"] == name
    assert read.environment == again.provenance["environment"] == environment
    assert_equal_steps(again, data, but_ends=name == "hdf5" and not options)
    lost = {"minari": "probabilities", "hdf5": "probabilities and allowed actions"}
    if name in lost and not options:
        assert f"note: left out: {lost[name]}" in summary.lines()
        assert "note: actions are numbers from 0 on, in the order of their names" in summary.lines()
    else:
        np.testing.assert_array_equal(again.timeline.probability, data.timeline.probability)
    if name != "hdf5" or options:
        np.testing.assert_array_equal(np.asarray(again.timeline.allowed), allowed)
