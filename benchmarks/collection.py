"""Is Atari's collection limited by the emulators? Steps per second of them alone, and of collecting.

`python -m benchmarks collection`, meant for a machine with a GPU and many cores. All rows are timed in turns,
for SLICE seconds in each of ROUNDS rounds, so that other load affects all alike. A ratio is the median of the
ratios within a round, to the emulators alone: one vector environment with random actions, a thread on every
core. GAME, LANES and PRECISIONS (a comma-separated list) change what is timed. Before that all ways of
collecting play the same ROWS rows; then their rewards and parameters are compared bit by bit.
"""

import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from optimist import agents, envs
from optimist.data import Recorder
from optimist.envs._lanes import free_cores
from optimist.training.learner import Learner
from optimist.training.online import Collection
from optimist.training.play.playing import Playing
from optimist.training.play.replay import Replay

GAME = os.environ.get("GAME", "atari/Breakout")
LANES = int(os.environ.get("LANES", "64"))
PRECISIONS = os.environ.get("PRECISIONS", "tf32,bf16").split(",")
SLICE = float(os.environ.get("SLICE", "0.8"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
ROWS = int(os.environ.get("ROWS", "100"))  # that both ways of collecting play before they are compared
MAKERS = {
    "one group": envs.make,
    "two groups": envs.make_halves,  # with as many threads each as one group has
    "two groups, half the threads each": partial(envs.make_halves, threads=max(1, free_cores() // 2)),
}
COLLECTION = Collection(
    steps=10**9, lanes=LANES, window=100_000, warm_up=20 * LANES, epsilon_decay=20 * LANES, clip_rewards=1.0
)
Turn = Callable[[], object]  # one step of all lanes


def alone() -> Turn:
    """Random actions, a thread on every core."""
    cores = len(os.sched_getaffinity(0))
    play, random = envs.make(GAME, lanes=LANES, seed=0, threads=cores), np.random.default_rng(0)
    play.reset()
    return lambda: play.step(random.integers(play.spec.actions, size=LANES))


def alone_in_turns() -> Turn:
    """The same in two groups, of which one always plays."""
    play, random = envs.make_halves(GAME, lanes=LANES, seed=0), np.random.default_rng(0)
    play.reset()
    groups = envs.groups_of(play)

    def send(group: envs.Group) -> None:
        group.send(random.integers(play.spec.actions, size=LANES)[group.lanes])

    def turn() -> None:
        for group in groups:
            group.receive()
            send(group)

    for group in groups:
        send(group)
    return turn


class Collecting:
    """An agent that plays, learns and records, and counts its steps."""

    def __init__(self, make: Callable[..., envs.Environment], precision: str, folder: str):
        play = make(GAME, lanes=LANES, seed=0)
        self._learner = replace(Learner(agents.preset("dqn"), play.spec), precision=precision)
        self.replay = Replay(self._learner, self._learner.init((0,)), COLLECTION, (0,))
        self._recorder = Recorder(folder, play.spec, lanes=LANES)
        self._playing = Playing(self._learner, play, self.replay, self._recorder, COLLECTION, (0,), 0)
        self._step, self.rewards = 0, list[np.ndarray]()

    def __call__(self) -> None:
        rewards, _ = self._playing.go(self._step)
        self._step += LANES
        if self._step <= ROWS * LANES:
            self.rewards.append(rewards)

    def learn(self) -> None:
        """The gradient steps of one row, without its play."""
        self.replay.learn(self._step)
        self._step += LANES
        self.replay.prepare(self._step)

    def __enter__(self) -> "Collecting":
        for _ in range(ROWS):
            self()
        self._playing.settle()
        return self

    def __exit__(self, *problem) -> None:
        self._playing.__exit__()
        self._recorder.close()


def rate(turn: Turn, wait_for: Callable[[], object]) -> float:
    """Steps per second."""
    turns, start = 0, time.perf_counter()
    while time.perf_counter() - start < SLICE:
        turn()
        turns += 1
    jax.block_until_ready(wait_for())
    return turns * LANES / (time.perf_counter() - start)


@contextlib.contextmanager
def collecting(precision: str) -> Iterator[dict[str, tuple[Turn, Callable[[], object]]]]:
    """All ways to collect, and the learner alone; says whether the ways gave the same bits so far."""
    with contextlib.ExitStack() as opened:
        ways = {}
        for name, make in {**MAKERS, "learner alone": envs.make}.items():
            folder = opened.enter_context(tempfile.TemporaryDirectory())
            ways[name] = opened.enter_context(Collecting(make, precision, folder))
        first, *others = [jax.tree.leaves((way.rewards, way.replay.state)) for way in ways.values()]
        same = all(np.array_equal(*pair) for other in others for pair in zip(first, other, strict=True))
        print(f"{precision}: rewards and parameters after {ROWS} rows are {'equal' if same else 'DIFFERENT'}")
        turns: dict[str, Turn] = {**ways, "learner alone": ways["learner alone"].learn}
        yield {
            f"{name}, {precision}": (turn, lambda way=ways[name]: way.replay.state)
            for name, turn in turns.items()
        }


def main() -> None:
    with contextlib.ExitStack() as opened:
        timed: dict[str, tuple[Turn, Callable[[], object]]] = {
            "emulators alone": (alone(), lambda: None),
            "emulators alone, two groups": (alone_in_turns(), lambda: None),
        }
        for precision in PRECISIONS:
            timed |= opened.enter_context(collecting(precision))
        rounds = [{name: rate(*each) for name, each in timed.items()} for _ in range(ROUNDS)]
    cores = len(os.sched_getaffinity(0))
    table = Table("", "steps/s", "of the emulators alone", title=f"{GAME}, {LANES} lanes, {cores} cores")
    for name in timed:
        shares = [each[name] / each["emulators alone"] for each in rounds]
        median = statistics.median(each[name] for each in rounds)
        spread = f"{statistics.median(shares):.0%} ({min(shares):.0%} to {max(shares):.0%})"
        table.add_row(name, f"{median:,.0f}", spread)
    Console().print(table)
