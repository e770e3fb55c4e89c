"""The memory that this run may use, and the least that a run needs, computed before it is allocated."""

import math
import os
from pathlib import Path

import jax
import numpy as np

from optimist import envs
from optimist.agents._agent import Agent
from optimist.data import machine
from optimist.data.transition import Spec
from optimist.errors import UsageError
from optimist.training.learner import Learner
from optimist.training.settings import Collection

RUNS_PER_MACHINE = "OPTIMIST_RUNS_PER_MACHINE"  # runs that share this machine; an engine sets both variables
RUNS_PER_GPU = "OPTIMIST_RUNS_PER_GPU"
MOUNTED = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
MOST_STEPS = 2**31 - 1  # JAX counts steps in 32 bits
LANE = 1024  # bytes of an environment besides its frames, at least
POSITION = 8  # bytes of the number of a drawn transition


def host_bytes() -> int:
    """This run's share of the machine's memory, or of the part of it that this process was given."""
    limits = [machine.memory(), *cgroup_limits()]
    # SLURM's limit in MiB, which not every cluster enforces by a cgroup; 0 is all of the node's.
    per_node, per_cpu, cores = (
        _number(f"SLURM_{name}") for name in ("MEM_PER_NODE", "MEM_PER_CPU", "CPUS_ON_NODE")
    )
    limits += [mebibytes * 2**20 for mebibytes in (per_node, per_cpu * cores) if mebibytes]
    return min(limits) // max(1, _number(RUNS_PER_MACHINE))


def device_bytes() -> int | None:
    """This run's share of the accelerator's memory; None on a CPU."""
    limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit")
    return limit // max(1, _number(RUNS_PER_GPU)) if limit else None


def _number(variable: str) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else 0


def cgroup_limits() -> list[int]:
    """The limits of the cgroup of this process and of those around it; version 1 has a tree of its own for
    memory. Inside a container the tree begins at the container's own cgroup."""
    limits = []
    for line in MEMBERSHIP.read_text().splitlines() if MEMBERSHIP.exists() else ():  # on Linux
        _, controllers, path = line.split(":", 2)
        root, name = MOUNTED, "memory.max"
        if "memory" in controllers.split(","):
            root, name = MOUNTED / "memory", "memory.limit_in_bytes"
        elif controllers:
            continue
        group = root / path.strip("/")
        files = [folder / name for folder in (group, *group.parents) if folder.is_relative_to(root)]
        texts = [file.read_text().strip() for file in files if file.exists()]
        limits += [int(text) for text in texts if text.isdecimal()]  # "max" is no limit
    return limits


def state_bytes(learner: Learner, seeds: int) -> int:
    """Parameters, targets, the optimiser's moments, and gradients."""
    if learner.agent.target_period > MOST_STEPS:
        raise UsageError(f"target_period is {learner.agent.target_period}: choose at most {MOST_STEPS}")
    shapes = learner.shapes((0,))
    # In Python's integers, which do not overflow.
    return seeds * sum(
        math.prod(map(int, leaf.shape)) * leaf.dtype.itemsize
        for leaf in jax.tree.leaves((shapes, shapes.params))
    )


def batch_bytes(spec: Spec, batch: int, seeds: int, chunk: int = 1) -> int:
    """A stored minibatch, its observations as the network reads them, and the drawn positions of a chunk."""
    cells = math.prod(spec.observation_shape)
    stored = 2 * cells * np.dtype(spec.frame_dtype).itemsize
    return seeds * batch * (stored + 4 * cells + POSITION * chunk)


def lanes_bytes(spec: Spec, lanes: int, slots: int = 2) -> int:
    """Parallel environments, and the `slots` steps of each that are kept."""
    return lanes * (LANE + slots * (spec.frame_bytes + 10))


def check_memory(needs: dict[str, int]) -> None:
    """Raise UsageError if the needs exceed the available memory."""
    needed, available = sum(needs.values()), available_bytes()
    if needed > available:
        parts = ", ".join(f"{name} {_gib(size)}" for name, size in needs.items() if size > needed // 100)
        raise UsageError(
            f"this needs at least {_gib(needed)} of memory ({parts}), and {_gib(available)} are available: "
            "choose smaller settings"
        )


def available_bytes() -> int:
    """This run's share of the memory of the device, or, on a CPU, of the machine."""
    return device_bytes() or host_bytes()


def _gib(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"


def check_memory_to_play(agent: Agent, environment: str, collection: Collection, seeds: int) -> None:
    """Raise UsageError if a collection does not fit into memory; only one lane is created to find out."""
    spec = envs.spec_of(environment)
    agent.check(spec)
    slots = max(collection.window // collection.lanes, spec.stack + 2)
    evaluated = collection.evaluate_every is not None and collection.evaluation_steps is None
    check_memory(
        {
            "parameters": state_bytes(Learner(agent, spec), seeds),
            "batches": batch_bytes(spec, collection.batch, seeds),
            "lanes and replay window": lanes_bytes(spec, seeds * collection.lanes, slots),
            "evaluation": lanes_bytes(spec, seeds * collection.episodes) if evaluated else 0,
        }
    )
