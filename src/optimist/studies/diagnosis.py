"""What `optimist doctor` says about the installation, the machine and folders, with the remedy of each."""

import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax
from filelock import FileLock, Timeout
from packaging.requirements import Requirement

from optimist.data import machine
from optimist.data.disk.lock import LOCK, holder_of
from optimist.data.disk.records import json_value
from optimist.data.verify import verify
from optimist.errors import (
    DataError,
    OptimistError,
    RunError,
    StorageError,
    UsageError,
    command_line,
    in_one_line,
    some_of,
)
from optimist.studies import status
from optimist.training.storage import checkpoint, run_folder
from optimist.training.storage.configuration import IN_MEMORY, fingerprint, versions
from optimist.training.storage.rows import read_episodes, read_metrics

DISTRIBUTION = "optimist-rl"
NEWEST_TRIED = (3, 14)
NOT_FOR_USERS = {"dev", "bench", "all"}  # extras
LITTLE_ROOM = 2 * 2**30  # bytes; the kept policies of one run may take that much
SHOWN = 5  # most problems of one kind, and most names in one line
GPUS = ("/dev/nvidiactl", "/dev/dxg")  # the second is WSL2's
FAILURES = {  # the states of runs that need action, with the remedy
    "failed": "the same command tries it again",
    "by other settings": "--restart begins it again",
}


class Finding(NamedTuple):
    """One fact. A note needs no action; a problem has the class of error that sets the exit code."""

    text: str
    problem: type[OptimistError] | None = None
    note: bool = False


