"""The memory that this run may use: its share of the cgroup's limit, the scheduler's, or the machine's."""

import os
from pathlib import Path

import jax

from optimist.data import machine

RUNS_PER_MACHINE = "OPTIMIST_RUNS_PER_MACHINE"  # runs that share this machine; an engine sets both variables
RUNS_PER_GPU = "OPTIMIST_RUNS_PER_GPU"
MOUNTED = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def host_bytes() -> int:
    """This run's share of the machine's memory, or of the part of it that this process was given."""
    return min([machine.memory(), *cgroup_limits(), *_scheduler_limits()]) // _runs(RUNS_PER_MACHINE)


def device_bytes() -> int | None:
    """This run's share of the accelerator's memory; None on a CPU."""
    limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit")
    return limit // _runs(RUNS_PER_GPU) if limit else None


def _runs(variable: str) -> int:
    text = os.environ.get(variable, "")
    return max(1, int(text)) if text.isdecimal() else 1


def cgroup_limits() -> list[int]:
    """The limits of the cgroup of this process and of those around it; version 1 has a tree of its own for
    memory. Inside a container the tree begins at the container's own cgroup."""
    if not MEMBERSHIP.exists():  # not Linux
        return []
    found = []
    for line in MEMBERSHIP.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            found += _limits(MOUNTED, path, "memory.max")
        elif "memory" in controllers.split(","):
            found += _limits(MOUNTED / "memory", path, "memory.limit_in_bytes")
    return found


def _limits(root: Path, path: str, name: str) -> list[int]:
    group = root / path.strip("/")
    files = [folder / name for folder in (group, *group.parents) if folder.is_relative_to(root)]
    texts = [file.read_text().strip() for file in files if file.exists()]
    return [int(text) for text in texts if text.isdecimal()]  # "max" is no limit


def _scheduler_limits() -> list[int]:
    """SLURM's limit in MiB, which not every cluster enforces by a cgroup."""
    words = {name: os.environ.get(f"SLURM_{name}", "") for name in ("MEM_PER_NODE", "MEM_PER_CPU")}
    cores = os.environ.get("SLURM_CPUS_ON_NODE", "")
    found = [int(words["MEM_PER_NODE"])] if words["MEM_PER_NODE"].isdecimal() else []
    if words["MEM_PER_CPU"].isdecimal() and cores.isdecimal():
        found.append(int(words["MEM_PER_CPU"]) * int(cores))
    return [mebibytes * 2**20 for mebibytes in found if mebibytes]  # 0 is all of the node's
