"""The speed of this machine in one table: updates of the learner, and steps of play."""

import importlib.util
import io
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import jax
import numpy as np

from optimist import envs
from optimist.agents import preset
from optimist.data import machine
from optimist.data.dataset import Dataset
from optimist.data.sampling import Sampler
from optimist.errors import UsageError
from optimist.studies.sheet import Cell, Sheet
from optimist.training.evaluation import evaluate
from optimist.training.feeding import Feed, feed_of
from optimist.training.learner import Learner, advance
from optimist.training.online import OnlineTraining
from optimist.training.settings import Collection

NETWORKS = {  # the shape of a frame, how many are stacked, the actions, and the transitions of a log
    "minatar": ((10, 10, 4), 1, 3, 50_000),
    "nature": ((84, 84, 1), 4, 18, 5_000),
    "control": ((17,), 1, 6, 50_000),
}
# Updates in one call: enough to keep an accelerator busy, and on a CPU to hide that a call gets new memory
# from the system, which took up to 8% of two updates with the Atari network. A run makes 50 of them at once.
STEPS = {"minatar": (50, 2_000), "nature": (10, 200), "control": (20, 1_000)}  # CPU, accelerator
PLAYER, BATCH, LANES = "dqn", 32, 16
GAMES = {  # an environment, the extra package that it needs, its network, and the steps of a collection
    "minatar_jax/breakout": ("", "minatar", 2_000),
    "minatar/breakout": ("minatar", "minatar", 2_000),
    "atari/Breakout": ("ale_py", "nature", 400),
}
QUICK = (
    ("dqn", "minatar", 32, 1),
    ("rem", "minatar", 32, 5),
    ("rem", "nature", 32, 1),
    ("td3", "control", 100, 1),
)
ATARI = ("minatar", "nature")
Work = tuple["Subject", Callable[[], int]]  # each call does some work and returns the units done
WHOLE = (
    *((agent, net, 32, n) for net, agent, n in itertools.product(ATARI, ("dqn", "qr_dqn", "rem"), (1, 5))),
    *(("rem", network, batch, 1) for network in ATARI for batch in (128, 512)),
    *(("td3", "control", 100, seeds) for seeds in (1, 5)),
    *((agent, "control", 256, 1) for agent in ("td3_bc", "iql", "sac_cql")),
)


class Subject(NamedTuple):
    """What a rate measures."""

    what: str  # the agent, or the kind of play and its environment
    network: str
    batch: int
    seeds: int
    unit: str


@dataclass(frozen=True)
class Timing:
    """How long each work is timed, in turns with others, so that other load affects all of them alike."""

    rounds: int = 5
    seconds: float = 1.0  # shortest duration of one work in one round

    def __post_init__(self):
        if self.rounds < 1 or not self.seconds > 0:
            raise UsageError("choose at least one round, and seconds above 0")

    def rates(self, works: Sequence[Callable[[], int]]) -> list[list[float]]:
        """The rates of all works in every round; a first call, which compiles, is not timed."""

        def rate(do: Callable[[], int]) -> float:
            done, passed, start = 0, 0.0, time.perf_counter()
            while passed < self.seconds or not done:
                done += do()
                passed = time.perf_counter() - start
            return done / passed

        for do in works:
            do()
        return [[rate(do) for do in works] for _ in range(self.rounds)]


def measured(quick: bool, timing: Timing) -> Iterator[tuple[Subject, float]]:
    """Every row with its rate, the median over the rounds; rows of one network take turns."""

    def rates(works: list[Work]) -> Iterator[tuple[Subject, float]]:
        rounds = timing.rates([do for _, do in works])
        for (subject, _), each in zip(works, zip(*rounds, strict=True), strict=True):
            yield subject, median(each)

    for network in NETWORKS:
        log, rows = random_log(network), [row for row in (QUICK if quick else WHOLE) if row[1] == network]
        yield from rates([learning(log, *row) for row in rows])
    for game, (package, _, _) in list(GAMES.items())[: 1 if quick else None]:
        if not package or importlib.util.find_spec(package):
            yield from rates([evaluating(game), collecting(game)])


