"""A run folder belongs to one process and one configuration, and forgets only what it is told to."""

import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from little import add_metrics, played
from optimist.data.disk.files import write_whole
from optimist.errors import RunError, StorageError
from optimist.training.evaluation import EpisodeScore
from optimist.training.storage.checkpoint import save_state
from optimist.training.storage.configuration import fingerprint, toml
from optimist.training.storage.rows import read_episodes, read_metrics, write_episodes
from optimist.training.storage.run_folder import RunFolder, read_config
from patience import PATIENCE

CONFIG = {
    "kind": "offline",
    "seeds": [0, 1],
    "dataset": {"path": "data", "fingerprint": "c0ffee"},
    "spec": {"frame_shape": (10, 10, 4), "action_low": ()},
    "training": {"steps": 100, "batch": 32, "gamma": 0.99},
}


def changed(**training) -> dict:
    return {**CONFIG, "training": {**CONFIG["training"], **training}}


@pytest.fixture
def begun(tmp_path):
    """The folder of a run that has saved something, and is no longer held."""
    with RunFolder(tmp_path / "run", CONFIG) as folder:
        save_state(folder.checkpoints, 10, {"step": np.int32(10)}, folder.fingerprint)
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("name", "what"), [("study.json", "a study"), ("manifest.json", "a dataset"), ("$store$_action", "a log")]
)
def test_a_run_is_not_written_into_a_log_or_a_study(tmp_path, name, what):
    (tmp_path / name).touch()
    with pytest.raises(RunError, match=f"holds {what} .*choose another --out"):
        RunFolder(tmp_path, CONFIG)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        changed(steps=500),
        changed(feed="compressed"),
        changed(memory_gib=1.0),
        changed(checkpoint_seconds=5.0),
        {**CONFIG, "dataset": {"path": "/mnt/data", "fingerprint": "c0ffee"}},  # it only moved
    ],
    ids=["same", "more steps", "feed", "memory", "checkpoints", "moved data"],
)
def test_a_configuration_with_the_same_results_goes_on(begun, config):
    with RunFolder(begun, config):
        assert read_config(begun) == json.loads(json.dumps(config))


@pytest.mark.parametrize(
    ("config", "difference"),
    [
        (changed(batch=64), "training.batch: 32 saved, 64 requested"),
        (changed(steps=99), "training.steps: 100 saved, 99 requested"),
        (changed(n_step=3), "training.n_step: nothing saved, 3 requested"),
        ({**CONFIG, "seeds": [0]}, r"seeds: \[0, 1\] saved, \[0\] requested"),
        (
            {**CONFIG, "dataset": {"path": "data", "fingerprint": "f00"}},
            r"dataset.fingerprint: 'c0ffee' saved, 'f00' requested \(other data, or another part of it\)",
        ),
        (
            {**CONFIG, "dataset": {"path": "data", "fingerprint": "0123456789abcdef" * 4}},
            "'c0ffee' saved, '0123456789ab' requested",  # three runs of two whole hashes filled a screen
        ),
        ({key: CONFIG[key] for key in CONFIG if key != "kind"}, "kind: 'offline' saved, nothing requested"),
    ],
    ids=["value", "fewer steps", "a new field", "seeds", "data", "a hash", "a field gone"],
)
def test_another_configuration_is_refused_with_the_difference(begun, config, difference):
    with pytest.raises(RunError, match=f"holds another run .*{difference}.* --restart"):
        RunFolder(begun, config)
    with RunFolder(begun, CONFIG):  # the refusal changed nothing, and gave the lock back
        pass


def test_many_differences_are_counted_and_settings_come_first(begun):
    other = changed(**{f"field_{number}": number for number in range(30)})
    with pytest.raises(RunError) as refused:
        RunFolder(begun, {**other, "dataset": {"path": "data", "fingerprint": "f00"}})
    told = str(refused.value)
    assert "(training.field_0: nothing saved, 0 requested; " in told and "and 26 more): choose" in told
    assert "fingerprint" not in told


