"""Gradient steps per second of every agent on the MinAtar and the Nature network, one seed and several fused.

`python -m benchmarks agents` prints a table and, if OUT names a folder, writes it there as CSV. results
has the table of an H200.
"""

import csv
import os
import time
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from optimist.agents import available, presets
from optimist.agents._agent import Agent
from optimist.data.transition import Spec, Transition
from optimist.training.learner import Learner, advance

SPECS = {
    "minatar": Spec((10, 10, 4), "bool", actions=3),
    "nature": Spec((84, 84, 1), "uint8", actions=6, stack=4),
}
FUSED = {"minatar": (1, 5), "nature": (1, 5)}
MANY = 25  # seeds that are also fused on the MinAtar network if there is an accelerator
CHUNK = {"minatar": 200, "nature": 20}  # gradient steps per call
SECONDS = 1.0  # shortest duration of one timing
BATCH, STATES = 32, 4096


def resident(spec: Spec) -> Transition:
    """Random transitions on the device."""
    random = np.random.default_rng(0)
    observation = random.integers(0, 2, (STATES, *spec.observation_shape)).astype(spec.frame_dtype)
    reward = random.random(STATES).astype(np.float32)
    action = random.integers(0, spec.actions, STATES).astype(np.int32)
    transitions = Transition(
        observation, action, reward, np.full(STATES, 0.99, np.float32), observation[::-1]
    )
    return jax.device_put(transitions)


def gather(transitions: Transition, item) -> Transition:
    return Transition(*(column[item] for column in transitions))


def updates_per_second(agent: Agent, spec: Spec, seeds: int, chunk: int) -> float:
    """Updates of all seeds together, without compilation."""
    learner, data = Learner(agent, spec), resident(spec)
    state = learner.init(tuple(range(seeds)))
    items = jax.device_put(
        np.random.default_rng(1).integers(0, STATES, (chunk, seeds, BATCH)).astype(np.int32)
    )
    state = jax.block_until_ready(advance(learner, state, gather, data, items)[0])
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        state = jax.block_until_ready(advance(learner, state, gather, data, items)[0])
        done += chunk
    return done * seeds / (time.perf_counter() - start)


def fused(network: str) -> tuple[int, ...]:
    large = network == "minatar" and jax.default_backend() != "cpu"
    return (*FUSED[network], MANY) if large else FUSED[network]


def measured(networks: list[str]) -> list[dict]:
    rows = []
    for network in networks:
        for name in available():
            for preset, agent in list(presets(name).items())[:2]:
                for seeds in fused(network) if agent.objectives(SPECS[network]) else ():
                    rate = updates_per_second(agent, SPECS[network], seeds, CHUNK[network])
                    rows.append(
                        {"network": network, "agent": name, "preset": preset, "seeds": seeds, "rate": rate}
                    )
                    print(f"{network} {name} {preset} x {seeds}: {rate:,.0f} updates/s", flush=True)
    return rows


def main() -> None:
    rows = measured(os.environ.get("NETWORKS", "minatar,nature").split(","))
    device = jax.devices()[0].device_kind
    table = Table(
        "network", "agent", "preset", "seeds", "updates/s, in all", "x one seed", "x DQN", title=device
    )
    one = {(r["network"], r["agent"], r["preset"]): r["rate"] for r in rows if r["seeds"] == 1}
    dqn = {(r["network"], r["seeds"]): r["rate"] for r in rows if r["preset"] == "nature"}
    for row in rows:
        alone = one[row["network"], row["agent"], row["preset"]]
        ratios = (row["rate"] / alone, row["rate"] / dqn[row["network"], row["seeds"]])
        words = (row["network"], row["agent"], row["preset"], str(row["seeds"]), f"{row['rate']:,.0f}")
        table.add_row(*words, *(f"{ratio:.2f}" for ratio in ratios))
    Console().print(table)
    if "OUT" in os.environ:
        with open(Path(os.environ["OUT"]) / "learner.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows({**row, "rate": round(row["rate"], 1)} for row in rows)
