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
    """Python, the package, and what it depends on."""
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
    yield from _extras(set(package.metadata.get_all("Provides-Extra") or ()) - NOT_FOR_USERS)


def _required(name: str, extra: str = "") -> list[Requirement]:
    """What an installed package requires, or what only this extra of it requires."""
    every = map(Requirement, importlib.metadata.requires(name) or ())
    found = [each for each in every if not each.marker or each.marker.evaluate({"extra": extra})]
    return [each for each in found if bool(extra) == ("extra ==" in str(each.marker))]


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


def _extras(extras: set[str]) -> Iterator[Finding]:
    """The optional packages: which extras are complete."""
    absent = [extra for extra in sorted(extras) if any(map(unmet, _required(DISTRIBUTION, extra)))]
    there = ", ".join(extra for extra in sorted(extras) if extra not in absent)
    yield Finding(f"extras installed: {there or 'none'}")
    if absent:
        example = f'pip install "{DISTRIBUTION}[{absent[0]}]"'
        yield Finding(f"extras not installed: {', '.join(absent)}; to add one: {example}", note=True)


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
    if devices[0].platform == "cpu" and _has_nvidia():
        if os.environ.get("JAX_PLATFORMS") == "cpu" or os.environ.get("CUDA_VISIBLE_DEVICES") == "":
            remedy = "JAX_PLATFORMS or CUDA_VISIBLE_DEVICES hides it"
        else:
            remedy = f'pip install "{DISTRIBUTION}[cuda12]"'
        yield Finding(f"this machine has an NVIDIA GPU, which JAX does not use: {remedy}", UsageError)


def _has_nvidia() -> bool:
    return Path("/dev/nvidiactl").exists() or Path("/dev/dxg").exists()  # the second is WSL2's


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
        yield from dataset(path)
    else:
        what = "neither a dataset, nor a run, nor a study"
        yield Finding(f"{path} is {what}: other people's logs need optimist data import", UsageError)


def dataset(path: Path) -> Iterator[Finding]:
    problems = [Finding(problem, DataError) for problem in verify(path)]
    yield from _first(problems, f"problems: {command_line('data', 'verify', path)} lists them")
    if not problems:
        yield Finding(f"{path} is a dataset; every byte is as it was written")
    yield from _holder(path)


def run(path: Path) -> Iterator[Finding]:
    """A run: configuration, log, rows, checkpoints, policies, versions, alarms."""
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
    yield from _progress(path, config)
    yield from _its_log(config)
    for read in (read_metrics, read_episodes):
        try:
            read(path)
        except RunError as problem:
            yield Finding(str(problem), RunError)
    for part, remedy in (
        ("checkpoints", "remove it, and the run goes on from an older one"),
        ("policies", "name another --step, or restore the file from a copy"),
    ):
        for file in checkpoint.newest_first(path / part):
            if why := checkpoint.damage(file, made_with):
                yield Finding(f"{file} {why}: {remedy}", RunError)
    yield from _alarms(path)
    yield from _versions(path)
    yield from _holder(path)


def _progress(path: Path, config: dict) -> Iterator[Finding]:
    steps = config.get("training", {}).get("steps", 0)
    saved = [checkpoint.step_of(file) for file in checkpoint.newest_first(path / "checkpoints")]
    if (path / "DONE").exists():
        yield Finding(f"{path} is a finished run of {steps:,} steps")
    elif saved:
        at = f"{max(saved):,} of {steps:,} steps"
        yield Finding(f"{path} is a run at {at}: the same command continues it", note=True)
    else:
        yield Finding(f"{path} is a run without a checkpoint: the same command begins it again", note=True)


def _its_log(config: dict) -> Iterator[Finding]:
    """The dataset that the run was trained on: a run continues only with it."""
    log = config.get("dataset", {}).get("path", "")
    if log not in ("", IN_MEMORY) and not Path(log).exists():
        yield Finding(
            f"its dataset {log} is missing: to continue the run, name the folder where it is now", note=True
        )


def _alarms(path: Path) -> Iterator[Finding]:
    try:
        diverged = run_folder.read_alarms(path)
    except RunError as problem:
        yield Finding(str(problem), RunError)
        return
    if diverged:
        seeds = some_of([f"seed {seed} at step {alarm.step:,}" for seed, alarm in diverged.items()], SHOWN)
        remedy = "--step healthy takes its last healthy policy; a conservative agent or a larger log may help"
        yield Finding(f"values diverged in {seeds}: {remedy}", note=True)


def _versions(path: Path) -> Iterator[Finding]:
    try:
        made_with = json_value((path / "versions.json").read_text("utf-8"))
        now = versions()
        other = [f"{name} {made_with[name]}" for name in now if made_with.get(name, now[name]) != now[name]]
    except (OSError, ValueError, AttributeError, TypeError):
        yield Finding(f"{path / 'versions.json'} is missing or damaged: the run works without it", note=True)
        return
    if other:
        yield Finding(f"it was made with {some_of(other, SHOWN)}: the last digits may differ here", note=True)


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
    states = [status.job_status(job, path) for job in record.jobs]
    counts = Counter(state.state for state in states)
    words = ", ".join(f"{count} {state}" for state, count in counts.items())
    yield Finding(f"{path} is the study {record.title}: {len(record.jobs)} runs, {words}")
    failed = [_failure(state) for state in states if state.state in FAILURES]
    yield from _first(failed, f"runs: {command_line('study', 'status', path)} lists them")


def _failure(run: status.JobStatus) -> Finding:
    reason = run.complaint.strip().rpartition("\n")[2]
    return Finding(f"{run.name} {run.state} ({reason}): {FAILURES[run.state]}", RunError)


def _first(problems: list[Finding], others: str) -> Iterator[Finding]:
    """The first problems, and a line with the number of the others and the command that lists them."""
    yield from problems[:SHOWN]
    if len(problems) > SHOWN:
        yield Finding(f"{len(problems) - SHOWN} more {others}", problems[0].problem)
