"""What is wrong with an installation, a device, a disk, a dataset, a run or a study, and how to mend it."""

import importlib.metadata
import json
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from optimist.data import machine
from optimist.data.disk.lock import HOLDER, LOCK
from optimist.data.verify import verify
from optimist.errors import DataError, OptimistError, RunError, StorageError, UsageError, some_of
from optimist.studies import status
from optimist.training.storage import alarms, checkpoint, run_folder
from optimist.training.storage import checked_lines as rows

DISTRIBUTION = "optimist-rl"
NEWEST_TRIED = (3, 14)
LITTLE_ROOM = 2 * 2**30  # bytes; a run's kept policies may take as much
SHOWN = 5  # names in one line


class Finding(NamedTuple):
    """One line of a diagnosis. A note needs no action; a problem has the error whose exit code it gives."""

    text: str
    problem: type[OptimistError] | None = None
    note: bool = False


def installation() -> Iterator[Finding]:
    """Python, the package, and what it depends on."""
    here = sys.version_info[:2]
    newer = f"; newer than {'.'.join(map(str, NEWEST_TRIED))}, the newest that was tried"
    yield Finding(
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
        + (newer if here > NEWEST_TRIED else ""),
        note=here > NEWEST_TRIED,
    )
    if platform.system() == "Windows":
        yield Finding("Windows itself is not tested: use WSL2, where everything works as on Linux", note=True)
    try:
        package = importlib.metadata.distribution(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        yield Finding(f"the package is not installed: pip install {DISTRIBUTION}", UsageError)
        return
    yield Finding(f"{DISTRIBUTION} {package.version} in {Path(str(package.locate_file(''))).resolve()}")
    needed = [line for line in package.requires or [] if not _extra_of(line)]
    wrong = [complaint for line in needed if (complaint := _unmet(line))]
    for complaint in wrong:
        yield Finding(f"{complaint}: pip install --upgrade {DISTRIBUTION}", UsageError)
    if not wrong:
        yield Finding(f"{len(needed)} packages that it needs: all installed")
    yield from _extras(package)


def _unmet(requirement: str) -> str:
    """Why the installed packages do not meet a requirement such as "jax>=0.10", or ""."""
    found = re.match(r"([\w.-]+)(?:\[([\w-]+)\])?[^;>]*(?:>=([\d.]+))?", requirement)
    assert found, requirement
    name, extra, least = found[1], found[2], found[3] or "0"
    try:
        package = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return f"{name} is not installed"
    if _numbers(package.version) < _numbers(least):
        return f"{name} {package.version} is older than {least}"
    inner = [
        line.partition(";")[0] for line in package.requires or [] if _extra_of(line) == extra is not None
    ]
    return next(filter(None, map(_unmet, inner)), "")


def _extra_of(requirement: str) -> str | None:
    found = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
    return found[1] if found else None


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def _extras(package: importlib.metadata.Distribution) -> Iterator[Finding]:
    """The optional packages: which extras are complete."""
    lacking: dict[str, bool] = {}
    for line in package.requires or []:
        if extra := _extra_of(line):
            lacking[extra] = lacking.get(extra, False) or bool(_unmet(line))
    tools = {"dev", "bench", "all"}
    users = {extra: lacks for extra, lacks in lacking.items() if extra not in tools}
    there = [extra for extra, lacks in users.items() if not lacks]
    absent = [extra for extra, lacks in users.items() if lacks]
    yield Finding(f"extras installed: {', '.join(there) or 'none'}")
    if absent:
        example = f'pip install "{DISTRIBUTION}[{absent[0]}]"'
        yield Finding(f"extras not installed: {', '.join(absent)}; to add one: {example}", note=True)


def device() -> Iterator[Finding]:
    """The device that JAX uses, and the accelerator that it does not."""
    import jax

    try:
        found = jax.devices()
    except RuntimeError as problem:
        reason = str(problem).partition("\n")[0]
        yield Finding(f"JAX finds no device ({reason}): unset JAX_PLATFORMS, or set it to cpu", UsageError)
        return
    kind, count = found[0].device_kind, len(found)
    size = f"{machine.cores()} cores, {machine.memory() / 2**30:.0f} GiB of memory"
    yield Finding(f"device: {kind}{f' (and {count - 1} more)' if count > 1 else ''}; the machine has {size}")
    if found[0].platform == "cpu" and _has_nvidia():
        if os.environ.get("JAX_PLATFORMS") == "cpu" or os.environ.get("CUDA_VISIBLE_DEVICES") == "":
            remedy = "JAX_PLATFORMS or CUDA_VISIBLE_DEVICES hides it"
        else:
            remedy = f'pip install "{DISTRIBUTION}[cuda12]"'
        yield Finding(f"this machine has an NVIDIA GPU, which JAX does not use: {remedy}", UsageError)


def _has_nvidia() -> bool:
    return Path("/dev/nvidiactl").exists() or Path("/dev/dxg").exists()  # the second is WSL2's


def disk(folder: Path) -> Iterator[Finding]:
    """Room in a folder, and whether files can be written there."""
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
    """A dataset, a run or a study, by what the folder holds."""
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
    problems = verify(path)
    for problem in problems[:SHOWN]:
        yield Finding(problem, DataError)
    if len(problems) > SHOWN:
        more = f"{len(problems) - SHOWN} more problems"
        yield Finding(f"{path} has {more}: optimist data verify {path} lists them", DataError)
    if not problems:
        yield Finding(f"{path} is a dataset, every byte as it was written")
    yield from _holder(path)


def run(path: Path) -> Iterator[Finding]:
    """A run: configuration, log, rows, checkpoints, policies, versions, alarms."""
    try:
        config = run_folder.read_config(path)
    except RunError as problem:
        yield Finding(str(problem), RunError)
        return
    yield from _progress(path, config)
    yield from _its_log(config)
    for name in (run_folder.METRICS, run_folder.EPISODES):
        try:
            if (path / name).exists():
                rows.verified(path / name)
        except RunError as problem:
            yield Finding(str(problem), RunError)
    for part, remedy in (
        ("checkpoints", "the run goes on from an older one"),
        ("policies", "name another --step, or restore the file from a copy"),
    ):
        for file in checkpoint.newest_first(path / part):
            if why := checkpoint.damage(file):
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
        yield Finding(f"{path} is a run that stands at {at}: the same command continues it", note=True)
    else:
        yield Finding(f"{path} is a run without a checkpoint: the same command begins it again", note=True)


def _its_log(config: dict) -> Iterator[Finding]:
    """The dataset that the run was trained on: a run continues only with it."""
    log = config.get("dataset", {}).get("path", "")
    if log and not Path(log).exists():
        yield Finding(
            f"its dataset {log} is not there: to continue the run, name the place where it is now", note=True
        )


def _alarms(path: Path) -> Iterator[Finding]:
    try:
        diverged = alarms.read_alarms(path)
    except RunError as problem:
        yield Finding(str(problem), RunError)
        return
    if diverged:
        seeds = some_of([f"seed {seed} at step {alarm.step:,}" for seed, alarm in diverged.items()], SHOWN)
        remedy = "--step healthy takes its last healthy policy; a conservative agent or a larger log may help"
        yield Finding(f"values diverged in {seeds}: {remedy}", note=True)


def _versions(path: Path) -> Iterator[Finding]:
    try:
        made_with = json.loads((path / "versions.json").read_text("utf-8"))
        now = run_folder.versions()
        other = [f"{name} {made_with[name]}" for name in now if made_with.get(name, now[name]) != now[name]]
    except (OSError, ValueError, AttributeError, TypeError):
        yield Finding(f"{path / 'versions.json'} is missing or damaged: nothing else needs it", note=True)
        return
    if other:
        yield Finding(f"it was made with {some_of(other, SHOWN)}: the last digits may differ here", note=True)


def _holder(path: Path) -> Iterator[Finding]:
    """The process that has the folder open, or one that died with it open."""
    if not (path / HOLDER).exists():
        return
    who = (path / HOLDER).read_text("utf-8", errors="replace")
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
        title, jobs = status.read_jobs(path)
    except RunError as problem:
        yield Finding(str(problem), RunError)
        return
    states = [status.job_status(job, path) for job in jobs]
    counts = {state.state: 0 for state in states}
    for state in states:
        counts[state.state] += 1
    words = ", ".join(f"{count} {state}" for state, count in counts.items())
    yield Finding(f"{path} is the study {title}: {len(jobs)} runs, {words}")
    wrong = [state for state in states if state.state in ("failed", "by other settings")]
    for state in wrong[:SHOWN]:
        remedy = "the same command tries it again" if state.state == "failed" else "--restart begins it again"
        reason = state.complaint.strip().rpartition("\n")[2]
        yield Finding(f"{state.name} {state.state} ({reason}): {remedy}", RunError)
    if len(wrong) > SHOWN:
        yield Finding(f"{len(wrong) - SHOWN} more runs failed: optimist study status {path}", RunError)
