"""Updates per second of the learner: agents on three networks, with the data on the device."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from optimist.agents import preset
from optimist.data.dataset import Dataset
from optimist.data.sampling import Sampler
from optimist.studies.bench.limits import arithmetic, memory
from optimist.studies.bench.timing import Gauge, Subject, Work
from optimist.training.feeding import Feed, feed_of
from optimist.training.learner import Learner, advance

NETWORKS = {  # the shape of a frame, how many are stacked, and the actions
    "minatar": ((10, 10, 4), 1, 3),
    "nature": ((84, 84, 1), 4, 18),
    "control": ((17,), 1, 6),
}
TRANSITIONS = {"minatar": 50_000, "nature": 5_000, "control": 50_000}
# Updates in one call: enough to keep an accelerator busy, and on a CPU to hide that a call gets new memory
# from the system, which took up to 8% of two updates with the Atari network. A run makes 50 of them at once.
STEPS = {"minatar": 50, "nature": 10, "control": 20}
STEPS_ON_ACCELERATOR = {"minatar": 2_000, "nature": 200, "control": 1_000}


def random_log(network: str, transitions: int | None = None) -> Dataset:
    """A log of random numbers in the shapes of MinAtar, of Atari, or of HalfCheetah."""
    random = np.random.default_rng(0)
    (shape, stack, actions), count = NETWORKS[network], transitions or TRANSITIONS[network]
    common: dict[str, Any] = {
        "rewards": random.random(count),
        "terminals": (random.random(count) < 0.01) | (np.arange(count) == count - 1),
        "truncations": False,
    }
    if network == "control":
        return Dataset.from_arrays(
            random.normal(size=(count, *shape)).astype(np.float32),
            random.uniform(-1, 1, (count, actions)).astype(np.float32),
            action_low=-1.0,
            action_high=1.0,
            **common,
        )
    frames = random.integers(0, 256, (count, *shape), np.uint8)
    return Dataset.from_arrays(
        frames if network == "nature" else frames < 26,
        random.integers(0, actions, count),
        actions_count=actions,
        stack=stack,
        **common,
    )


def learning(agent: str, log: Dataset, network: str, batch: int, seeds: int) -> Work:
    """The updates of all seeds together."""
    learner = Learner(preset(agent), log.spec)
    reads = learner.agent.reads_next_action
    samplers = [Sampler(log, batch=batch, seed=seed, next_actions=reads) for seed in range(seeds)]
    home = feed_of(samplers, "device")
    steps = (STEPS if jax.default_backend() == "cpu" else STEPS_ON_ACCELERATOR)[network]
    subject = Subject("learner", agent, network, batch, seeds, "updates/s")
    return Work(subject, updating(learner, home, seeds, steps), _needs(learner, home))


def updating(learner: Learner, home: Feed, seeds: int, steps: int) -> Callable[[], int]:
    """A function that makes so many further updates of every seed, and returns their number."""
    state, done = learner.init(tuple(range(seeds))), 0

    def do() -> int:
        nonlocal state, done
        state, losses = advance(learner, state, home.minibatch, home.resident, home.items(done, steps))
        jax.block_until_ready(losses)
        done += steps
        return steps * seeds

    return do


def _needs(learner: Learner, home: Feed) -> list[tuple[Gauge, float]]:
    """The least work of an update of one seed: the arithmetic of its losses and gradients as written, one
    read and one write of all weights and moments, and one read of the targets."""
    state = jax.tree.map(lambda leaf: leaf[0] if leaf.ndim else leaf, learner.init((0,)))
    batch = home.minibatch(home.resident, jax.tree.map(lambda leaf: leaf[0, 0], home.items(0, 1)))
    operations = 0.0
    for objective in learner.agent.objectives(learner.spec):

        def loss(group, objective=objective):
            params = {**state.params, objective.name: group}
            return objective.loss(params, state.targets, batch, state.key)

        program = jax.jit(jax.value_and_grad(loss)).lower(state.params[objective.name])
        counted = program.cost_analysis() or {"flops": 0.0}  # some backends do not count operations
        operations += counted["flops"] / objective.period
    changed, read = _bytes((state.params, state.slots)), _bytes(state.targets)
    through_memory = (memory(changed + read), float(2 * changed + read))
    return [(arithmetic(), operations), through_memory] if operations else [through_memory]


def _bytes(tree: Any) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))
