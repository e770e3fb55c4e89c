"""Figures at Weights & Biases, offline: the files hold every figure once, also of a continued run."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

from patience import PATIENCE

BLOCK, HEADER = 2**15, 7  # a .wandb file is a LevelDB log
LOG = """
import sys
from pathlib import Path
from optimist.training.loggers import logger_classes
(Wandb,) = logger_classes("wandb")
folder = Path(sys.argv[1])
first = Wandb(folder, seeds=(4, 9), step=0)
for step in (10, 20):
    for seed in (4, 9):
        first.add(step, {"loss": step / 2 + seed}, seed)
first.close()  # killed before the evaluation of step 20; the newest checkpoint is of step 10
again = Wandb(folder, seeds=(4, 9), step=10)
for step in (20, 30):
    for seed in (4, 9):
        again.add(step, {"loss": step / 2 + seed}, seed)
        again.add(step, {"return": float(step)}, seed)
again.close()
"""


def records(path: Path) -> list:
    from wandb.proto.wandb_internal_pb2 import Record  # seconds, which every worker of the suite would take

    content, found, begun, place = path.read_bytes(), [], b"", HEADER
    while place + HEADER <= len(content):
        if BLOCK - place % BLOCK < HEADER:
            place += BLOCK - place % BLOCK
            continue
        length, kind = struct.unpack_from("<HB", content, place + 4)
        begun += content[place + HEADER : place + HEADER + length]
        place += HEADER + length
        if kind in (1, 4):  # a whole record, or the last part of one
            found.append(Record.FromString(begun))
            begun = b""
    return found


def test_a_continued_run_is_the_same_run_and_logs_nothing_twice(tmp_path):
    (tmp_path / "config.toml").write_text('kind = "offline"\n[agent]\nname = "rem"\n')
    quiet = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": ""}
    quiet |= {"WANDB_CONFIG_DIR": str(tmp_path)}
    words = [sys.executable, "-c", LOG, str(tmp_path)]
    ended = subprocess.run(
        words, env={**os.environ, **quiet}, capture_output=True, text=True, timeout=PATIENCE
    )
    assert ended.returncode == 0, ended.stderr
    files = sorted((tmp_path / "loggers").glob("wandb/offline-run-*/*.wandb"))
    assert len(files) == 4
    runs, rows, settings = {}, [], {}
    for file in files:
        for record in records(file):
            if record.HasField("run"):
                runs[record.run.display_name] = record.run.run_id
                settings |= {item.key: item.value_json for item in record.run.config.update}
            if record.HasField("history"):
                names = {
                    "/".join(item.nested_key) or item.key: item.value_json for item in record.history.item
                }
                numbers = {name: json.loads(value) for name, value in names.items()}
                figures = [name for name in ("loss", "return") if name in numbers]
                rows += [(file.stem[-1], numbers["_step"], name, numbers[name]) for name in figures]
    name = "/".join(tmp_path.parts[-2:])
    told = json.loads((tmp_path / "loggers/wandb.json").read_text())["name"]
    assert runs == {f"{name} seed {seed}": f"{told}-{seed}" for seed in (4, 9)}
    assert json.loads(settings["agent"]) == {"name": "rem"}
    wanted = [(str(seed), step, "loss", step / 2 + seed) for seed in (4, 9) for step in (10, 20, 30)]
    wanted += [(str(seed), step, "return", float(step)) for seed in (4, 9) for step in (20, 30)]
    assert sorted(rows) == sorted(wanted)
