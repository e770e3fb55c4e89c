"""Small logs, small agents, and the command line as a process that can be killed."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import numpy as np
from jax.experimental.compilation_cache import compilation_cache

import optimist
from optimist import envs
from optimist.agents import preset
from optimist.agents._actor_critic import ActorAgent
from optimist.agents._agent import Agent
from optimist.agents._table_agent import TableAgent
from optimist.data import Dataset, Recorder, Spec, from_arrays
from optimist.training.loggers.jsonl import Jsonl
from optimist.training.settings import with_values
from optimist.training.storage.run_folder import RunFolder
from patience import PATIENCE

GAME = "minatar/breakout"
PIXELS = Spec((6, 5, 1), "uint8", actions=3, stack=4)
STOPPING = 10  # seconds that a command has to save and leave


def played(path: Path, *, game: str = GAME, rows: int = 150, lanes: int = 4, **options) -> Path:
    """A log of random play."""
    play, random = envs.make(game, lanes=lanes, seed=0, **options), np.random.default_rng(0)
    with Recorder(path, play.spec, lanes=lanes, provenance={"environment": game}) as recorder:
        frame = play.reset()
        for _ in range(rows):
            action = any_action(play.spec, lanes, random)
            taken = play.step(action)
            recorder.add(frame, action, taken.reward, taken.terminal, taken.truncated, taken.next_observation)
            frame = taken.observation
    return path


def any_action(spec: Spec, lanes: int, random: np.random.Generator) -> np.ndarray:
    if spec.discrete:
        return random.integers(spec.actions, size=lanes)
    return random.uniform(spec.action_low, spec.action_high, (lanes, *spec.action_shape)).astype(np.float32)


def random_play(spec: Spec, *, rows: int, lanes: int, seed: int = 0):
    """Random frames, and episodes that end in either way: what a recorder and a replay are given."""
    random = np.random.default_rng(seed)

    def frames():
        return random.integers(0, 256, (lanes, *spec.frame_shape)).astype(spec.frame_dtype)

    frame = frames()
    for _ in range(rows):
        action = random.integers(spec.actions, size=lanes).astype(np.int32)
        reward = (2 * random.normal(size=lanes)).astype(np.float32)
        terminal = random.random(lanes) < 0.08
        truncated = (random.random(lanes) < 0.08) & ~terminal
        following = frames()
        yield frame, action, reward, terminal, truncated, following
        over = (terminal | truncated).reshape(lanes, *(1 for _ in spec.frame_shape))
        frame = np.where(over, frames(), following)


def pixels(path: Path, *, rows: int = 60, lanes: int = 3) -> Dataset:
    """Stacked images of several lanes in several shards, with terminals and truncations."""
    with Recorder(path, PIXELS, lanes=lanes, shard_steps=70) as recorder:
        for step in random_play(PIXELS, rows=rows, lanes=lanes):
            recorder.add(*step)
    return Dataset.open(path)


def vectors(steps: int = 200, **options) -> Dataset:
    """A log without an environment, such as people have."""
    random = np.random.default_rng(0)
    return from_arrays(
        random.normal(size=(steps, 4)),
        random.integers(2, size=steps),
        random.normal(size=steps),
        random.random(steps) < 0.1,
        **{"truncations": False, **options},
    )


def small(name: str, **changes) -> Agent:
    """The agent with a network that compiles in a second."""
    return with_values(preset(name), {**_smallest(name), **changes}, name)


def small_words(name: str) -> list[str]:
    """The same on the command line."""
    words = [(f"--{field.replace('_', '-')}", str(value)) for field, value in _smallest(name).items()]
    return [word for pair in words for word in pair]


def _smallest(name: str) -> dict:
    """Few columns, as many as networks and heads allow; an agent without a table has none."""
    agent = preset(name)
    if isinstance(agent, ActorAgent):
        sizes = ["network.hidden", *(["vae_hidden"] if hasattr(agent, "vae_hidden") else [])]
        return {"target_period": 7, **dict.fromkeys(sizes, "16,8")}
    if not isinstance(agent, TableAgent):
        return {"target_period": 7}
    parts = max(agent.networks, getattr(agent, "heads", 1))
    few = agent.columns if agent.columns <= 4 else 3  # two agents have columns of fixed meaning
    columns = few if parts == 1 else 2 * parts
    return {"network.torso": "mlp", "target_period": 7, "columns": columns}


def add_metrics(folder: RunFolder, rows: list[dict]) -> None:
    for row in rows:
        values = {name: value for name, value in row.items() if name not in ("step", "seed")}
        Jsonl(folder.path).add(row["step"], values, row.get("seed", 0))


def begin(*words, compiled: Path | None = None, program: str | None = None) -> subprocess.Popen:
    """A command that runs on its own; commands that share a folder `compiled` compile their programs once.
    `program` is Python to run instead of the command line, with the same words."""
    line = [sys.executable, *(["-c", program] if program else ["-m", "optimist"]), *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    kept = {"JAX_COMPILATION_CACHE_DIR": str(compiled), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1"}
    more = {"JAX_PLATFORMS": "cpu", **(kept if compiled else {})}
    child = subprocess.Popen(line, env={**os.environ, **more}, **pipes)
    child.begun = time.monotonic()
    return child


def interrupted(child: subprocess.Popen, number: int) -> str:
    """What a command says when a signal stops it. It has ten seconds; on a busy machine, as long as it took
    to get so far."""
    begun = time.monotonic()
    limit = max(STOPPING, begun - child.begun)
    child.send_signal(number)
    _, complaint = child.communicate(timeout=PATIENCE)
    assert time.monotonic() - begun < limit
    return complaint


def plain_python(program: str, **variables) -> str:
    """What a program prints in a process without the suite's settings of JAX."""
    strange = ("JAX_", "XLA_FLAGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
    more = {"PYTHONPATH": str(Path(optimist.__file__).parents[1])}
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={**kept, **more, **{name: str(value) for name, value in variables.items()}},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def wait_for(happened, child: subprocess.Popen) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert child.poll() is None, child.communicate()[1]
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.01)


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def outcome(run: Path) -> dict:
    """What a run came to: its newest checkpoint and its kept policies by their hashes, and every row."""
    newest = max((run / "checkpoints").iterdir()).name
    kept = sorted(path.name for path in (run / "policies").glob("*"))
    files = ("metrics.jsonl", "episodes.csv")
    rows = {name: (run / name).read_text() for name in files if (run / name).exists()}
    return {"checkpoint": newest, "policies": kept, **rows}


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The disk takes no file above this size. JAX keeps no programs there: it would leave halves of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    _keep_programs(False)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        _keep_programs(True)


def _keep_programs(keep: bool) -> None:
    jax.config.update("jax_enable_compilation_cache", keep)
    compilation_cache.reset_cache()  # or it would not look at the setting again
