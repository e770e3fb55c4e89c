"""DQN Replay logs by the commands, and at any address that fsspec knows."""

import builtins
import os

import fsspec
import pytest

from optimist.cli.data import game_of
from optimist.cli.main import main
from optimist.data import open_dataset
from optimist.data.verify import verify
from optimist.errors import DataError, UsageError
from replay_ring import REPLAY, Ring, assert_same, expected, import_dqn_replay, imported, play


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    made = Ring(tmp_path_factory.mktemp("logs") / "Breakout" / "2", 40)
    play(made, [50, 12, 30, 9, 100, 40, 3, 77, 21, 8], unfinished=9)
    made.finish()
    return made


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def address(ring):
    store = fsspec.filesystem("memory")
    for path in ring.folder.iterdir():
        store.pipe(f"/atari/dqn/Breakout/2/replay_logs/{path.name}", path.read_bytes())
    yield "memory://atari/dqn/Breakout/2"
    store.rm("/atari", recursive=True)


def test_logs_at_an_address(ring, address, tmp_path):
    import_dqn_replay(address, tmp_path / "out")
    assert_same(imported(open_dataset(tmp_path / "out")), expected(ring))
    import_dqn_replay(ring.folder, tmp_path / "local")
    assert contents(tmp_path / "out") == contents(tmp_path / "local")
    assert len(REPLAY.verify(address).problems) == len(REPLAY.verify(ring.folder).problems)
    with pytest.raises(DataError, match="memory://atari/dqn/Pong/1 does not exist"):
        import_dqn_replay("memory://atari/dqn/Pong/1", tmp_path / "other")


def test_without_fsspec_only_addresses_are_refused(ring, tmp_path, monkeypatch):
    original = builtins.__import__

    def without(name, *rest, **options):
        if name.split(".")[0] == "fsspec":
            raise ImportError(name)
        return original(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r'pip install "optimist-rl\[remote\]"'):
        import_dqn_replay("gs://atari-replay-datasets/dqn/Pong/1", tmp_path / "out")
    import_dqn_replay(ring.folder, tmp_path / "out")


def test_the_commands(ring, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    data, logs = str(tmp_path / "Daten 日本"), str(tmp_path / "logs out")
    assert main(["data", "import", "dqn-replay", str(ring.folder.parent), "--out", data]) == 0
    said = capsys.readouterr().out
    assert "environment: atari/Breakout" in said and "padding entries" in said
    assert verify(data) == [] and open_dataset(data).provenance["environment"] == "atari/Breakout"
    words = ["data", "export", "dqn-replay", data, "--out", logs, "--capacity", "50", "--first", "100"]
    assert main(words) == 0
    assert "100 steps in" in capsys.readouterr().out
    assert main(["data", "verify", logs]) == 0
    said = capsys.readouterr().out
    assert "mean clipped return" in said and "no damage found" in said
    assert main(["data", "verify", data]) == 0
    assert main(["data", "info", logs]) == 3
    assert "import them first: optimist data import dqn-replay" in capsys.readouterr().err
    os.truncate(tmp_path / "logs out" / "replay_logs" / "$store$_action_ckpt.1.gz", 30)
    assert main(["data", "verify", logs]) == 3
    captured = capsys.readouterr()
    assert "Compressed file ended" in captured.out and "2 problems" in captured.err  # and its window is a gap
    assert main(["data", "import", "dqn-replay", logs, "--out", data + "2"]) == 3


def test_the_game_is_read_off_the_path_only_where_it_is_sure():
    games = {
        "BattleZone": ["gs://atari-replay-datasets/dqn/BattleZone/1"],
        "Asterix": ["Asterix/run_1-00000-of-00100", "rlu_atari/Asterix_run_1/1.3.0", "Asterix/1"],
        "Pong": ["/data/Pong/3/replay_logs"],
    }
    for game, addresses in games.items():
        assert {game_of(f"/logs/{each}") for each in addresses} == {f"atari/{game}"}
    for other in ("/data/mine", "/data/pong/3", "/Pong", "/logs/Asterix/other", "/Asterix/1/other"):
        assert game_of(other) == ""
