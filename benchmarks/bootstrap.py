"""Seconds for intervals over 5 runs on 60 games, the size of the paper's own tables."""

import time
from collections.abc import Callable

import numpy as np

from optimist.studies.scores import statistics

RUNS, GAMES = 5, 60
TIMES = 3  # the fastest counts: other work on the machine can only add time


def seconds(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(TIMES):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def main() -> None:
    random = np.random.default_rng(0)
    scores, others = random.lognormal(size=(2, RUNS, GAMES))
    print(f"{statistics.REPETITIONS:,} repetitions of {RUNS} runs x {GAMES} games, best of {TIMES}:")
    together = seconds(lambda: statistics.aggregates(scores))
    print(f"  all four aggregates together   {together:6.2f} s (promised: under 2)")
    for name, aggregate in statistics.AGGREGATES.items():
        alone = seconds(lambda aggregate=aggregate: statistics.stratified_bootstrap(aggregate, scores))
        print(f"  {name:<30} {alone:6.2f} s")
    versus = seconds(
        lambda: statistics.stratified_bootstrap(statistics.probability_of_improvement, scores, others)
    )
    print(f"  {'probability_of_improvement':<30} {versus:6.2f} s")