def installation() -> Iterator[Finding]:
    """Python, the package, what it depends on, and which extras are complete."""
    newer = sys.version_info[:2] > NEWEST_TRIED
    python = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    tried = f"; newer than {'.'.join(map(str, NEWEST_TRIED))}, the newest that was tried"
    yield Finding(python + tried * newer, note=newer)
    if platform.system() == "Windows":
        yield Finding("Windows itself is not tested: use WSL2, where everything works as on Linux", note=True)
    try:
        package = importlib.metadata.distribution(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        yield Finding(f"the package is not installed: pip install {DISTRIBUTION}", UsageError)
        return
    yield Finding(f"{DISTRIBUTION} {package.version} in {Path(str(package.locate_file(''))).resolve()}")
    needed = _required(DISTRIBUTION)
    wrong = [complaint for each in needed if (complaint := unmet(each))]
    for complaint in wrong:
        yield Finding(f"{complaint}: pip install --upgrade {DISTRIBUTION}", UsageError)
    if not wrong:
        yield Finding(f"{len(needed)} packages that it needs: all installed")
    extras = sorted(set(package.metadata.get_all("Provides-Extra") or ()) - NOT_FOR_USERS)
    absent = [extra for extra in extras if any(map(unmet, _required(DISTRIBUTION, extra)))]
    there = ", ".join(extra for extra in extras if extra not in absent)
    yield Finding(f"extras installed: {there or 'none'}")
    if absent:
        example = f'pip install "{DISTRIBUTION}[{absent[0]}]"'
        yield Finding(f"extras not installed: {', '.join(absent)}; to add one: {example}", note=True)


def _required(name: str, extra: str = "") -> list[Requirement]:
    """What an installed package requires, or what only this extra of it requires."""
    every = map(Requirement, importlib.metadata.requires(name) or ())
    holds = [each for each in every if not each.marker or each.marker.evaluate({"extra": extra})]
    return [each for each in holds if bool(extra) == ("extra ==" in str(each.marker))]


def unmet(wanted: Requirement) -> str:
    """Why the installed packages do not meet a requirement such as "jax>=0.10", or ""."""
    try:
        version = importlib.metadata.version(wanted.name)
    except importlib.metadata.PackageNotFoundError:
        return f"{wanted.name} is not installed"
    if not wanted.specifier.contains(version, prereleases=True):
        return f"{wanted.name} {version} is not {wanted.specifier}"
    inner = [each for extra in wanted.extras for each in _required(wanted.name, extra)]
    return next(filter(None, map(unmet, inner)), "")


def device() -> Iterator[Finding]:
    """The device that JAX uses, and a GPU that it does not use."""
    try:
        devices = jax.devices()
    except RuntimeError as problem:
        reason = str(problem).partition("\n")[0]
        yield Finding(f"JAX finds no device ({reason}): unset JAX_PLATFORMS, or set it to cpu", UsageError)
        return
    kind, count = devices[0].device_kind, len(devices)
    size = f"{machine.cores()} cores, {machine.memory() / 2**30:.0f} GiB of memory"
    yield Finding(f"device: {kind}{f' (and {count - 1} more)' if count > 1 else ''}; the machine has {size}")
    if devices[0].platform == "cpu" and any(Path(gpu).exists() for gpu in GPUS):
        remedy = f'pip install "{DISTRIBUTION}[cuda12]"'
        if os.environ.get("JAX_PLATFORMS") == "cpu" or os.environ.get("CUDA_VISIBLE_DEVICES") == "":
            remedy = "JAX_PLATFORMS or CUDA_VISIBLE_DEVICES hides it"
        yield Finding(f"this machine has an NVIDIA GPU, which JAX does not use: {remedy}", UsageError)


def disk(folder: Path) -> Iterator[Finding]:
    """The free space of a folder, and whether files can be written there."""
    free = shutil.disk_usage(folder).free
    try:
        with tempfile.TemporaryFile(dir=folder) as stream:
            stream.write(b"optimist")
            machine.sync(stream.fileno())
    except OSError as problem:
        yield Finding(f"cannot write in {folder}: {problem.strerror}; choose another folder", StorageError)
        return
    room = f"{free / 2**30:,.1f} GiB are free in {folder.resolve()}"
    if free < LITTLE_ROOM:
        yield Finding(f"{room}: make room, or choose a folder on another disk", StorageError)
    else:
        yield Finding(room)


def folder(path: Path) -> Iterator[Finding]:
    """The findings about a folder; its files tell whether it is a dataset, a run or a study."""
    if not path.is_dir():
        yield Finding(f"{path} is not a folder: name a dataset, a run or a study", UsageError)
    elif (path / status.FILE).exists():
        yield from study(path)
    elif (path / "config.toml").exists() or (path / "checkpoints").exists():
        yield from run(path)
    elif (path / "manifest.json").exists() or any(path.glob("*.arrow")):
        problems = [Finding(problem, DataError) for problem in verify(path)]
        yield from _first(problems, f"problems: {command_line('data', 'verify', path)} lists them")
        if not problems:
            yield Finding(f"{path} is a dataset; every byte is as it was written")
        yield from _holder(path)
    else:
        what = "neither a dataset, nor a run, nor a study"
        yield Finding(f"{path} is {what}: other people's logs need optimist data import", UsageError)


def run(path: Path) -> Iterator[Finding]:
    """A run: configuration, progress, log, rows, checkpoints, policies, alarms, versions."""
    try:
        config = run_folder.read_config(path)
        made_with = fingerprint(config)
    except RunError as problem:
        yield Finding(str(problem), RunError)
        return
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as problem:
        what = f"is not the configuration of a run ({in_one_line(problem)})"
        yield Finding(f"{path / 'config.toml'} {what}: restore it from a copy", RunError)
        return
    steps = config.get("training", {}).get("steps", 0)
    saved = [checkpoint.step_of(file) for file in checkpoint.newest_first(path / "checkpoints")]
    if (path / "DONE").exists():
        yield Finding(f"{path} is a finished run of {steps:,} steps")
    elif saved:
        at = f"{max(saved):,} of {steps:,} steps"
        yield Finding(f"{path} is a run at {at}: the same command continues it", note=True)
    else:
        yield Finding(f"{path} is a run without a checkpoint: the same command begins it again", note=True)
    log = config.get("dataset", {}).get("path", "")
    if log not in ("", IN_MEMORY) and not Path(log).exists():
        yield Finding(
            f"its dataset {log} is missing: to continue the run, name the folder where it is now", note=True
        )
    alarms = {}
    try:
        read_metrics(path)
    except RunError as problem:
        yield Finding(str(problem), RunError)
    try:
        read_episodes(path)
    except RunError as problem:
        yield Finding(str(problem), RunError)
    try:
        alarms = run_folder.read_alarms(path)
    except RunError as problem:
        yield Finding(str(problem), RunError)
    for part, remedy in (
        ("checkpoints", "remove it, and the run goes on from an older one"),
        ("policies", "name another --step, or restore the file from a copy"),
    ):
        for file in checkpoint.newest_first(path / part):
            if why := checkpoint.damage(file, made_with):
                yield Finding(f"{file} {why}: {remedy}", RunError)
    if alarms:
        seeds = some_of([f"seed {seed} at step {alarm.step:,}" for seed, alarm in alarms.items()], SHOWN)
        remedy = "--step healthy takes its last healthy policy; a conservative agent or a larger log may help"
        yield Finding(f"values diverged in {seeds}: {remedy}", note=True)
    try:
        before, now = json_value((path / "versions.json").read_text("utf-8")), versions()
        other = [f"{name} {before[name]}" for name in now if before.get(name, now[name]) != now[name]]
        if other:
            some = some_of(other, SHOWN)
            yield Finding(f"it was made with {some}: the last digits may differ here", note=True)
    except (OSError, ValueError, AttributeError, TypeError):
        yield Finding(f"{path / 'versions.json'} is missing or damaged: the run works without it", note=True)
    yield from _holder(path)


def _holder(path: Path) -> Iterator[Finding]:
    """The process that uses the folder, or one that ended without closing it."""
    who = holder_of(path)
    if who is None:
        return
    try:
        with FileLock(path / LOCK, timeout=0):
            pass
    except Timeout:
        yield Finding(f"{path} is in use by {who}", note=True)
    except OSError as problem:
        yield Finding(f"cannot lock {path}: {problem.strerror}; make it writable", StorageError)
    else:
        yield Finding(f"{who} ended without closing {path}: the next command takes it over", note=True)


def study(path: Path) -> Iterator[Finding]:
    """The runs of a study by their states."""
    try:
        record = status.read_record(path)
    except RunError as problem:
        yield Finding(str(problem), RunError)
        return
    runs = [status.job_status(job, path) for job in record.jobs]
    words = ", ".join(f"{count} {state}" for state, count in Counter(run.state for run in runs).items())
    yield Finding(f"{path} is the study {record.title}: {len(record.jobs)} runs, {words}")
    failed = []
    for run in (run for run in runs if run.state in FAILURES):
        reason = run.complaint.strip().rpartition("\n")[2]
        failed.append(Finding(f"{run.name} {run.state} ({reason}): {FAILURES[run.state]}", RunError))
    yield from _first(failed, f"runs: {command_line('study', 'status', path)} lists them")


def _first(problems: list[Finding], others: str) -> Iterator[Finding]:
    """The first problems, and a line with the number of the others and the command that lists them."""
    yield from problems[:SHOWN]
    if len(problems) > SHOWN:
        yield Finding(f"{len(problems) - SHOWN} more {others}", problems[0].problem)
