"""Seconds of FQE, the slow part of `optimist select`: 25 policies, 10,000 updates, a log of 100,000 steps.

The goal of an H200 is `POLICIES=125 UPDATES=50000 GAME=1` within 90 s: five seeds with 25 policies each, on
images of MinAtar's size. `LOGS=5` gives each fifth of the policies another log.
"""

import os
import time

import jax
import jax.numpy as jnp
import numpy as np

from optimist.choosing.evidence import Rewards, Steps
from optimist.choosing.regression import CHUNK, Critic, FittedQ, Own, batch_size, fitted
from optimist.data import Dataset

POLICIES, UPDATES = int(os.environ.get("POLICIES", 25)), int(os.environ.get("UPDATES", 10_000))
LOGS, STEPS, ACTIONS = int(os.environ.get("LOGS", 1)), 100_000, 4


def log() -> Dataset:
    random = np.random.default_rng(0)
    images = bool(os.environ.get("GAME"))
    observations = random.random((STEPS, 10, 10, 4)) < 0.1 if images else random.normal(size=(STEPS, 8))
    return Dataset.from_arrays(
        observations,
        random.integers(ACTIONS, size=STEPS),
        random.normal(size=STEPS),
        random.random(STEPS) < 0.01,
        truncations=False,
        **({"channels": "last"} if images else {}),
    )


def main() -> None:
    random, data = np.random.default_rng(1), log()
    logs = [data.fraction(0.9, seed) for seed in range(LOGS)] if LOGS > 1 else [data]
    steps = Steps(logs, Rewards(0.99, None), batch_size(data.spec))
    actions = random.integers(ACTIONS, size=(POLICIES, STEPS)).astype(np.int32)
    own = Own(jnp.asarray(actions), jnp.asarray(random.random((POLICIES, STEPS)) < 0.9))
    problem = FittedQ(Critic(data.spec, None, columns=2), lowest=0.0, possible=(-100.0, 100.0))
    whose = np.arange(POLICIES) % LOGS
    jax.block_until_ready(fitted(problem, steps, whose, own, CHUNK))  # compiles
    start = time.perf_counter()
    jax.block_until_ready(fitted(problem, steps, whose, own, UPDATES))
    seconds = time.perf_counter() - start
    print(f"FQE of {POLICIES} policies, {UPDATES:,} updates, {LOGS} logs, {data.spec.in_words()}:")
    print(f"  {seconds:6.1f} s (promised: under 180 on two cores for 25 policies and 10,000 updates)")
