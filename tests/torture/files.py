"""Damaged and forged files: flipped bits, forged values, links, names that would import a module."""

import atexit
import copy
import hashlib
import json
import os
import shutil
import struct
import tomllib
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import numpy as np

from little import add_metrics, random_play
from optimist.cli.main import main
from optimist.data import Dataset, Recorder, Sampler, Spec
from optimist.data.disk.records import sealed
from optimist.data.verify import verify
from optimist.envs import from_data
from optimist.errors import OptimistError
from optimist.studies import study_file
from optimist.studies.plan import folder_names
from optimist.studies.status import FILE as STUDY
from optimist.studies.status import job_status, note_failure, read_record, write_jobs
from optimist.studies.work import check_trusted
from optimist.training.evaluation import EpisodeScore
from optimist.training.feeding import PLACES, feed_of
from optimist.training.run import load_run
from optimist.training.storage.checkpoint import load_state, save_state
from optimist.training.storage.configuration import changes, toml
from optimist.training.storage.rows import read_episodes, read_metrics
from optimist.training.storage.run_folder import Alarm, RunFolder, read_alarms, read_config, write_alarms
from torture.campaign import EXECUTED, LOST, SILENT, SURVIVED, Campaign

SPECS = (
    Spec((5,), "float32", actions=3),
    Spec((6, 5, 1), "uint8", actions=3, stack=4),
    Spec((4, 4, 2), "bool", actions=3),
)

UNTIL_EXIT = ExitStack()
atexit.register(UNTIL_EXIT.close)


def folder_until_exit(prefix: str) -> Path:
    """A folder that many cases read: it is removed with this process."""
    return Path(UNTIL_EXIT.enter_context(TemporaryDirectory(prefix=prefix)))


def recorded(folder: Path, spec: Spec, *, rows: int, shard_steps: int) -> Path:
    with Recorder(folder, spec, lanes=2, shard_steps=shard_steps) as recorder:
        for step in random_play(spec, rows=rows, lanes=2):
            recorder.add(*step)
    return folder


def state(step: int) -> dict:
    """The state of a run; every weight is the step."""
    return {"w": np.full(300, step, np.float32), "key": np.zeros(2, np.uint32), "step": np.int32(step)}


def two_checkpoints(folder: Path) -> Path:
    """The newer one of two checkpoints, of steps 1 and 2."""
    save_state(folder, 1, state(1))
    return save_state(folder, 2, state(2))


HOMES = [home for home in PLACES if home != "auto"]
WRONG = (-1, 0, 2**31, 2**40, 2**63, 10**30, 0.5, 1e308, "", "../x", "/etc/passwd", "a\nb", "\x1b[2J", "\0")
WRONG += ("gym/evil:Game-v0", "evil:Family", "object", None, True, [], {}, [[[]]], {"a": 1}, ["x"] * 50)


def flipped(content: bytes, random: np.random.Generator) -> bytes:
    bit, changed = int(random.integers(8 * len(content))), bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@cache
def log(number: int) -> Path:
    return recorded(folder_until_exit("torture-log-"), SPECS[number], rows=60, shard_steps=40)


def damaged_log(random: np.random.Generator, folder: Path) -> tuple[int, Path, Path]:
    kind = int(random.integers(len(SPECS)))
    data = Path(shutil.copytree(log(kind), folder / "data"))
    file = sorted(path for path in data.iterdir() if path.suffix)[int(random.integers(7))]
    file.write_bytes(flipped(file.read_bytes(), random))
    return kind, data, file


def flip_and_verify(random: np.random.Generator, folder: Path) -> str:
    _, data, file = damaged_log(random, folder)
    problems = verify(data)
    return SURVIVED if any(file.name in problem for problem in problems) else SILENT


def fed(data: Dataset, home: str) -> list[np.ndarray]:
    """Everything that this home gives the learner: frames, actions, rewards and discounts."""
    feed = feed_of([Sampler(data, batch=64)], home, memory=1)  # so `compressed` keeps no frame decoded
    return [np.asarray(part) for part in jax.tree.leaves((feed.resident, feed.items(0, 3)))]


@cache
def sound(kind: int, home: str) -> list[np.ndarray]:
    return fed(Dataset.open(log(kind)), home)


