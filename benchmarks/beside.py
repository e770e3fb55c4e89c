"""Could evaluation run beside training? How long an action takes alone, and while another thread learns.

`python -m benchmarks beside`. A turn of an evaluation computes one action of every lane and waits for it; the
learner takes chunks of STEPS gradient steps, by default as many as offline training. On a GPU the programs of
one process run one after the other, so a turn waits for the end of a chunk.
"""

import os
import threading
import time
from collections.abc import Callable

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from optimist.agents import preset
from optimist.data.sampling import Sampler
from optimist.studies.bench.learners import random_log, updating
from optimist.training.feeding import feed_of
from optimist.training.learner import Learner
from optimist.training.offline import CHUNK
from optimist.training.play.acting import Player

SUBJECTS = {"dqn": ("nature", 1, 32), "bcq": ("control", 5, 100)}  # network, seeds, batch
STEPS = int(os.environ.get("STEPS", CHUNK))
LANES, SECONDS = 20, 2.0  # lanes of each seed


def turns(learner: Learner, seeds: int) -> Callable[[], int]:
    """A function that chooses one action in every lane."""
    params, key = learner.init(tuple(range(seeds))).params, jax.random.PRNGKey(0)
    player, lanes = Player(learner, seeds * LANES, seeds), seeds * LANES
    frames = np.zeros((lanes, *learner.spec.frame_shape), learner.spec.frame_dtype)

    def turn() -> int:
        np.asarray(player(params, frames, np.zeros(lanes, bool), 0.001, key, 0))
        return 1

    return turn


def rate(do: Callable[[], int], stop: Callable[[], bool]) -> float:
    """How much is done per second until `stop()`."""
    done, start = 0, time.perf_counter()
    while not stop():
        done += do()
    return done / (time.perf_counter() - start)


def for_a_while() -> Callable[[], bool]:
    end = time.perf_counter() + SECONDS
    return lambda: time.perf_counter() > end


def rates(turn: Callable[[], int], update: Callable[[], int]) -> tuple[float, float, float, float]:
    """Turns and updates per second, each alone, then beside each other."""
    turn(), update()  # compiled
    alone = rate(turn, for_a_while()), rate(update, for_a_while())
    beside, over = list[float](), threading.Event()
    learning = threading.Thread(target=lambda: beside.append(rate(update, over.is_set)))
    learning.start()
    beside.insert(0, rate(turn, for_a_while()))
    over.set()
    learning.join()
    return *alone, *beside  # type: ignore[return-value]


def main() -> None:
    table = Table("", "ms a turn", "beside", "updates/s", "beside", title=jax.devices()[0].device_kind)
    for name, (network, seeds, batch) in SUBJECTS.items():
        log = random_log(network)
        learner = Learner(preset(name), log.spec)
        samplers = [Sampler(log, batch=batch, seed=seed) for seed in range(seeds)]
        update = updating(learner, feed_of(samplers, "device"), seeds, STEPS)
        turn_alone, alone, turn_beside, beside = rates(turns(learner, seeds), update)
        times = (f"{1000 / turn_alone:.2f}", f"{1000 / turn_beside:.2f}")
        table.add_row(f"{name}, {seeds} seeds, {network}", *times, f"{alone:,.0f}", f"{beside:,.0f}")
    Console().print(table)
