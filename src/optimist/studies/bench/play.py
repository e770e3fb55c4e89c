"""Steps per second of play: the environments alone, under a policy, and with a learner."""

import contextlib
import importlib.util
import io
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np

from optimist import envs
from optimist.agents import preset
from optimist.studies.bench.timing import Gauge, Subject, Work
from optimist.training.evaluation import evaluate
from optimist.training.learner import Learner
from optimist.training.online import OnlineTraining
from optimist.training.settings import Collection

AGENT, BATCH, LANES, TURNS = "dqn", 32, 16, 100
GAMES = {  # an environment and the extra package that it needs; "": none
    "minatar_jax/breakout": "",
    "minatar/breakout": "minatar",
    "atari/Breakout": "ale_py",
}
NETWORKS = {"minatar_jax": "minatar", "minatar": "minatar", "atari": "nature"}


def playable() -> list[str]:
    """The environments whose packages are installed."""
    return [game for game, package in GAMES.items() if not package or importlib.util.find_spec(package)]


def network(game: str) -> str:
    return NETWORKS[game.partition("/")[0]]


def alone(game: str) -> Gauge:
    """Steps with random actions, without a learner; a game that is a JAX program stays on the device."""
    play, random = envs.make(game, lanes=LANES, seed=0), np.random.default_rng(0)
    if hasattr(play, "rules"):
        return Gauge("the environments alone", _turns_on_device(play))
    play.reset()

    def do() -> int:
        for _ in range(TURNS):
            play.step(random.integers(play.spec.actions, size=LANES))
        return TURNS * LANES

    return Gauge("the environments alone", do)


def _turns_on_device(play):
    @jax.jit
    def program(table, key):
        def turn(table, key):
            actions = jax.random.randint(key, (LANES,), 0, play.spec.actions)
            return play.rules.step(table, actions)[0], None

        return jax.lax.scan(turn, table, jax.random.split(key, TURNS))[0]

    table, key = play.begin(), jax.random.PRNGKey(0)

    def do() -> int:
        nonlocal table
        table = jax.block_until_ready(program(table, key))
        return TURNS * LANES

    return do


def evaluating(game: str, games: Gauge) -> Work:
    """Full episodes of an untrained policy, in as many lanes as collection has."""
    learner = Learner(preset(AGENT), envs.spec_of(game))
    params, numbers = learner.init((0,)).params, itertools.count()

    def do() -> int:
        rows = evaluate(learner, params, game, seeds=(0,), episodes=LANES, epsilon=0.1, step=next(numbers))
        return sum(row.length for row in rows)

    return Work(_subject("evaluation", game), do, [(games, 1)])


def collecting(game: str, games: Gauge, learner: Gauge, steps: int) -> Work:
    """A whole run of an agent that plays, learns and records. Its limit is the slower of the
    environments alone and the learner alone."""
    if network(game) == "nature" and jax.default_backend() == "cpu":
        steps //= 25  # this network learns some seventy times slower than MinAtar's there
    collection = Collection(steps=steps, lanes=LANES, warm_up=steps // 4, window=steps, batch=BATCH)
    updates = (1 - collection.warm_up / steps) / collection.update_period

    def do() -> int:
        with tempfile.TemporaryDirectory() as folder, _silence():
            OnlineTraining(preset(AGENT), game, collection, out=Path(folder) / "log").run()
        return steps

    return Work(_subject("collection", game), do, [(games, 1), (learner, updates)])


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Hide the progress of a run, which a terminal sees on one stream and a file on the other."""
    nowhere = io.StringIO()
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        yield


def _subject(what: str, game: str) -> Subject:
    return Subject("play", f"{what}, {game}", network(game), BATCH, 1, "steps/s")