def flip_and_train(random: np.random.Generator, folder: Path) -> str | None:
    """Every value that reaches a batch is right, or the batch is refused."""
    kind, data, file = damaged_log(random, folder)
    home = HOMES[int(random.integers(len(HOMES)))]
    try:
        pairs = zip(fed(Dataset.open(data), home), sound(kind, home), strict=True)
        return None if all(np.array_equal(ours, theirs) for ours, theirs in pairs) else SILENT
    except OptimistError as problem:
        if file.name not in str(problem):
            return SILENT
        raise


def flip_a_checkpoint(random: np.random.Generator, folder: Path) -> str:
    newest = two_checkpoints(folder)
    newest.write_bytes(flipped(newest.read_bytes(), random))
    found = load_state(folder, state(0))
    if found is None or found[0] == 2:
        return LOST if found is None else SILENT
    return SURVIVED if (np.asarray(found[1]["w"]) == 1).all() else SILENT


def forge_a_checkpoint(random: np.random.Generator, folder: Path) -> str:
    """A header with wrong values under a right hash."""
    newest = two_checkpoints(folder)
    content = newest.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    forge(header, random)
    text = json.dumps(header).encode()
    forged = struct.pack("<Q", len(text)) + text + content[8 + length :]
    newest.unlink()
    digest = hashlib.sha256(forged).hexdigest()[:32]
    (folder / f"step-000000000002-{digest}.safetensors").write_bytes(forged)
    found = load_state(folder, state(0))
    same = found is not None and (np.asarray(found[1]["w"]) == found[0]).all()
    return SURVIVED if same else SILENT


def places(value, path=()):
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield (*path, key)
        if isinstance(value[key], (dict, list)):
            yield from places(value[key], (*path, key))


def forge(record: dict, random: np.random.Generator) -> tuple:
    """Replace one value by a wrong one."""
    everywhere = list(places(record))
    path = everywhere[int(random.integers(len(everywhere)))]
    inside = record
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = WRONG[int(random.integers(len(WRONG)))]
    return path


def forge_a_manifest(random: np.random.Generator, folder: Path) -> str | None:
    kind = int(random.integers(len(SPECS)))
    data = Path(shutil.copytree(log(kind), folder / "data"))
    (data / "evil.py").write_text("import pathlib; pathlib.Path(__file__ + '.ran').touch()\n")
    record = json.loads((data / "manifest.json").read_text())
    record.pop("sha256")
    record["provenance"] = {"environment": "minatar/breakout", "seeds": [0]}
    forge(record, random)
    here = Path.cwd()
    try:
        os.chdir(data)
        with suppress(UnicodeEncodeError):  # the forger's own file cannot be written
            (data / "manifest.json").write_text(sealed(record))
            opened = Dataset.open(data)
            from_data(opened.provenance.get("environment", "minatar/breakout"))
            opened.timeline.decoded()
    finally:
        os.chdir(here)
    return EXECUTED if (data / "evil.py.ran").exists() else None


@cache
def catalogue() -> list[dict]:
    folder = Path(study_file.__file__).parent / "catalog"
    return [tomllib.loads(path.read_text()) for path in sorted(folder.glob("*.toml"))]


def forge_a_study(random: np.random.Generator, folder: Path) -> None:
    table = copy.deepcopy(catalogue()[int(random.integers(len(catalogue())))])
    forge(table, random)
    study_file.read("forged", table, "tiny").jobs()


@cache
def list_of_runs(number: int) -> str:
    """study.json of a study of the catalogue."""
    jobs = study_file.read("listed", copy.deepcopy(catalogue()[number]), "tiny").jobs()
    with TemporaryDirectory(prefix="torture-") as folder:
        write_jobs(Path(folder), "a study", jobs)
        return (Path(folder) / STUDY).read_text()


def forge_a_list_of_runs(random: np.random.Generator, folder: Path) -> None:
    """A study's folder from a stranger: its status is shown, and its runs are begun."""
    out = folder / "studies" / "one"
    out.mkdir(parents=True)
    record = json.loads(list_of_runs(int(random.integers(len(catalogue())))))
    forge(record, random)
    (out / STUDY).write_text(json.dumps(record))
    try:
        for job in read_record(out).jobs:
            job_status(job, out)
            check_trusted(job)
            note_failure(job, out, "stopped")  # written where its run would be
    finally:
        outside = [path for path in folder.rglob("*") if path.is_file() and not path.is_relative_to(out)]
        assert not outside, outside


