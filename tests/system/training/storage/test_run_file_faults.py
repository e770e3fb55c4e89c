"""Faults of machines and hostile links meet the files of a run: one line that names the file."""

import os
import subprocess
import sys

import pytest

from little import add_metrics, largest_file
from optimist.cli.main import main
from optimist.errors import RunError, StorageError
from optimist.training.evaluation import EpisodeScore
from optimist.training.storage.rows import read_episodes
from optimist.training.storage.run_folder import RunFolder, read_alarms, read_config

EPISODES = [EpisodeScore(10, 0, number, 1.5, 7) for number in range(20)]
BROKEN = "/proc/self/mem"  # it opens, and reading it is an input/output error


def add_rows(folder: RunFolder, name: str) -> None:
    if name == "episodes.csv":
        folder.add_episodes(EPISODES)
    else:
        add_metrics(folder, [{"step": 10, "seed": 0, "loss_q": 0.5, "note": "x" * 300}])


@pytest.mark.parametrize("name", ["metrics.jsonl", "episodes.csv"])
def test_rows_on_a_full_disk_say_the_bytes_needed_and_free(tmp_path, name):
    said = rf"cannot write .*{name}: .*needed \d+ bytes, \d+ are free"
    with RunFolder(tmp_path, {}) as folder, largest_file(200), pytest.raises(StorageError, match=said):
        add_rows(folder, name)


@pytest.mark.parametrize("name", ["metrics.jsonl", "episodes.csv"])
def test_rows_are_not_written_through_a_link(tmp_path, name):
    run, victim = tmp_path / "run", tmp_path / "victim"
    victim.write_text("mine\n")
    with RunFolder(run, {}) as folder:
        (run / name).symlink_to(victim)
        with pytest.raises(RunError, match=f"{name} is a link"):
            add_rows(folder, name)
    assert victim.read_text() == "mine\n"


@pytest.mark.parametrize(
    ("name", "episode_columns"),
    [("episodes.csv", read_episodes), ("config.toml", read_config), ("alarms.json", read_alarms)],
)
def test_a_read_error_names_its_file(tmp_path, name, episode_columns):
    (tmp_path / name).symlink_to(BROKEN)
    with pytest.raises(OSError, match="Input/output error") as caught:
        episode_columns(tmp_path)
    assert caught.value.filename == str(tmp_path / name)


def test_the_command_line_names_it_too(tmp_path, capsys):
    (tmp_path / "config.toml").symlink_to(BROKEN)
    assert main(["report", str(tmp_path)]) == StorageError.exit_code
    assert capsys.readouterr().err == f"optimist: {tmp_path}/config.toml: Input/output error\n"


def test_a_message_is_one_line_whatever_the_path(tmp_path, capfd):
    for name in (b"not-\xff-utf8", b"two\nlines", b"clear\x1b[2J"):
        assert main(["report", os.fsdecode(os.fsencode(tmp_path) + b"/" + name)]) != 0
        said = capfd.readouterr().err
        assert said.count("\n") == 1 and "\x1b" not in said and "Traceback" not in said


def test_a_path_that_is_not_utf_8_or_holds_control_letters_is_a_path(tmp_path):
    for name in (b"not-\xff-utf8", b"two\nlines", b"bell\x07"):
        run = tmp_path / os.fsdecode(name)
        with RunFolder(run, {}) as folder:
            folder.add_episodes(EPISODES)
        assert read_episodes(run) == EPISODES


THREADS_OF_A_READING = """
import os, sys
from pathlib import Path
from optimist.training.storage.rows import episode_columns
threads = lambda: set(os.listdir("/proc/self/task"))
before, found = threads(), episode_columns(Path(sys.argv[1]))
print(len(found.step), len(threads() - before) <= 1)  # the one that watches for signals
"""


def test_episodes_are_read_without_other_threads(tmp_path):
    """One that drops the file's bytes while the interpreter closes aborts it, and the exit code is lost."""
    with RunFolder(tmp_path, {}) as folder:
        folder.add_episodes(EPISODES)
    words = [sys.executable, "-c", THREADS_OF_A_READING, str(tmp_path / "episodes.csv")]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "20 True\n"
