"""A shard that is cut short while it is used is one line that names it, and never a silent end by SIGBUS."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from little import PIXELS, random_play
from optimist.data import Dataset, Recorder, Spec
from optimist.errors import DataError
from patience import PATIENCE

SPECS = {"floats": Spec((2000,), "float32", actions=3), "compressed": PIXELS}


def recorded(folder, spec: Spec):
    """Two shards, each longer than a page of memory."""
    with Recorder(folder, spec, lanes=2, shard_steps=100) as recorder:
        for step in random_play(spec, rows=100, lanes=2):
            recorder.add(*step)
    return folder


def cut(file) -> None:
    os.truncate(file, file.stat().st_size // 3)


@pytest.mark.parametrize("kind", SPECS)
def test_a_shard_that_was_cut_short_after_it_was_opened_is_named(tmp_path, kind):
    timeline = Dataset.open(recorded(tmp_path, SPECS[kind])).timeline
    everything = np.arange(timeline.frame_count)
    whole = timeline.frames(everything)
    file = tmp_path / "frames-000001.arrow"
    size = file.stat().st_size
    cut(file)
    with pytest.raises(DataError, match=rf"frames-000001.arrow was cut short .* instead of {size}; restore"):
        timeline.frames(everything)
    np.testing.assert_array_equal(timeline.frames(everything[:10]), whole[:10])  # of the other shard


def test_a_shard_that_was_removed_after_it_was_opened_is_still_read(tmp_path):
    timeline = Dataset.open(recorded(tmp_path, SPECS["floats"])).timeline
    whole = timeline.frames(np.arange(timeline.frame_count))
    (tmp_path / "frames-000001.arrow").unlink()
    np.testing.assert_array_equal(timeline.frames(np.arange(timeline.frame_count)), whole)


CUT_WITHIN_A_USE = """
import mmap, os, sys
import numpy as np
from optimist.data import Dataset
timeline = Dataset.open(sys.argv[1]).timeline
decoder = timeline.source._decoder(1)
kind = sys.argv[2]
if kind == "ours":
    os.truncate(decoder.name, 5000)
    decoder.decode(np.arange(90))  # the length was looked at before
else:
    with open(sys.argv[1] + "/theirs", "w+b") as file:
        file.truncate(100_000)
        file.flush()
        map = mmap.mmap(file.fileno(), 100_000)
        file.truncate(0)
        map[50_000]
"""


@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_a_shard_that_is_cut_short_within_a_use_ends_the_process_with_its_name(tmp_path, whose):
    folder = str(recorded(tmp_path, SPECS["floats"]))
    words = [sys.executable, "-c", CUT_WITHIN_A_USE, folder, whose]
    found = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    if whose == "ours":
        assert found.returncode == DataError.exit_code, found
        [line] = found.stderr.splitlines()
        assert line.startswith(f"optimist: {folder}/frames-000001.arrow was cut short")
    else:  # the fault of another file of the process ends it as before
        assert found.returncode == -signal.SIGBUS and not found.stderr, found


@pytest.mark.parametrize("file", ["steps-000000.arrow", "steps-000001.arrow"])
def test_an_unreadable_steps_file_is_named(file):
    with tempfile.TemporaryDirectory() as name:  # pytest's own folder is closed to another user
        folder = recorded(Path(name), SPECS["floats"])
        folder.chmod(0o755)
        (folder / file).chmod(0)
        words = [sys.executable, "-c", READ_AS_NOBODY, str(folder)]
        found = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert f"{file} cannot be read (Permission denied); restore it" in found.stdout, found
    assert found.stdout.count("\n") == 1


READ_AS_NOBODY = """
import os, sys
from optimist.data import Dataset
from optimist.errors import DataError
if os.geteuid() == 0:
    os.setuid(65534)
try:
    Dataset.open(sys.argv[1])
except DataError as problem:
    print(problem)
"""
