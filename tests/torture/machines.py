"""Faults of machines: kills, power losses, files that are cut short under a reader."""

import io
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, suppress
from functools import cache
from pathlib import Path
from tempfile import gettempdir

import numpy as np
import pytest

from little import GAME, add_metrics, begin, lines, outcome, played, random_play, small_words
from optimist.cli.main import main
from optimist.data import Dataset, Recorder
from optimist.data.verify import verify
from optimist.errors import DataError
from optimist.training.storage import rows as row_files
from optimist.training.storage.checkpoint import load_state
from optimist.training.storage.run_folder import RunFolder
from patience import PATIENCE
from power_loss import ForgetfulDisk, after_every
from torture.campaign import LOST, SILENT, SURVIVED, TRACEBACK, Campaign
from torture.files import SPECS, folder_until_exit, recorded, state

COMPILED = Path(gettempdir()) / "torture-compiled"  # programs that every case shares
WIDE = {"w": np.zeros(200_000, np.float32), "step": np.int32(0)}


NURSERY = """
import itertools, os, sys
from pathlib import Path
import numpy as np
from optimist.training.storage.checkpoint import save_state

for folder in sys.stdin:  # a child for each; only the first has to wait for the imports
    child = os.fork()
    if not child:
        for step in itertools.count(1):
            state = {"w": np.full(200_000, step, np.float32), "step": np.int32(step)}
            save_state(Path(folder.strip()), step, state)
            print(step, flush=True)
    print("child", child, flush=True)
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


@cache
def nursery() -> subprocess.Popen:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-c", NURSERY], text=True, **pipes)


def kill_while_saving(random: np.random.Generator, folder: Path) -> str:
    """A process saves checkpoint after checkpoint, and reports each; it is killed."""
    process = nursery()
    assert process.stdin and process.stdout
    print(folder, file=process.stdin, flush=True)
    child, reported = 0, 0
    while not child or not reported:  # it has begun
        word, *more = process.stdout.readline().split()
        child, reported = (int(more[0]), reported) if more else (child, int(word))
    time.sleep(random.uniform(0, 0.1))
    os.kill(child, signal.SIGKILL)
    while (word := process.stdout.readline().strip()) != "gone":
        reported = int(word)
    step, found = load_state(folder, WIDE) or (0, WIDE)
    if step < reported:
        return LOST
    return SURVIVED if (np.asarray(found["w"]) == step).all() else SILENT


class PowerLoss(Exception):
    """The power is gone."""


def lose_power(random: np.random.Generator, folder: Path) -> str:
    """After any rename, removal or sync the power fails; what was reported as saved is there."""
    (folder / "disk").mkdir()
    disk, left = ForgetfulDisk(folder / "disk"), int(random.integers(1, 60))
    reported = {"step": 0, "rows": 0, "recorded": 0}

    def happened():
        nonlocal left
        left -= 1
        if not left:
            raise PowerLoss

    with pytest.MonkeyPatch.context() as patch, suppress(PowerLoss):
        patch.setattr(os, "fsync", disk.fsync)
        after_every(["fsync", "replace", "unlink"], happened, patch)
        _use(folder / "disk", reported)
    result = _what_is_left(disk.after_loss(folder / "left"), reported)
    disk.close()
    return result


def _use(disk: Path, reported: dict[str, int]) -> None:
    with RunFolder(disk / "run", {"seeds": [0]}) as run:
        recorder = Recorder(disk / "data", SPECS[1], lanes=2, shard_steps=10)
        play = random_play(SPECS[1], rows=100, lanes=2)
        for step in range(1, 8):
            for _ in range(8):
                recorder.add(*next(play))
            recorder.flush()
            reported["recorded"] = 16 * step
            add_metrics(run, [{"step": step, "seed": 0}])
            run.save_state(step, state(step))
            reported["step"] = reported["rows"] = step
        recorder.close()


def _what_is_left(left: Path, reported: dict[str, int]) -> str:
    found = load_state(left / "run" / "checkpoints", state(0)) if reported["step"] else (0, None)
    if found is None or found[0] < reported["step"]:
        return LOST
    if reported["rows"]:
        rows = len(row_files.verified(left / "run" / "metrics.jsonl"))
        if rows < reported["rows"]:
            return LOST
    return _recording_left(left / "data", reported["recorded"]) if reported["recorded"] else SURVIVED


def _recording_left(data: Path, steps: int) -> str:
    """All of it is there. Verify may object only to shards that the manifest does not name yet, whose steps
    were not reported as saved; the next recording removes them."""
    recorded = Dataset.open(data)
    recorded.timeline.decoded()
    if len(recorded) < steps:
        return LOST
    unnamed = [problem for problem in verify(data) if "is not in the manifest" in problem]
    if verify(data) != unnamed:
        return SILENT
    Recorder(data, SPECS[1], lanes=2).close()
    return SURVIVED if not verify(data) and len(Dataset.open(data)) == len(recorded) else LOST


READER = """
import sys
import numpy as np
from optimist.data import Dataset
from optimist.errors import OptimistError
timeline = Dataset.open(sys.argv[1]).timeline
everything = np.random.default_rng(0).permutation(timeline.frame_count)
print("ready", flush=True)
try:
    while True:
        timeline.frames(everything)
