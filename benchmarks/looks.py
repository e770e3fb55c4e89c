"""The share of the time that the guard against divergence takes: a look at the values in 1,024 logged states.

There is a look every 1,000 gradient steps. BCQ's is the dearest: it imagines ten actions in a state, a
hundred in the version of 2020. AGENTS names others, such as AGENTS=td3,iql.
"""

import os
import time

import jax
import numpy as np

from optimist.agents import preset
from optimist.data import Dataset
from optimist.data.sampling import Sampler
from optimist.training import guard
from optimist.training.feeding import feed_of
from optimist.training.guard import EVERY
from optimist.training.learner import Learner, advance

STEPS, LOGGED, ROUNDS = 50, 20_000, 4  # gradient steps of one program, transitions, repetitions


def log() -> Dataset:
    """HalfCheetah's shapes."""
    random = np.random.default_rng(0)
    return Dataset.from_arrays(
        random.normal(size=(LOGGED, 17)).astype(np.float32),
        random.uniform(-1, 1, size=(LOGGED, 6)).astype(np.float32),
        random.normal(size=LOGGED),
        np.arange(LOGGED) % 1000 == 999,
        truncations=False,
        action_low=-1.0,
        action_high=1.0,
    )


def main() -> None:
    data = log()
    for word in os.environ.get("AGENTS", "bcq:2019,bcq:2020").split(","):
        name, _, version = word.partition(":")
        learner = Learner(preset(name, version or None), data.spec)
        samplers = [Sampler(data, 100, 0.99, 1, None, 0, 1.0, learner.agent.reads_next_action)]
        feed, states, state = (
            feed_of(samplers, "device", None),
            guard.probes_of(samplers),
            learner.init((0,)),
        )
        step, look = list[float](), list[float]()
        for number in range(ROUNDS + 1):  # the first compiles
            start = time.perf_counter()
            items = feed.items(number * STEPS, STEPS)
            state, _ = jax.block_until_ready(advance(learner, state, feed.minibatch, feed.resident, items))
            between = time.perf_counter()
            jax.block_until_ready(guard.answers(learner, 1, state.params, states))
            step.append((between - start) / STEPS)
            look.append(time.perf_counter() - between)
        share = np.median(look[1:]) / (EVERY * np.median(step[1:]))
        print(f"{word}: a look takes as long as {share * EVERY:.1f} gradient steps, {share:.2%} of the time")