@pytest.mark.parametrize(("saved", "asked"), [(1, 1.0), (1.0, 1)])
def test_a_number_that_is_written_otherwise_is_the_same(tmp_path, saved, asked):
    """The checkpoints have the fingerprint of the configuration as it was written first."""
    with RunFolder(tmp_path / "run", changed(gamma=saved)) as folder:
        save_state(folder.checkpoints, 10, {"step": np.int32(10)}, folder.fingerprint)
    with RunFolder(tmp_path / "run", changed(gamma=asked, steps=500)) as folder:
        found = folder.load_state({"step": np.zeros((), np.int32)})
        assert found and found[0] == 10
    assert fingerprint(read_config(tmp_path / "run")) == fingerprint(changed(gamma=saved))
    assert read_config(tmp_path / "run")["training"]["steps"] == 500


def test_a_run_that_never_saved_anything_binds_nobody(tmp_path):
    with RunFolder(tmp_path, CONFIG):
        pass
    with RunFolder(tmp_path, changed(batch=64)):
        assert read_config(tmp_path)["training"]["batch"] == 64


def test_restart_forgets_the_run_and_nothing_else(begun):
    with RunFolder(begun, CONFIG) as folder:
        add_metrics(folder, [{"step": 1}])
        folder.add_episodes([EpisodeScore(1, 0, 0, 1.0, 2)])
        folder.finish()
        save_state(begun / "diverged", 10, {"step": 10})
    (begun / "notes.txt").write_text("mine")
    with RunFolder(begun, changed(batch=64), restart=True):
        left = {path.name for path in begun.iterdir()} - {".lock", ".holder"}
        assert left == {"config.toml", "notes.txt"}


def test_restart_mends_a_damaged_configuration(begun):
    (begun / "config.toml").write_bytes(b"\xff\xfe not toml")
    with pytest.raises(RunError, match="config.toml cannot be read .*--restart"):
        RunFolder(begun, CONFIG)
    with RunFolder(begun, CONFIG, restart=True):
        assert read_config(begun)["kind"] == "offline"


def test_restart_removes_a_link_and_never_what_it_points_to(begun, tmp_path):
    (begun / "checkpoints").rename(tmp_path / "elsewhere")
    (begun / "checkpoints").symlink_to(tmp_path / "elsewhere")
    with RunFolder(begun, CONFIG, restart=True) as folder:
        assert folder.load_state({"step": np.int32(0)}) is None
        assert not (begun / "checkpoints").is_symlink()
        assert len(list((tmp_path / "elsewhere").iterdir())) == 1


def test_a_removal_that_fails_is_an_error_that_names_the_path(begun, monkeypatch):
    (begun / "metrics.jsonl").mkdir()  # a folder in place of a file cannot be unlinked
    with pytest.raises(StorageError, match="cannot remove .*/metrics.jsonl: Is a directory"):
        RunFolder(begun, CONFIG, restart=True)
    (begun / "tensorboard").mkdir()

    def refused(*_, **__):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "rmdir", refused)
    with pytest.raises(StorageError, match="cannot remove .*/tensorboard: Operation not permitted"):
        RunFolder(begun, CONFIG, restart=True)


def saved(path, config, step=10) -> dict:
    """A run folder with one checkpoint; the state that it holds."""
    state = {"w": np.full(3, step, np.float32)}
    with RunFolder(path, config) as folder:
        folder.save_state(step, state)
    return state


@pytest.mark.parametrize(
    ("config", "goes_on"),
    [
        (CONFIG, True),
        (changed(steps=500, checkpoint_seconds=1.0, feed="memory", memory_gib=2), True),
        ({**CONFIG, "dataset": {"path": "/mnt/data", "fingerprint": "c0ffee"}}, True),
        (changed(batch=64), False),
        (changed(n_step=3), False),
        ({**CONFIG, "seeds": [0]}, False),
        ({**CONFIG, "dataset": {"path": "data", "fingerprint": "f00"}}, False),
    ],
)
def test_without_config_toml_the_checkpoints_say_what_they_were_made_with(tmp_path, config, goes_on):
    state = saved(tmp_path, CONFIG)
    (tmp_path / "config.toml").unlink()
    if goes_on:
        with RunFolder(tmp_path, config) as folder:
            step, found = folder.load_state(state)
            assert step == 10 and (np.asarray(found["w"]) == state["w"]).all()
        return
    for _ in range(2):  # the refusal leaves no config.toml behind that would agree next time
        with pytest.raises(RunError, match="has no config.toml.*--restart"):
            RunFolder(tmp_path, config)
    with RunFolder(tmp_path, config, restart=True) as folder:
        assert folder.load_state(state) is None


