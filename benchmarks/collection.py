"""Is Atari's collection limited by the emulators? Steps per second of them alone, of the learner, of both.

`python -m benchmarks collection`, meant for a machine with a GPU and many cores. All rows are timed in turns,
for SLICE seconds in each of ROUNDS rounds, so that other load affects all alike. A ratio is the median of the
ratios within a round, to the emulators alone: one vector environment with random actions, a thread on every
core. The emulators of a collection wait for two things: until actions are chosen, and until the other thread
has processed the row before (learning is started, the row is recorded). GAME, LANES (of a player), PLAYERS
(that learn in one program, each from its own play), TORSO and PRECISIONS (a comma-separated list) change what
is timed.
"""

import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from optimist import agents, envs
from optimist.data import Recorder
from optimist.training.learner import Learner
from optimist.training.play.playing import Playing
from optimist.training.play.replay import Replay
from optimist.training.settings import Collection, with_values

GAME = os.environ.get("GAME", "atari/Breakout")
LANES = int(os.environ.get("LANES", "64"))
PLAYERS = int(os.environ.get("PLAYERS", "1"))
TORSO = os.environ.get("TORSO", "nature")
PRECISIONS = os.environ.get("PRECISIONS", "tf32,bf16").split(",")
SLICE = float(os.environ.get("SLICE", "0.8"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
ROWS = int(os.environ.get("ROWS", "100"))  # that are played before the timing
COLLECTION = Collection(
    steps=10**9, lanes=LANES, window=100_000, warm_up=20 * LANES, epsilon_decay=20 * LANES, clip_rewards=1.0
)
Turn = Callable[[], object]  # one step of all lanes


def alone() -> Turn:
    """Random actions, a thread on every core."""
    cores = len(os.sched_getaffinity(0))
    play, random = envs.make(GAME, lanes=PLAYERS * LANES, seed=0, threads=cores), np.random.default_rng(0)
    play.reset()
    return lambda: play.step(random.integers(play.spec.actions, size=play.lanes))


class Watched:
    """An environment, or a pool of threads, that sums the seconds in which it is waited for."""

    def __init__(self, subject: Any):
        self._subject, self.seconds = subject, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._subject, name)

    def _timed(self, wait: Callable[..., Any], *words) -> Any:
        start = time.perf_counter()
        found = wait(*words)
        self.seconds += time.perf_counter() - start
        return found

    def step(self, actions: np.ndarray) -> envs.Step:
        return self._timed(self._subject.step, actions)

    def submit(self, *words) -> Future:
        future = self._subject.submit(*words)
        future.result = lambda result=future.result: self._timed(result)  # type: ignore[method-assign]
        return future


class Collecting:
    """Agents that play, learn and record, and count their steps."""

    def __init__(self, precision: str, folder: str):
        seeds = tuple(range(PLAYERS))
        self.play = Watched(envs.make(GAME, lanes=PLAYERS * LANES, seed=0))
        agent = with_values(agents.preset("dqn"), {"network.torso": TORSO}, "dqn")
        learner = replace(Learner(agent, self.play.spec), precision=precision)
        self.replay = Replay(learner, learner.init(seeds), COLLECTION, seeds)
        self._recorder = Recorder(folder, self.play.spec, lanes=PLAYERS * LANES)
        self._playing = Playing(learner, self.play, self.replay, self._recorder, COLLECTION, seeds, 0)
        self.behind = self._playing._other_thread = Watched(ThreadPoolExecutor(1))
        self._step = 0

    def __call__(self) -> None:
        self._playing.go(self._step)
        self._step += LANES

    def learn(self) -> None:
        """The gradient steps of one row, without its play."""
        self._playing.settle()
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


class Rate(NamedTuple):
    """Of one slice of time."""

    steps: float  # per second
    behind: float = 0.0  # the share of the time in which the emulators wait for the row before
    choosing: float = 0.0  # the share in which they wait for actions


def rate(turn: Turn, way: Collecting | None) -> Rate:
    watches = (way.play, way.behind) if way and turn is way else ()
    for watch in watches:
        watch.seconds = 0.0
    turns, start = 0, time.perf_counter()
    while time.perf_counter() - start < SLICE:
        turn()
        turns += 1
    jax.block_until_ready(way and way.replay.state)
    seconds = time.perf_counter() - start
    playing, behind = [watch.seconds / seconds for watch in watches] or (1.0, 0.0)
    return Rate(turns * PLAYERS * LANES / seconds, behind, 1 - playing - behind)


def said(name: str, found: Rate) -> Rate:
    """Print a rate at once: a clock may stop the rest."""
    print(f"{name}: {found.steps:,.0f} steps/s", flush=True)
    return found


def main() -> None:
    with contextlib.ExitStack() as opened:
        timed: dict[str, tuple[Turn, Collecting | None]] = {"emulators alone": (alone(), None)}
        for precision in PRECISIONS:
            folder = opened.enter_context(tempfile.TemporaryDirectory())
            whole = opened.enter_context(Collecting(precision, folder))
            timed[f"collection, {precision}"] = whole, whole
            timed[f"learner alone, {precision}"] = whole.learn, whole
        rounds = [{name: said(name, rate(*each)) for name, each in timed.items()} for _ in range(ROUNDS)]
    where = f"{GAME}, {PLAYERS} x {LANES} lanes, {TORSO}, {len(os.sched_getaffinity(0))} cores"
    heads = ("", "steps/s", "of the emulators alone", "wait for actions", "wait for the row before")
    table = Table(*heads, title=where)
    for name, (turn, way) in timed.items():
        found = Rate(
            *(statistics.median(values) for values in zip(*(each[name] for each in rounds), strict=True))
        )
        shares = [each[name].steps / each["emulators alone"].steps for each in rounds]
        spread = f"{statistics.median(shares):.0%} ({min(shares):.0%} to {max(shares):.0%})"
        waits = (f"{found.choosing:.0%}", f"{found.behind:.0%}") if turn is way else ("", "")
        table.add_row(name, f"{found.steps:,.0f}", spread, *waits)
    Console().print(table)
