"""What is wrong with an installation, a device or a disk, and how to mend it."""

import importlib.metadata
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from optimist.data import machine
from optimist.errors import StorageError, UsageError
from optimist.studies.diagnosis.finding import Finding

DISTRIBUTION = "optimist-rl"
NEWEST_TRIED = (3, 14)
LITTLE_ROOM = 2 * 2**30  # bytes; the kept policies of one run may take that much


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
    """The device that JAX uses, and a GPU that it does not use."""
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
