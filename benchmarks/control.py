"""Gradient steps per second on action vectors: our actor-critics, single and fused, beside eager PyTorch.

The sizes are HalfCheetah's, the batch size is that of Fujimoto et al. As in `learner`, the parts are timed in
turns and compared within a round; a ratio is the median over rounds. Most of the work is matrix products, so
the number of cores of each side matters: if PyTorch's threads share cores, they wait for each other, and
OMP_NUM_THREADS=1 makes it faster.
"""

import importlib.util
from collections.abc import Callable
from statistics import median

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.learner import rate, training
from optimist.data import from_arrays
from optimist.data.sampling import Sampler

ROUNDS, TRANSITIONS, BATCH = 5, 50_000, 100
STEPS = 20 if jax.default_backend() == "cpu" else 2_000  # of one part in one round, about a second
OBSERVATION, ACTION = 17, 6
FUSED = {"td3": (1, 5), "ddpg": (1, 5, 15), "bcq": (1, 5)}
PEER = "PyTorch td3"


def logged_play() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        "observations": random.normal(size=(TRANSITIONS, OBSERVATION)).astype(np.float32),
        "actions": random.uniform(-1, 1, (TRANSITIONS, ACTION)).astype(np.float32),
        "rewards": random.random(TRANSITIONS).astype(np.float32),
        "terminals": random.random(TRANSITIONS) < 0.001,
    }


def ours(agent_name: str, seeds: int, play: dict) -> Callable[[], None]:
    dataset = from_arrays(**play, truncations=False, action_low=-1.0, action_high=1.0)
    return training(agent_name, [Sampler(dataset, batch=BATCH, seed=seed) for seed in range(seeds)], STEPS)


def eager_pytorch() -> Callable[[], None]:
    from benchmarks.peer_torch import Td3Updates

    peer = Td3Updates(BATCH, tuned=False, compiled=False)

    def chunk() -> None:
        for _ in range(STEPS):
            peer.step()
        peer.critics[0][0].bias.tolist()  # waits for an accelerator

    chunk()
    return chunk


def main() -> None:
    play, parts = logged_play(), dict[str, tuple[Callable[[], None], int]]()
    if importlib.util.find_spec("torch"):
        parts[PEER] = (eager_pytorch(), STEPS)
    else:
        print("PyTorch is not installed, so nothing is compared with it: pip install 'optimist[bench]'")
    for name, sizes in FUSED.items():
        for seeds in sizes:
            parts[f"{name}, {seeds} fused" if seeds > 1 else name] = (ours(name, seeds, play), STEPS * seeds)
    rounds = [{label: rate(*part) for label, part in parts.items()} for _ in range(ROUNDS)]
    print_rates(rounds)
    if PEER in parts:
        speed_up = median(r["td3"] / r[PEER] for r in rounds)
        threads = importlib.import_module("torch").get_num_threads()
        print(f"TD3 does {speed_up:.1f} times the steps of eager PyTorch on {threads} threads (promised: 3)")


def print_rates(rounds: list[dict[str, float]]) -> None:
    bases = [base for base in (PEER, "td3") if base in rounds[0]]
    heads = ["updates/s, median", *(f"x {base}" for base in bases)]
    table = Table(f"400-300, batch {BATCH}, on {jax.default_backend()}", *heads, title="control")
    for label in rounds[0]:
        against = [f"{median(r[label] / r[base] for r in rounds):.2f}" for base in bases]
        table.add_row(label, f"{median(r[label] for r in rounds):,.0f}", *against)
    Console().print(table)