def test_a_checkpoint_of_another_run_is_refused_and_named(tmp_path):
    state = saved(tmp_path / "other", changed(batch=64), step=20)
    saved(tmp_path / "run", CONFIG)
    [foreign] = (tmp_path / "other" / "checkpoints").iterdir()
    shutil.copy(foreign, tmp_path / "run" / "checkpoints")
    refused = pytest.raises(RunError, match=f"{foreign.name} was made with another configuration")
    with RunFolder(tmp_path / "run", CONFIG) as folder, refused:
        folder.load_state(state)


def test_a_checkpoint_that_does_not_say_its_run_is_refused(begun):
    with RunFolder(begun, CONFIG) as folder:
        save_state(folder.checkpoints, 20, {"step": np.int32(20)})
        with pytest.raises(RunError, match="made with another configuration: remove it"):
            folder.load_state({"step": np.int32(0)})
    (begun / "config.toml").unlink()
    with pytest.raises(RunError, match="its checkpoints have another fingerprint"):
        RunFolder(begun, CONFIG)


def test_fewer_steps_than_were_taken_are_refused_without_config_toml_too(tmp_path):
    state = saved(tmp_path, CONFIG, step=100)
    (tmp_path / "config.toml").unlink()
    refused = pytest.raises(RunError, match="holds 100 steps, more than the 99 requested")
    with RunFolder(tmp_path, changed(steps=99)) as folder, refused:
        folder.load_state(state)


def test_the_fingerprint_is_that_of_the_configuration_read_back(tmp_path):
    with RunFolder(tmp_path, changed(gamma=np.float32(0.9), clip_rewards=1, none=())) as folder:
        assert folder.fingerprint == fingerprint(read_config(tmp_path))


HOLD = """
import sys
from optimist.training.storage.run_folder import RunFolder
folder = RunFolder(sys.argv[1], {})
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_at_once_and_a_dead_ones_lock_is_taken_over(tmp_path, caplog):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], **pipes) as holder:
        assert holder.stdout.readline() == "held\n"
        begin = time.monotonic()
        with pytest.raises(RunError, match=f"is in use by process {holder.pid} on .*: wait for it"):
            RunFolder(tmp_path, {})
        assert time.monotonic() - begin < 10  # a busy machine is slow; one that waited would wait for ever
        holder.send_signal(signal.SIGKILL)
    with RunFolder(tmp_path, {}):
        assert f"taking over {tmp_path} from process {holder.pid}" in caplog.text
        with pytest.raises(RunError, match=f"process {os.getpid()} "):
            RunFolder(tmp_path, {})
    caplog.clear()
    with RunFolder(tmp_path, {}):
        assert not caplog.records


def test_a_damaged_name_of_a_dead_holder_is_told_in_one_line(tmp_path, caplog):
    (tmp_path / ".holder").write_bytes(b"\xff two\nlines")
    with RunFolder(tmp_path, {}):
        assert f"taking over {tmp_path} from" in caplog.messages[0] and "\n" not in caplog.messages[0]


def test_a_linked_name_of_a_holder_is_neither_read_nor_written(tmp_path, caplog):
    (tmp_path / "theirs").write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".holder").symlink_to(tmp_path / "theirs")
    with RunFolder(tmp_path / "run", {}):
        assert "precious" not in caplog.text
    assert (tmp_path / "theirs").read_text() == "precious"


def test_a_refusal_gives_the_lock_back_while_the_error_is_still_looked_at(begun):
    """A notebook keeps the last exception, and with it everything it refers to."""
    with pytest.raises(RunError) as caught:
        RunFolder(begun, changed(batch=1))
    with RunFolder(begun, CONFIG):
        assert caught.value


DROP = """
import os, sys
import optimist.training.offline, optimist.training.run, optimist.envs.minatar  # while we may read all
import optimist.studies.demo, optimist.training.loggers.jsonl, optimist.training.loggers.tensorboard
from optimist.cli.main import main
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
for out in sys.argv[2:]:
    print(main(["train", "dqn", sys.argv[1], "--environment", "none", "--steps", "5", "--out", out]))