@cache
def trained() -> Path:
    """A run of two steps, and its configuration."""
    run = folder_until_exit("torture-run-") / "run"
    words = ["train", "dqn", str(log(0)), "--out", str(run), "--environment", "none", "--steps", "2"]
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        assert main([*words, "--network.torso", "mlp", "--batch", "4"]) == 0
    return run


def forge_a_configuration(random: np.random.Generator, folder: Path) -> None:
    """A stranger's run, or one whose settings were edited: it is loaded, and compared with what it was."""
    run = Path(shutil.copytree(trained(), folder / "run"))
    before = read_config(run)
    config = copy.deepcopy(before)
    forge(config, random)
    with suppress(TypeError, UnicodeEncodeError):  # the forger's own file cannot be written
        (run / "config.toml").write_text(toml(config), encoding="utf-8")
    changes(read_config(run), before)
    load_run(run)


def name_two_labels(random: np.random.Generator, folder: Path) -> str:
    letters = list("aA1.-_ ()[]%/\\é探\0\n") + ["x" * 90]
    labels = ["".join(random.choice(letters, int(random.integers(1, 6)))) for _ in range(2)]
    names = [name.lower() for name in folder_names(labels).values()]
    return SURVIVED if len(set(names)) == len(set(labels)) else SILENT


def flip_a_file_of_a_run(random: np.random.Generator, folder: Path) -> str:
    with RunFolder(folder, {}) as run:
        for step in (10, 20, 30):
            add_metrics(run, [{"step": step, "seed": 0, "loss_q": 0.5 / step}])
            run.add_episodes([EpisodeScore(step, 0, n, 1.5 * n, 7) for n in (0, 1)])
        write_alarms(folder, {0: Alarm(10, 5, 9.0, 3.0)})
    names = ("metrics.jsonl", "episodes.csv", "alarms.json")
    file = folder / str(random.choice(names))
    file.write_bytes(flipped(file.read_bytes(), random))
    try:
        read_episodes(folder)
        read_alarms(folder)
        read_metrics(folder)
    except OptimistError as problem:
        with RunFolder(folder, {}) as run:
            run.rewind(30)  # the run goes on
        if file.name in str(problem):
            raise
    return SILENT


def leave_links(random: np.random.Generator, folder: Path) -> None:
    """Links to a file outside, wherever a run or a recording writes."""
    victim, run = folder / "victim", folder / "run"
    victim.write_bytes(b"mine")
    run.mkdir()
    names = ("config.toml", "config.toml.partial", "metrics.jsonl", "episodes.csv")
    names += ("alarms.json", "alarms.json.partial", "DONE", ".lock", ".holder")
    for name in random.choice(names, 3, replace=False).tolist():
        (run / name).symlink_to(victim)
    try:
        with RunFolder(run, {"seeds": [0]}) as held:
            add_metrics(held, [{"step": 10, "seed": 0}])
            held.add_episodes([EpisodeScore(10, 0, 0, 1.0, 7)])
            write_alarms(run, {0: Alarm(10, 5, 9.0, 3.0)})
            held.save_state(10, state(10))
            held.finish()
    finally:
        assert victim.read_bytes() == b"mine"


CAMPAIGNS = (
    Campaign("a bit of a checkpoint is flipped", 500, flip_a_checkpoint),
    Campaign("a bit of a dataset is flipped, then verified", 500, flip_and_verify),
    Campaign("a bit of a dataset is flipped, then trained on", 500, flip_and_train),
    Campaign("a bit of metrics, episodes or alarms is flipped", 500, flip_a_file_of_a_run),
    Campaign("a value of a manifest is forged", 500, forge_a_manifest),
    Campaign("a header of a checkpoint is forged", 500, forge_a_checkpoint),
    Campaign("a value of a study file is forged", 300, forge_a_study),
    Campaign("a value of a list of runs is forged", 300, forge_a_list_of_runs),
    Campaign("a value of the settings of a run is forged", 300, forge_a_configuration),
    Campaign("links out of a run folder", 200, leave_links),
    Campaign("pairs of labels", 1000, name_two_labels),
)
