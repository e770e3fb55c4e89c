"""Are the environments kept busy? Steps per second of an Atari game alone, when evaluating, when collecting.

`python -m benchmarks environments`, meant for a machine with a GPU and many cores. The vector environment is
first stepped alone with random actions; evaluation and collection are printed as shares of that rate. LANES
and SECONDS change the size.
"""

import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from optimist import agents, envs
from optimist.training.evaluation import evaluate
from optimist.training.learner import Learner
from optimist.training.online import OnlineTraining
from optimist.training.settings import Collection

GAME = os.environ.get("GAME", "atari/Breakout")
LANES = int(os.environ.get("LANES", "64"))
SECONDS = float(os.environ.get("SECONDS", "20"))
SEEDS = 4  # evaluated together, as in a run of several seeds


def alone(lanes: int) -> float:
    """Steps per second with random actions and nothing else, on every core."""
    cores = len(os.sched_getaffinity(0))
    play, random = envs.make(GAME, lanes=lanes, seed=0, threads=cores), np.random.default_rng(0)
    play.reset()
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS / 2:
        play.step(random.integers(play.spec.actions, size=lanes))
        done += lanes
    return done / (time.perf_counter() - start)


def evaluating() -> float:
    """Steps per second of an evaluation of four seeds with 16 lanes each; the policies are untrained."""
    learner = Learner(agents.preset("dqn"), envs.make(GAME).spec)
    params = learner.init(tuple(range(SEEDS))).params
    turns, start = 0, 0.0

    def stop() -> bool:
        nonlocal turns, start
        turns += 1
        if turns == 20:  # compiled by then
            start = time.perf_counter()
        return turns > 20 and time.perf_counter() - start > SECONDS

    evaluate(
        learner, params, GAME, seeds=tuple(range(SEEDS)), episodes=0, steps=10**9, epsilon=0.1, stop=stop
    )
    return (turns - 20) * SEEDS * 16 / (time.perf_counter() - start)


def collecting(rate: float) -> tuple[float, float]:
    """Steps per second of online DQN that learns and records: the median, and the slowest row of metrics."""
    steps = int(rate * SECONDS)
    collection = Collection(steps=steps, lanes=LANES, warm_up=steps // 4, window=min(steps, 500_000))
    with tempfile.TemporaryDirectory() as folder:
        OnlineTraining(agents.preset("dqn"), GAME, collection, out=folder).run()
        rows = [
            json.loads(line) for line in (Path(folder) / "agent" / "metrics.jsonl").read_text().splitlines()
        ]
    learning = [row["steps_per_second"] for row in rows if row["step"] > steps // 2]
    return statistics.median(learning), min(learning)


def main() -> None:
    before = alone(LANES)
    found = {"evaluating": evaluating()}
    found["collecting and learning"], worst = collecting(before)
    limit = (before + alone(LANES)) / 2
    print(f"{GAME}, {LANES} lanes, {len(os.sched_getaffinity(0))} cores: {limit:,.0f} steps/s alone")
    for what, rate in found.items():
        print(f"{what}: {rate:,.0f} steps/s, {rate / limit:.0%} of that")
    print(f"the slowest two seconds of collecting: {worst:,.0f} steps/s")
