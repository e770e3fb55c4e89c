"""Is Atari's collection limited by the emulators? Steps per second of them alone, and of collecting.

`python -m benchmarks collection`, meant for a machine with a GPU and many cores. All rows are timed in turns,
for SLICE seconds in each of ROUNDS rounds, so that other load affects all alike. A ratio is the median of the
ratios within a round, to the emulators alone: one vector environment with random actions, a thread on every
core. "All wait" is the share of the time after the steps of all lanes are received and before the next
actions are sent. GAME, LANES, TORSO and PRECISIONS (a comma-separated list) change what is timed. Before that
all ways of collecting play the same ROWS rows; then their rewards and parameters are compared bit by bit.
"""

import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

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
from optimist.training.resolve import with_values

GAME = os.environ.get("GAME", "atari/Breakout")
LANES = int(os.environ.get("LANES", "64"))
TORSO = os.environ.get("TORSO", "nature")
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


class Watch:
    """The time in which all groups of lanes wait for actions."""

    def __init__(self) -> None:
        self._playing = 0
        self.begin()

    def begin(self) -> None:
        self.idle, self._since = 0.0, time.perf_counter()

    def sent(self) -> None:
        self.idle += 0 if self._playing else time.perf_counter() - self._since
        self._playing += 1

    def received(self) -> None:
        self._playing -= 1
        self._since = time.perf_counter()


class Watched:
    """A group that tells a watch when it plays."""

    def __init__(self, group: envs.Group, watch: Watch):
        self.lanes, self.member, self._group, self._watch = group.lanes, group.member, group, watch

    def send(self, actions: np.ndarray) -> None:
        self._watch.sent()
        self._group.send(actions)

    def receive(self) -> envs.Step:
        taken = self._group.receive()
        self._watch.received()
        return taken


class Collecting:
    """An agent that plays, learns and records, and counts its steps."""

    def __init__(self, make: Callable[..., envs.Environment], precision: str, folder: str):
        play = make(GAME, lanes=LANES, seed=0)
        agent = with_values(agents.preset("dqn"), {"network.torso": TORSO}, "dqn")
        self._learner = replace(Learner(agent, play.spec), precision=precision)
        self.replay = Replay(self._learner, self._learner.init((0,)), COLLECTION, (0,))
        self._recorder = Recorder(folder, play.spec, lanes=LANES)
        self._playing = Playing(self._learner, play, self.replay, self._recorder, COLLECTION, (0,), 0)
        self._step, self.rewards, self.watch = 0, list[np.ndarray](), Watch()
        self._playing._groups = [Watched(group, self.watch) for group in envs.groups_of(play)]

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


class Timed(NamedTuple):
    """One row of the table."""

    turn: Turn
    way: Collecting | None = None

    def rates(self) -> tuple[float, float]:
        """Steps per second, and the share of the time in which all lanes waited for actions."""
        watch = self.way.watch if self.way else Watch()
        watch.begin()
        turns, start = 0, time.perf_counter()
        while time.perf_counter() - start < SLICE:
            self.turn()
            turns += 1
        jax.block_until_ready(self.way and self.way.replay.state)
        seconds = time.perf_counter() - start
        return turns * LANES / seconds, watch.idle / seconds


@contextlib.contextmanager
def collecting(precision: str) -> Iterator[dict[str, Timed]]:
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
        yield {f"{name}, {precision}": Timed(turn, ways[name]) for name, turn in turns.items()}


def main() -> None:
    with contextlib.ExitStack() as opened:
        timed = {
            "emulators alone": Timed(alone()),
            "emulators alone, two groups": Timed(alone_in_turns()),
        }
        for precision in PRECISIONS:
            timed |= opened.enter_context(collecting(precision))
        rounds = [{name: each.rates() for name, each in timed.items()} for _ in range(ROUNDS)]
    where = f"{GAME}, {LANES} lanes, {TORSO}, {len(os.sched_getaffinity(0))} cores"
    table = Table("", "steps/s", "of the emulators alone", "all wait", title=where)
    for name in timed:
        shares = [each[name][0] / each["emulators alone"][0] for each in rounds]
        steps, idle = (statistics.median(each[name][part] for each in rounds) for part in range(2))
        spread = f"{statistics.median(shares):.0%} ({min(shares):.0%} to {max(shares):.0%})"
        waits = f"{idle:.0%}" if timed[name].turn is timed[name].way else ""
        table.add_row(name, f"{steps:,.0f}", spread, waits)
    Console().print(table)
