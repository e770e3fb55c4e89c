"""MinAtar in Python processes and MinAtar as JAX programs: `python -m benchmarks games`.

Five seeds of REM are evaluated in 20 episodes each, and five of DQN play, learn and are recorded, in both
versions of each game. Compilation is not timed. GAMES and STEPS change the size.
"""

import os
import tempfile
import time
from pathlib import Path

from optimist import agents, envs
from optimist.training.evaluation import evaluate
from optimist.training.learner import Learner
from optimist.training.online import OnlineTraining
from optimist.training.settings import Collection

GAMES = os.environ.get("GAMES", "breakout freeway").split()
STEPS = int(os.environ.get("STEPS", "30_000"))
SEEDS = (0, 1, 2, 3, 4)


def evaluating(name: str) -> float:
    """Environment steps per second, over all episodes of all seeds."""
    learner = Learner(agents.preset("rem"), envs.make(name).spec)
    params = learner.init(SEEDS).params

    def steps() -> int:
        return sum(row.length for row in evaluate(learner, params, name, seeds=SEEDS, episodes=20))

    steps()
    start = time.perf_counter()
    return steps() / (time.perf_counter() - start)


def collecting(name: str) -> float:
    """Steps per second of all seeds together, in a second run, after a first has compiled the programs."""
    collection = Collection(steps=STEPS, warm_up=1_000, window=100_000)
    with tempfile.TemporaryDirectory() as folder:
        OnlineTraining(agents.preset("dqn"), name, collection, out=Path(folder) / "first", seeds=SEEDS).run()
        start = time.perf_counter()
        OnlineTraining(agents.preset("dqn"), name, collection, out=Path(folder) / "second", seeds=SEEDS).run()
        return STEPS * len(SEEDS) / (time.perf_counter() - start)


def main() -> None:
    for game in GAMES:
        for what, rate in {"evaluating": evaluating, "playing and learning": collecting}.items():
            theirs, ours = rate(f"minatar/{game}"), rate(f"minatar_jax/{game}")
            print(
                f"{game}, {what}: {theirs:,.0f} steps/s in processes, {ours:,.0f} as JAX programs, "
                f"{ours / theirs:.1f} times"
            )