"""


def test_a_read_only_folder_is_told_in_one_line():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        played(folder / "data", rows=5)
        (folder / "shelf").mkdir()
        (folder / "shelf").chmod(stat.S_IRUSR | stat.S_IXUSR | stat.S_IROTH | stat.S_IXOTH)
        folder.chmod(0o755)
        outs = [folder / "shelf", folder / "shelf" / "run"]
        words = [sys.executable, "-c", DROP, *map(str, (folder / "data", *outs))]
        found = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert found.stdout.split() == [str(StorageError.exit_code)] * 2, found.stderr
    for out, complaint in zip(outs, found.stderr.splitlines(), strict=True):
        assert complaint.startswith("optimist: cannot ")
        assert str(out) in complaint and "Permission denied" in complaint


def test_rewinding_drops_what_came_after_the_checkpoint(tmp_path):
    with RunFolder(tmp_path, CONFIG) as folder:
        for step in (10, 20, 30):
            add_metrics(folder, [{"step": step, "seed": seed, "loss": 0.5} for seed in (0, 1)])
            folder.add_episodes([EpisodeScore(step, seed, 0, 1.5, 7) for seed in (0, 1)])
        folder.finish()
        folder.rewind(20)
        assert not (tmp_path / "DONE").exists()
        rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
        assert [(row["step"], row["seed"]) for row in rows] == [(10, 0), (10, 1), (20, 0), (20, 1)]
        assert [row[:2] for row in read_episodes(tmp_path)] == [(10, 0), (10, 1), (20, 0), (20, 1)]


@pytest.mark.parametrize("cut", [1, 8, 22, 37])
def test_a_line_cut_off_by_a_kill_is_dropped_wherever_it_was_cut(tmp_path, cut):
    with RunFolder(tmp_path, CONFIG) as folder:
        row, score = {"step": 10, "seed": 0, "loss": 0.25}, EpisodeScore(10, 0, 0, 1.5, 7)
        for again in (False, True):
            add_metrics(folder, [row])
            folder.add_episodes([score])
            if not again:
                for name in ("metrics.jsonl", "episodes.csv"):
                    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-cut])
                folder.rewind(10)
        assert read_metrics(tmp_path) == [row] and read_episodes(tmp_path) == [score]


def test_episodes_come_back_as_they_were_written(tmp_path):
    rows = [EpisodeScore(5, 3, 0, -1.25, 10), EpisodeScore(5, 3, 1, 1e-7, 10_000)]
    write_episodes(tmp_path / "episodes.csv", rows)
    assert (tmp_path / "episodes.csv").read_text().splitlines()[0] == "step,seed,episode,return,length"
    assert read_episodes(tmp_path) == rows
    assert read_episodes(tmp_path / "elsewhere") == []


def test_any_plain_value_survives_the_configuration_file():
    numbers, texts = [0, -3, 1e-5, 2.5, 10**12, True], ["plain", 'a "quoted" \\ one\n', "Übung 🎲 日本", ""]
    for value in (*numbers, *texts, [], [1, 2], ["a", "b"]):
        table = {"top": value, "inner": {"value": value, "deeper": {"value": value}}}
        assert tomllib.loads(toml(table)) == table


def test_a_folder_without_configuration_is_no_run(tmp_path):
    with pytest.raises(RunError, match="is not a run folder"):
        read_config(tmp_path)


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    write_whole(tmp_path / "file", b"")
    with pytest.raises(StorageError, match="cannot make"):
        RunFolder(tmp_path / "file", CONFIG)
