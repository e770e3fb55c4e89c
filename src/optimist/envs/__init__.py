"""Environments: lanes of one game behind one interface, found by the name "family/game"."""

from contextlib import closing

import numpy as np

from optimist.data.transition import Spec
from optimist.envs._environment import Environment, Step, named_failures
from optimist.envs._lanes import Lane, Lanes
from optimist.envs._registry import (
    available,
    base_name,
    code,
    families,
    family_and_game,
    from_data,
    game_of,
    games_of,
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
    "code",
    "families",
    "from_data",
    "game_of",
    "games_of",
    "gives_masks",
    "has_masks",
    "lane_seeds",
    "make",
    "make_lanes",
    "named",
    "options_of",
    "spec_of",
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

    family, _ = family_and_game(name)
    if not getattr(family, "ON_ONE_CORE", False):
        if processes not in (None, 1):
            raise UsageError(f"{base_name(name)} cannot be divided among processes: omit processes")
        processes = 1
    seeds, count = lane_seeds(seed, lanes), min(lanes, processes or usual_processes(lanes))
    return Split(name, seeds, options, count) if count > 1 else make_lanes(name, seeds, **options)


def spec_of(name: str) -> Spec:
    """The frames and actions of the environment, which is made and closed to find out."""
    play = make(name)
    play.close()
    return play.spec


def gives_masks(play: Environment) -> bool:
    """Does a new environment say which actions can be chosen? Its first observation tells."""
    if play.spec.discrete and hasattr(play, "allowed"):
        with named_failures(play.name):
            play.reset()
    return getattr(play, "allowed", None) is not None


def has_masks(name: str) -> bool:
    """The same of an environment that is made and closed to find out."""
    with closing(make(name)) as play:
        return gives_masks(play)


def lane_seeds(seed: int, lanes: int) -> list[int]:
    """One independent seed per lane."""
    return [int(child.generate_state(1)[0]) for child in np.random.SeedSequence(seed).spawn(lanes)]
