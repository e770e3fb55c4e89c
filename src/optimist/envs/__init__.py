"""Where a policy acts: lanes of an environment behind one interface, found by the name "family/game"."""

import numpy as np

from optimist.envs._environment import Environment, Step
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
    "Lane",
    "Lanes",
    "Step",
    "available",
    "base_name",
    "families",
    "from_data",
    "lane_seeds",
    "make",
    "make_lanes",
    "named",
    "options_of",
]


def make(name: str, *, lanes: int = 1, seed: int = 0, processes: int | None = None, **options) -> Environment:
    """The environment called "family/game"; `options` are those of the family's own `make`. Simulators that
    leave other cores idle share their lanes out to `processes`, by the cores unless said; that changes
    nothing but the time it takes."""
    if lanes < 1 or seed < 0 or (processes is not None and processes < 1):
        raise UsageError(
            f"lanes={lanes}, seed={seed}, processes={processes}: at least one lane and process and a seed "
            "from 0 upwards, please"
        )
    from optimist.envs._workers import Split, usual_processes

    family, _ = found(name)
    if not getattr(family, "ON_ONE_CORE", False):
        if processes not in (None, 1):
            raise UsageError(f"{base_name(name)} is not shared out to processes: leave processes out")
        processes = 1
    seeds, count = lane_seeds(seed, lanes), min(lanes, processes or usual_processes(lanes))
    return Split(name, seeds, options, count) if count > 1 else make_lanes(name, seeds, **options)


def lane_seeds(seed: int, lanes: int) -> list[int]:
    """One independent seed per lane."""
    return [int(child.generate_state(1)[0]) for child in np.random.SeedSequence(seed).spawn(lanes)]