def random_log(network: str, transitions: int | None = None) -> Dataset:
    """A log of random numbers in the shapes of MinAtar, of Atari, or of HalfCheetah."""
    random = np.random.default_rng(0)
    shape, stack, actions, usual = NETWORKS[network]
    count = transitions or usual
    common: dict[str, Any] = {
        "rewards": random.random(count),
        "terminals": (random.random(count) < 0.01) | (np.arange(count) == count - 1),
        "truncations": False,
    }
    if network == "control":
        return Dataset.from_arrays(
            random.normal(size=(count, *shape)).astype(np.float32),
            random.uniform(-1, 1, (count, actions)).astype(np.float32),
            action_low=-1.0,
            action_high=1.0,
            **common,
        )
    frames = random.integers(0, 256, (count, *shape), np.uint8)
    return Dataset.from_arrays(
        frames if network == "nature" else frames < 26,
        random.integers(0, actions, count),
        actions_count=actions,
        stack=stack,
        **common,
    )


def learning(log: Dataset, agent: str, network: str, batch: int, seeds: int) -> Work:
    """The updates of all seeds together, with the data on the device."""
    learner = Learner(preset(agent), log.spec)
    reads = learner.agent.reads_next_action
    samplers = [Sampler(log, batch=batch, seed=seed, next_actions=reads) for seed in range(seeds)]
    steps = STEPS[network][jax.default_backend() != "cpu"]
    subject = Subject(agent, network, batch, seeds, "updates/s")
    return subject, updating(learner, feed_of(samplers, "device"), seeds, steps)


def updating(learner: Learner, feed: Feed, seeds: int, steps: int) -> Callable[[], int]:
    """A function that makes so many further updates of every seed, and returns their number."""
    state, done = learner.init(tuple(range(seeds))), 0

    def do() -> int:
        nonlocal state, done
        state, losses = advance(learner, state, feed.minibatch, feed.resident, feed.items(done, steps))
        jax.block_until_ready(losses)
        done += steps
        return steps * seeds

    return do


def evaluating(game: str) -> Work:
    """Full episodes of an untrained policy, in as many lanes as collection has."""
    learner = Learner(preset(PLAYER), envs.spec_of(game))
    params, numbers = learner.init((0,)).params, itertools.count()

    def do() -> int:
        rows = evaluate(learner, params, game, seeds=(0,), episodes=LANES, epsilon=0.1, step=next(numbers))
        return sum(row.length for row in rows)

    return Subject(f"evaluation, {game}", GAMES[game][1], BATCH, 1, "steps/s"), do


def collecting(game: str, steps: int | None = None) -> Work:
    """A whole run of an agent that plays, learns and records."""
    steps = steps or GAMES[game][2]
    collection = Collection(steps=steps, lanes=LANES, warm_up=steps // 4, window=steps, batch=BATCH)

    def do() -> int:
        nowhere = io.StringIO()  # a terminal sees the progress of a run on one stream, a file on the other
        with redirect_stdout(nowhere), redirect_stderr(nowhere), TemporaryDirectory() as folder:
            OnlineTraining(preset(PLAYER), game, collection, out=Path(folder) / "log").run()
        return steps

    return Subject(f"collection, {game}", GAMES[game][1], BATCH, 1, "steps/s"), do


def rounded(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def sheet(rows: Sequence[tuple[Subject, float]]) -> Sheet:
    """One table of this machine."""
    title = f"{jax.devices()[0].device_kind}, {machine.cores()} cores, JAX {jax.__version__}"
    shown = [[*subject[:4], Cell(rounded(rate), rate), subject.unit] for subject, rate in rows]
    notes = ["A rate is the median over rounds; updates are those of all seeds together."]
    return Sheet(title, ("what", "network", "batch", "seeds", "rate", "unit"), shown, notes)
