"""Gradient steps per second on the MinAtar network: our agents, single and fused, beside eager PyTorch.

The parts are timed in turns and compared within a round, because machines are shared and noisy; a ratio is
the median over rounds.
"""

import time
from collections.abc import Callable
from statistics import median

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from optimist.agents import preset
from optimist.data import from_arrays
from optimist.data.sampling import Sampler
from optimist.training.feeding import feed_of
from optimist.training.learner import Learner, advance

ROUNDS, STEPS, TRANSITIONS = 7, 200, 50_000


def logged_play() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        "observations": random.random((TRANSITIONS, 10, 10, 4)) < 0.1,
        "actions": random.integers(0, 3, TRANSITIONS).astype(np.int32),
        "rewards": random.random(TRANSITIONS).astype(np.float32),
        "terminals": random.random(TRANSITIONS) < 0.01,
    }


def ours(agent_name: str, seeds: int, play: dict) -> Callable[[], None]:
    dataset = from_arrays(**play, truncations=False)
    return training(agent_name, [Sampler(dataset, seed=seed) for seed in range(seeds)], STEPS)


def training(agent_name: str, samplers: list[Sampler], steps: int) -> Callable[[], None]:
    """A compiled function that trains one seed per sampler for `steps` steps."""
    learner, home = Learner(preset(agent_name), samplers[0].dataset.spec), feed_of(samplers)
    state, done = learner.init(tuple(range(len(samplers)))), 0

    def chunk() -> None:
        nonlocal state, done
        state, losses = advance(learner, state, home.minibatch, home.resident, home.items(done, steps))
        jax.block_until_ready(losses)
        done += steps

    chunk()
    return chunk


def eager_pytorch() -> Callable[[], None]:
    from benchmarks.peer_torch import TableUpdates

    peer = TableUpdates("rem", "minatar", batch=32, tuned=False)

    def chunk() -> None:
        for _ in range(STEPS):
            peer.step()

    chunk()
    return chunk


def rate(chunk: Callable[[], None], updates: int) -> float:
    start = time.perf_counter()
    chunk()
    return updates / (time.perf_counter() - start)


def main() -> None:
    play = logged_play()
    parts = {"REM in eager PyTorch": (eager_pytorch(), STEPS)}
    for name in ("dqn", "qr_dqn", "rem"):
        for seeds in (1, 3):
            parts[f"{name}, {seeds} fused" if seeds > 1 else name] = (ours(name, seeds, play), STEPS * seeds)
    rounds = [{label: rate(*part) for label, part in parts.items()} for _ in range(ROUNDS)]
    table = Table("MinAtar network, batch 32", "updates/s, median", "x PyTorch REM", "x DQN", title="learner")
    for label in parts:
        against = [median(r[label] / r[base] for r in rounds) for base in ("REM in eager PyTorch", "dqn")]
        table.add_row(
            label, f"{median(r[label] for r in rounds):,.0f}", *(f"{value:.2f}" for value in against)
        )
    Console().print(table)
    speed_up = median(r["rem"] / r["REM in eager PyTorch"] for r in rounds)
    cost = median(r["dqn"] / r["rem"] for r in rounds)
    print(f"REM (200 heads) does {speed_up:.1f} times the steps of eager PyTorch (promised: 3)")
    print(f"a REM step costs {cost:.2f} times a DQN step (promised: at most 1.3)")
