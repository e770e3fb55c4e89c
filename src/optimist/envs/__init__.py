"""Environments: lanes of one game behind one interface, found by the name "family/game"."""

import numpy as np

from optimist.envs._environment import Environment, Step
from optimist.envs._halves import Group, Halves, groups_of, joined
from optimist.envs._lanes import Lane, Lanes
from optimist.envs._registry import (
    available,
    base_name,
    families,
    found,
    from_data,
    make_lanes,
    named,
    options_of,
)
from optimist.errors import UsageError

__all__ = [
    "Environment",
    "Group",
    "Halves",
    "Lane",
    "Lanes",
    "Step",
    "available",
    "base_name",
    "families",
    "from_data",
    "groups_of",
    "joined",
    "lane_seeds",
    "make",
    "make_halves",
    "make_lanes",
    "named",
    "options_of",
]


def make(name: str, *, lanes: int = 1, seed: int = 0, processes: int | None = None, **options) -> Environment:
    """The environment called "family/game"; `options` are those of the family's `make`. The lanes of a
    simulator that uses one core are divided among `processes`, by default by the number of cores. The number
    of processes affects only the speed."""
    if lanes < 1 or seed < 0 or (processes is not None and processes < 1):
        raise UsageError(
            f"lanes={lanes}, seed={seed}, processes={processes}: lanes and processes must be at least 1, "
            "and seed at least 0"
        )
    from optimist.envs._workers import Split, usual_processes

    family, _ = found(name)
    if not getattr(family, "ON_ONE_CORE", False):
        if processes not in (None, 1):
            raise UsageError(f"{base_name(name)} cannot be divided among processes: omit processes")
        processes = 1
    seeds, count = lane_seeds(seed, lanes), min(lanes, processes or usual_processes(lanes))
    return Split(name, seeds, options, count) if count > 1 else make_lanes(name, seeds, **options)


def make_halves(name: str, *, lanes: int, seed: int = 0, **options) -> Environment:
    """The same environment with the same lanes; if its family has `PLAYS_BESIDE`, in two halves. An
    environment that is `resumable` stays whole, because its state is saved when all lanes are at one step."""
    if lanes > 1 and getattr(found(name)[0], "PLAYS_BESIDE", False):
        seeds, half = lane_seeds(seed, lanes), lanes // 2
        first, second = (make_lanes(name, part, **options) for part in (seeds[:half], seeds[half:]))
        if not getattr(first, "resumable", False):
            return Halves(first, second)
        first.close()
        second.close()
    return make(name, lanes=lanes, seed=seed, **options)


def lane_seeds(seed: int, lanes: int) -> list[int]:
    """One independent seed per lane."""
    return [int(child.generate_state(1)[0]) for child in np.random.SeedSequence(seed).spawn(lanes)]
