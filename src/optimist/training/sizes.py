"""The least memory that an experiment needs, computed before any of it is allocated."""

import math

import jax
import numpy as np

from optimist import envs
from optimist.agents._agent import Agent
from optimist.data.transition import Spec
from optimist.errors import UsageError
from optimist.training import memory
from optimist.training.learner import Learner
from optimist.training.online_settings import Collection

MOST_STEPS = 2**31 - 1  # JAX counts steps in 32 bits
LANE = 1024  # bytes of an environment besides its frames, at least
POSITION = 8  # bytes of the number of a drawn transition


def state_bytes(learner: Learner, seeds: int) -> int:
    """Parameters, targets, the optimiser's moments, and gradients."""
    if learner.agent.target_period > MOST_STEPS:
        raise UsageError(f"target_period is {learner.agent.target_period}: choose at most {MOST_STEPS}")
    shapes = learner.shapes((0,))
    return seeds * (_bytes(shapes) + _bytes(shapes.params))


def _bytes(tree) -> int:
    # In Python's integers, which do not overflow.
    return sum(math.prod(map(int, leaf.shape)) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def batch_bytes(spec: Spec, batch: int, seeds: int, chunk: int = 1) -> int:
    """A stored minibatch, its observations as the network reads them, and the drawn positions of a chunk."""
    cells = math.prod(spec.observation_shape)
    stored = 2 * cells * np.dtype(spec.frame_dtype).itemsize
    return seeds * batch * (stored + 4 * cells + POSITION * chunk)


def lanes_bytes(spec: Spec, lanes: int, slots: int = 2) -> int:
    """Parallel environments, and the `slots` steps of each that are kept."""
    step = math.prod(spec.frame_shape) * np.dtype(spec.frame_dtype).itemsize + 10
    return lanes * (LANE + slots * step)


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
    return memory.device_bytes() or memory.host_bytes()


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