except OptimistError as problem:
    print(f"optimist: {problem}", file=sys.stderr)
    sys.exit(problem.exit_code)
"""


def cut_a_shard_short(random: np.random.Generator, folder: Path) -> str:
    """A shard is cut short at a random moment while a process reads all of them again and again."""
    spec = SPECS[int(random.integers(2))]
    data = recorded(folder / "data", spec, rows=2500, shard_steps=2000)
    files = sorted(data.glob("frames-*"))
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(data)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as reader:
        assert reader.stdout
        reader.stdout.readline()
        time.sleep(random.uniform(0, 0.1))
        file = files[int(random.integers(len(files)))]
        os.truncate(file, int(random.integers(file.stat().st_size // 2)))
        _, complaint = reader.communicate(timeout=PATIENCE)
    one_line = complaint.count(b"\n") == 1 and file.name.encode() in complaint
    return SURVIVED if reader.returncode == DataError.exit_code and one_line else TRACEBACK


@cache
def training_log() -> Path:
    return played(folder_until_exit("torture-played-") / "data")


@cache
def straight() -> dict:
    out = folder_until_exit("torture-straight-")
    with (
        redirect_stderr(io.StringIO()),
        begin(*_words(out), compiled=COMPILED) as child,
    ):
        child.communicate(timeout=PATIENCE)
    return outcome(out)


def _words(out: Path) -> list[str]:
    settings = ["--steps", 300, "--evaluate-every", 20, "--episodes", 2, "--checkpoint-seconds", 0]
    return [*map(str, ["train", "rem", training_log(), *settings, *small_words("rem"), "--out", out])]


def kill_training(random: np.random.Generator, folder: Path) -> str:
    """Training with a checkpoint after every chunk is killed, up to three times, and then ends."""
    wanted, out = straight(), folder / "run"
    for _ in range(int(random.integers(1, 4))):
        before = lines(out / "metrics.jsonl")
        with begin(*_words(out), compiled=COMPILED) as child:
            while child.poll() is None and lines(out / "metrics.jsonl") <= before:
                time.sleep(0.005)
            time.sleep(random.uniform(0, 0.2))
            child.kill()
            child.communicate()
    with begin(*_words(out), compiled=COMPILED) as child:
        _, complaint = child.communicate(timeout=PATIENCE)
    if child.returncode:
        return TRACEBACK if "Traceback" in complaint else LOST
    return SURVIVED if outcome(out) == wanted else SILENT


ABSURD = (
    "train rem LOG --batch 1e8",
    "train rem LOG --columns 1e9",
    "train rem LOG --episodes 1e9",
    "train rem LOG --seeds 0-999999999",
    "train rem LOG --evaluation-steps 1e18",
    "train rem LOG --target-period 1e18",
    f"collect {GAME} --lanes 1e9",
    f"collect {GAME} --window 1e18",
)


def ask_too_much(random: np.random.Generator, folder: Path) -> str:
    words = ABSURD[int(random.integers(len(ABSURD)))].replace("LOG", str(training_log())).split()
    complaint, begun = io.StringIO(), time.process_time()
    with redirect_stderr(complaint):
        code = main([*words, "--out", str(folder / "out")])
    one_line = complaint.getvalue().count("\n") == 1 and time.process_time() - begun < 10
    return SURVIVED if code == 2 and one_line else TRACEBACK


CAMPAIGNS = (
    Campaign("kill -9 while checkpoints are saved", 200, kill_while_saving),
    Campaign("kill -9 of training, then the same bits", 40, kill_training),
    Campaign("power loss after a rename, a removal or a sync", 300, lose_power),
    Campaign("a shard is cut short under a reader", 100, cut_a_shard_short),
    Campaign("absurd sizes", 16, ask_too_much),
)
