"""Evaluation beside training. Turns and updates per second: alone, in two processes, in two threads,
interleaved.

`python -m benchmarks beside`; `BETWEEN= PRECISIONS=tf32 python -m benchmarks beside` leaves out what takes
longest to compile. A turn of an evaluation steps all lanes and computes their next actions. In two processes
a child process evaluates, as with `--evaluation beside`. On a GPU the programs of one process run one after
the other, so in two threads a turn waits for the end of a chunk of gradient steps. Interleaved, one thread
does both: it takes a few gradient steps whenever the environments play, and then asks for the next actions.
The lanes and the steps of an evaluation are the paper's; "a period" is one evaluation and the updates between
two of them.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import numpy as np

from optimist import envs
from optimist.agents import preset
from optimist.data.sampling import Sampler
from optimist.studies.bench.learners import random_log, updating
from optimist.training.evaluation import LANES
from optimist.training.evaluator import AS_NEEDED
from optimist.training.feeding import feed_of
from optimist.training.learner import Learner
from optimist.training.offline import CHUNK
from optimist.training.play.acting import Player

GAME = os.environ.get("GAME", "atari/Pong?full_action_set=yes")
AGENT = os.environ.get("AGENT", "rem")
SEEDS = int(os.environ.get("SEEDS", "1"))
PRECISIONS = os.environ.get("PRECISIONS", "tf32,bf16").split(",")
BETWEEN = [int(count) for count in os.environ.get("BETWEEN", "4,8,16,32").split(",") if count]  # in a turn
SECONDS = float(os.environ.get("SECONDS", "2"))
EVALUATION, PERIOD = 125_000, 62_500  # steps of an evaluation and seed; updates between two
Work = Callable[[], int]


class Evaluation:
    """An evaluation without an end. `play` begins a step of the environments; `choose` waits for it and for
    the actions of the next one."""

    def __init__(self, learner: Learner):
        self._params, self._key = learner.init(tuple(range(SEEDS))).params, jax.random.PRNGKey(0)
        self._play = envs.make(GAME, lanes=SEEDS * LANES, seed=0)
        self._player, self._thread = Player(learner, self._play.lanes, SEEDS), ThreadPoolExecutor(1)
        self._actions = np.zeros(self._play.lanes, int)
        self._play.reset()

    def play(self) -> None:
        self._step = self._thread.submit(self._play.step, self._actions)

    def choose(self) -> int:
        taken = self._step.result()
        chosen = self._player(
            self._params, taken.observation, taken.terminal | taken.truncated, 0.001, self._key, 0
        )
        self._actions = np.asarray(chosen).reshape(self._play.lanes)
        return 1

    def turn(self) -> int:
        self.play()
        return self.choose()


def rate(do: Work, stop: Callable[[], bool]) -> float:
    """How much is done per second until `stop()`."""
    done, start = 0, time.perf_counter()
    while not stop():
        done += do()
    return done / (time.perf_counter() - start)


def for_a_while() -> Callable[[], bool]:
    end = time.perf_counter() + SECONDS
    return lambda: time.perf_counter() > end


class SecondProcess:
    """A process that evaluates for a while whenever it is asked to, and says at which rate."""

    def __init__(self) -> None:
        self._process: Any = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.beside"],
            env={**os.environ, **AS_NEEDED},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.answer()  # compiled

    def ask(self) -> None:
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def answer(self) -> float:
        return float(self._process.stdout.readline())

    def beside(self, update: Work) -> tuple[float, float]:
        """Its turns and our updates per second at the same time."""
        with ThreadPoolExecutor(1) as thread:
            self.ask()
            turns = thread.submit(self.answer)
            updates = rate(update, turns.done)
            return turns.result(), updates

    def end(self) -> None:
        self._process.stdin.close()
        self._process.wait()


def second_process() -> None:
    """The other side: one rate for each line, after a first number that says that it is ready."""
    evaluation = Evaluation(Learner(preset(AGENT), random_log("nature").spec))
    print(evaluation.turn(), flush=True)
    for _ in sys.stdin:
        print(rate(evaluation.turn, for_a_while()), flush=True)


def in_two_threads(turn: Work, update: Work) -> tuple[float, float]:
    updates, over = list[float](), threading.Event()
    learning = threading.Thread(target=lambda: updates.append(rate(update, over.is_set)))
    learning.start()
    turns = rate(turn, for_a_while())
    over.set()
    learning.join()
    return turns, updates[0]


def interleaved(evaluation: Evaluation, update: Work) -> Work:
    def turn() -> int:
        evaluation.play()
        update()
        return evaluation.choose()

    return turn


def period(turns: float, updates: float, alone: tuple[float, float]) -> float:
    """Seconds of one period, if evaluation and learning have these rates beside each other, until one of them
    is over, and the other goes on alone."""
    left = np.array([EVALUATION / LANES, PERIOD])
    together = min(left / (turns, updates))
    return together + max((left - np.array([turns, updates]) * together) / alone)


def show(name: str, *figures: float) -> None:
    """Print a row at once: a clock may stop the rest."""
    print(f"{name:32}" + "".join(f"{figure:20,.0f}" for figure in figures), flush=True)


def main() -> None:
    print(f"{AGENT}, {SEEDS} seeds, {GAME}, {jax.devices()[0].device_kind}")
    heads = ("turns/s", "updates/s of a seed", "seconds of a period")
    print(" " * 32 + "".join(f"{head:>20}" for head in heads), flush=True)
    log = random_log("nature")
    feed = feed_of([Sampler(log, seed=seed) for seed in range(SEEDS)], "device")
    second = SecondProcess()
    for precision in PRECISIONS:
        learner = Learner(preset(AGENT), log.spec, precision=precision)
        evaluation, update = Evaluation(learner), updating(learner, feed, SEEDS, CHUNK)
        evaluation.turn(), update()  # compiled
        alone = rate(evaluation.turn, for_a_while()), rate(update, for_a_while()) / SEEDS
        show(f"{precision}: each alone", *alone, EVALUATION / LANES / alone[0] + PERIOD / alone[1])
        ways = {"in two processes": second.beside, "in two threads": partial(in_two_threads, evaluation.turn)}
        for name, way in ways.items():
            turns, updates = way(update)
            each = turns, updates / SEEDS
            show(f"{precision}: {name}", *each, period(*each, alone))
        for count in BETWEEN:
            turn = interleaved(evaluation, updating(learner, feed, SEEDS, count))
            turn()
            turns = rate(turn, for_a_while())
            show(
                f"{precision}: {count} updates in a turn",
                *(turns, turns * count),
                period(turns, turns * count, alone),
            )
    second.end()


if __name__ == "__main__":
    second_process()
