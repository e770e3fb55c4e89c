"""Does `optimist select` answer truly? It is asked about logs of three simulators whose values are known.

`python -m benchmarks choice`; `ONLY=shop` takes one simulator, `SEEDS=3` more logs of each kind. A log comes
from the simulator's behaviour, from what is usual there with 20% random actions, or from the best policy with
10% random ones. Logs with an odd seed have no propensities. A fifth of the episodes is held out.
"""

import logging
import os
import tempfile
from pathlib import Path
from typing import Any

import optimist
from benchmarks.simulators import SIMULATORS, Simulator

EPISODES = {"shop": 1500, "clinic": 1000, "plant": 250}  # 10,000 to 14,000 steps
AGENTS, UPDATES = ("behaviour_cloning", "cql"), 2_000
SEEDS, ONLY = int(os.environ.get("SEEDS", 2)), os.environ.get("ONLY", "")


def kinds(simulator: Simulator) -> dict[str, Simulator]:
    """The simulator with each kind of log."""
    return {
        "as it is": simulator,
        "usual, 20% random": simulator.exploring(0.2),
        "best, 10% random": simulator.exploring(0.1, simulator.best().argmax(axis=1)),
    }


def chosen_on(simulator: Simulator, seed: int, folder: Path) -> tuple[Any, float]:
    """What `select` says about two agents that learned from a log, and the true gain of its first policy."""
    data = simulator.log(EPISODES[simulator.name], seed, propensities=seed % 2 == 0)
    runs = [
        optimist.train(
            agent, data, out=folder / agent, steps=UPDATES, evaluate_every=UPDATES // 2, hold_out=0.2,
            gamma=simulator.gamma, environment="none",
        )
        for agent in AGENTS
    ]  # fmt: skip
    found = optimist.select(runs, data=data, updates=UPDATES)
    first = found.ranking[0]
    policy = optimist.load(first.run, step=first.step).policy
    return found, simulator.value(simulator.played(policy)) - simulator.value(simulator.behaviour)


def main() -> None:
    logging.disable(logging.WARNING)
    print(
        "| simulator | log | seed | answer | first policy | FQE alone | gain | true gain |",
        "|---" * 8 + "|",
        sep="\n",
    )
    for name in [ONLY] if ONLY else SIMULATORS:
        for kind, simulator in kinds(SIMULATORS[name]()).items():
            for seed in range(SEEDS):
                with tempfile.TemporaryDirectory() as folder:
                    found, true = chosen_on(simulator, seed, Path(folder))
                first, answer = found.ranking[0], "ship" if found.chosen else "keep"
                fqe = f"{(first.scores['fqe'] or 0.0) - found.today.mean:.3g}"
                said = [answer, f"{first.agent} {first.step:,}", fqe, first.gain, f"{true:.3g}"]
                print("|", " | ".join(map(str, [name, kind, seed, *said])), "|", flush=True)
