"""Figures in Trackio's own database: each once, also of a continued run."""

import json
import os
import subprocess
import sys

LOG = """
import json, sys
from pathlib import Path
from optimist.training.loggers.trackio import Trackio
folder, seeds = Path(sys.argv[1]), tuple(json.loads(sys.argv[2]))
for begins, steps in ((0, (10, 20)), (10, (20, 30))):
    logger = Trackio(folder, seeds=seeds, step=begins)
    for step in steps:
        for seed in seeds:
            logger.add(step, {"loss": step / 2 + seed}, seed)
    logger.close()
from trackio.sqlite_storage import SQLiteStorage
found = {run: SQLiteStorage.get_logs("optimist", run) for run in SQLiteStorage.get_runs("optimist")}
print("found", json.dumps(found))
"""


def logged(folder, seeds) -> dict:
    """The rows of each run in the database after a run that was continued once."""
    folder.mkdir()
    environment = {**os.environ, "TRACKIO_DIR": str(folder / "trackio")}
    words = [sys.executable, "-c", LOG, str(folder), json.dumps(seeds)]
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    (found,) = [line for line in ended.stdout.splitlines() if line.startswith("found ")]
    return json.loads(found.removeprefix("found "))


def test_a_continued_run_is_the_same_run_and_logs_nothing_twice(tmp_path):
    (rows,) = logged(tmp_path / "run", [4, 9]).values()
    figures = [(row["step"], name, row[name]) for row in rows for name in row if name.endswith("/loss")]
    wanted = [(step, f"seed-{seed}/loss", step / 2 + seed) for seed in (4, 9) for step in (10, 20, 30)]
    assert sorted(figures) == sorted(wanted)


def test_the_only_seed_is_not_in_the_names(tmp_path):
    (rows,) = logged(tmp_path / "run", [4]).values()
    assert [(row["step"], row["loss"]) for row in rows] == [(10, 9.0), (20, 14.0), (30, 19.0)]
