"""A killed import continues and its result has the same bytes; logs may be at any fsspec address."""

import builtins
import os
import subprocess
import sys

import fsspec
import numpy as np
import pytest

from optimist.cli.data import game_of
from optimist.cli.main import main
from optimist.data import open_dataset
from optimist.data.disk import shard
from optimist.data.disk.files import write_whole
from optimist.data.formats.dqn_replay import verify as verify_dqn_replay
from optimist.data.verify import verify
from optimist.errors import DataError, StorageError, UsageError
from replay_ring import Ring, assert_same, expected, import_dqn_replay, imported, play

KILLED = """
import os, random, signal, sys
from optimist.data.formats.dqn_replay import ReadOptions, files, read

logs, out, kills, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
real = {"replace": os.replace, "fsync": os.fsync}
fill = files.ArrayFile.fill

def attempt(moments):
    "Import, and die at one of the moments at which a file is read, written, synced or renamed."
    left = moments

    def count(work, *arguments):
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        result = work(*arguments)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    os.replace = lambda *a: count(real["replace"], *a)
    os.fsync = lambda *a: count(lambda d: None, *a)
    files.ArrayFile.fill = lambda *a: count(fill, *a)
    read(logs, out, ReadOptions(shard_steps=13))

random.seed(seed)
died = 0
while True:
    child = os.fork()
    if child == 0:
        attempt(random.randint(100, 400) if died < kills else 10**9)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        died += 1
    else:
        assert status == 0, status
        break
print(died)
"""


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    made = Ring(tmp_path_factory.mktemp("logs") / "Breakout" / "2", 40)
    play(made, [50, 12, 30, 9, 100, 40, 3, 77, 21, 8], unfinished=9)
    made.finish()
    return made


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("seed", range(3))
def test_kill_9_at_random_moments_then_the_same_bytes(ring, tmp_path, seed):
    words = [str(ring.folder), str(tmp_path / "killed"), "20", str(seed)]
    found = subprocess.run(
        [sys.executable, "-c", KILLED, *words], capture_output=True, text=True, timeout=200
    )
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) >= 7
    import_dqn_replay(ring.folder, tmp_path / "straight", shard_steps=13)
    assert contents(tmp_path / "killed") == contents(tmp_path / "straight")


def test_a_full_disk_is_said_at_once_and_the_import_goes_on_later(ring, tmp_path, monkeypatch):
    written = []

    def refusing(path, content):
        written.append(path)
        if len(written) > 9:
            raise StorageError(f"cannot write {path}: no room")
        return write_whole(path, content)

    monkeypatch.setattr(shard, "write_whole", refusing)
    with pytest.raises(StorageError, match="no room"):
        import_dqn_replay(ring.folder, tmp_path / "out", shard_steps=4)
    assert len(written) < 30
    monkeypatch.undo()
    for name in ("out", "straight"):
        import_dqn_replay(ring.folder, tmp_path / name, shard_steps=4)
    assert contents(tmp_path / "out") == contents(tmp_path / "straight")


def test_a_finished_import_reads_no_frame_again(ring, tmp_path, monkeypatch):
    first = import_dqn_replay(ring.folder, tmp_path / "out")
    before = contents(tmp_path / "out")
    seen = []
    assert import_dqn_replay(ring.folder, tmp_path / "out", progress=lambda *c: seen.append(c)) == first
    assert not seen and contents(tmp_path / "out") == before


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
    assert len(verify_dqn_replay(address).problems) == len(verify_dqn_replay(ring.folder).problems)
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
    assert "100 steps in 3 dumps" in capsys.readouterr().out
    assert main(["data", "verify", logs]) == 0
    said = capsys.readouterr().out
    assert "mean clipped return" in said and "no damage found" in said
    assert main(["data", "verify", data]) == 0
    assert main(["data", "info", logs]) == 3
    assert "import them first: optimist data import dqn-replay" in capsys.readouterr().err
    os.truncate(tmp_path / "logs out" / "replay_logs" / "$store$_action_ckpt.1.gz", 30)
    assert main(["data", "verify", logs]) == 3
    captured = capsys.readouterr()
    assert "is cut short" in captured.out and "2 problems" in captured.err  # and its window is a gap
    assert main(["data", "import", "dqn-replay", logs, "--out", data + "2"]) == 3


def test_the_game_is_read_off_the_path_only_where_it_is_sure():
    assert game_of("gs://atari-replay-datasets/dqn/BattleZone/1") == "atari/BattleZone"
    assert game_of("/data/Pong/3/replay_logs") == "atari/Pong"
    assert game_of("/data/mine") == game_of("/data/pong/3") == game_of("/Pong") == ""


def test_memory_does_not_grow_with_the_window(tmp_path):
    """A window of 60 MiB in shards of 3 MiB takes the memory of a few shards."""
    ring = Ring(tmp_path / "run", 9000, (84, 84))
    random = np.random.default_rng(0)
    frames = random.integers(1, 256, (16, 84, 84)).astype(np.uint8)
    for step in range(9000):
        ring.add(frames[step % 16], step % 4, 0.0, int(step % 900 == 899))
    code = (
        "import resource, sys\n"
        "from optimist.data.formats.dqn_replay import ReadOptions, read\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "read(sys.argv[1], sys.argv[2], ReadOptions(shard_steps=400))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    words = [sys.executable, "-c", code, str(ring.folder), str(tmp_path / "out")]
    found = subprocess.run(words, capture_output=True, text=True, check=True)
    assert int(found.stdout) / 1024 < 45
