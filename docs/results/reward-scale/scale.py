"""Why do agents learn worse from small rewards? Six simulated logs, scales of 0.001 to 1, and what causes it.

    python scale.py OUT [UPDATES]

Each log is drawn three times, and an agent with the settings of `optimist train` learns from each draw; all
scales of an agent are one program. Writes trained.csv (`optimist train` before and now), causes.csv (DQN with
one thing changed) and grid.csv (agents, losses and scales) into OUT. The same command continues.
"""

import csv
import logging
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from simulated import AFTERWARDS, LOGS, Contexts, States

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call

import optimist
from optimist import agents
from optimist.data.transition import Transition
from optimist.training import scaling
from optimist.training.learner import Learner, advance
from optimist.training.recipes import RECIPES
from optimist.training.storage.run_folder import read_config

UPDATES, CHUNK, DRAWS, SCALES = 10_000, 1_000, range(3), (0.001, 0.01, 0.1, 1.0)
SQUARED = 1e9  # the limit of a Huber loss that no error reaches


@dataclass(frozen=True, kw_only=True)
class Begun(agents.Dqn):
    """DQN with a last layer that begins with smaller weights."""

    beginning: float = 1.0

    def init(self, key, spec):
        found = super().init(key, spec)["q"]
        return {"q": {**found, "weight": self.beginning * found["weight"]}}


def fitted(agent, rate: float = 1.0, epsilon: float = 1.0):
    """The agent as `optimist train` has it, with these shares of the rate and the epsilon of Adam."""
    agent = RECIPES["small"].fitted(agent)
    adam = agent.optimizer
    adam = replace(adam, learning_rate=rate * adam.learning_rate, epsilon=epsilon * adam.epsilon)
    return replace(agent, optimizer=adam)


DQN = agents.preset("dqn", "adam")
FEW = ("shop", "offers")  # for the agents that take long
GRID = {  # (agent, the limit of its Huber loss): the agent, and its logs
    ("DQN (Adam)", "1"): (replace(DQN, huber_limit=1.0), LOGS),
    ("DQN (Adam)", "none"): (replace(DQN, huber_limit=SQUARED), LOGS),
    ("CQL", "1"): (agents.Cql(huber_limit=1.0), LOGS),
    ("CQL", "none"): (agents.Cql(huber_limit=SQUARED), LOGS),
    ("REM", "none"): (agents.Rem(huber_limit=SQUARED), FEW),
    ("QR-DQN, 50 quantiles", ""): (agents.QrDqn(columns=50), FEW),
}
CAUSED = ("shop", "lottery"), (0.001, 0.01)  # the logs and the scales of causes.csv
CAUSES = {  # what is changed: first values, rate and epsilon, as shares of the usual ones
    "nothing": (1.0, 1.0, 1.0),
    "epsilon / 1000": (1.0, 1.0, 0.001),
    "rate / 10": (1.0, 0.1, 1.0),
    "first values / 1000": (0.001, 1.0, 1.0),
    "first values / 1000, rate / 10": (0.001, 0.1, 1.0),
    "all three": (0.001, 0.1, 0.001),
}
IN_A_RANGE = "observations from -1 to 1"  # in place of mean 0 and deviation 1
ALL, RULES = LOGS | AFTERWARDS, ("before", "now")
BEFORE = dict.fromkeys(ALL, 0.001) | {"maze": 0.01, "tickets": 0.01, "triage": 0.0001}  # the former "auto"
TRAINED = {"DQN (Adam)": ("dqn", "adam"), "CQL": ("cql", None), "discrete BCQ": ("discrete_bcq", None)}


def data_of(task: Contexts | States, draw: int) -> optimist.Dataset:
    rows = task.log(draw)
    ends = {"truncations": rows.truncated, "next_observations": rows.next_observation}
    return optimist.Dataset.from_arrays(rows.observation, rows.action, rows.reward, rows.terminal, **ends)


class Prepared:
    """All draws of a log as transitions (draws, steps, ...), with scaled observations."""

    def __init__(self, name: str, in_a_range: bool = False):
        self.task, self.spec = LOGS[name], data_of(LOGS[name], 0).spec
        seen = self.task.observations
        middle, size = (seen.mean(axis=0), seen.std(axis=0))
        if in_a_range:
            low, high = seen.min(axis=0), seen.max(axis=0)
            middle, size = (low + high) / 2, (high - low) / 2
        self.observations, found = jnp.asarray((seen - middle) / size, jnp.float32), []
        for rows in map(self.task.log, DRAWS):
            now, then = ((each - middle) / size for each in (rows.observation, rows.next_observation))
            found.append(Transition(now, rows.action, rows.reward, self.task.gamma * ~rows.terminal, then))
        stacked = (np.stack(leaves) for leaves in zip(*found, strict=True))
        kinds = {"i": jnp.int32, "f": jnp.float32}
        self.resident = Transition(*(jnp.asarray(leaf, kinds[leaf.dtype.kind]) for leaf in stacked))

    def scores(self, agent, scales: Iterable[float], updates: int) -> list[tuple[float, int, float]]:
        """(scale, draw, score) of the last policies."""
        lanes, random = [(scale, draw) for scale in scales for draw in DRAWS], np.random.default_rng(0)
        scale, draw = np.array([each for each, _ in lanes], np.float32), np.array([each for _, each in lanes])
        learner = Learner(agent, self.spec)
        state = learner.init(tuple(draw.tolist()))
        for begun in range(0, updates, CHUNK):
            count = min(CHUNK, updates - begun)
            places = random.integers(self.resident.action.shape[1], size=(count, len(DRAWS), 32))[:, draw]
            items = (places, np.tile(draw, (count, 1)), np.tile(scale, (count, 1)))
            state, _ = advance(learner, state, minibatch, self.resident, jax.tree.map(jnp.asarray, items))
        act = jax.vmap(partial(agent.action, self.spec), in_axes=(None, 0, None))
        found = []
        for lane, (scale_of, draw_of) in enumerate(lanes):
            policy = jax.tree.map(lambda leaf, lane=lane: leaf[lane], state.params)
            actions = np.asarray(jax.jit(act)(policy, self.observations, jax.random.PRNGKey(0)))
            found.append((scale_of, draw_of, round(float(self.task.score(actions)), 4)))
        return found


def minibatch(resident: Transition, item) -> Transition:
    """The rows of one step of one draw, with scaled rewards."""
    places, draw, scale = item
    batch = Transition(*(leaf[draw, places] for leaf in resident))
    return batch._replace(reward=scale * batch.reward)


class Table:
    """A CSV file that grows by the rows of one experiment at a time."""

    def __init__(self, file: Path, header: tuple[str, ...], keys: int):
        self.file, self.keys = file, keys
        if not file.exists():
            self.add([header])
        with open(file, newline="", encoding="utf-8") as stream:
            self.done = {tuple(row[:keys]) for row in csv.reader(stream)}

    def add(self, rows: Iterable[tuple]) -> None:
        with open(self.file, "a", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows(rows)

    def lacks(self, *key: str) -> bool:
        return key not in self.done


def grid(out: Path, updates: int) -> None:
    table = Table(out / "grid.csv", ("log", "agent", "limit", "scale", "draw", "score"), keys=3)
    for name in LOGS:
        prepared = Prepared(name)
        for (label, limit), (agent, logs) in GRID.items():
            if name in logs and table.lacks(name, label, limit):
                found = prepared.scores(fitted(agent), SCALES, updates)
                table.add((name, label, limit, *row) for row in found)


def causes(out: Path, updates: int) -> None:
    table = Table(out / "causes.csv", ("log", "changed", "scale", "draw", "score"), keys=2)
    for name in CAUSED[0]:
        for changed in [*CAUSES, IN_A_RANGE]:
            if table.lacks(name, changed):
                first, rate, epsilon = CAUSES.get(changed, (1.0, 1.0, 1.0))
                begun = Begun(optimizer=DQN.optimizer, huber_limit=SQUARED, beginning=first)
                prepared, agent = Prepared(name, changed == IN_A_RANGE), fitted(begun, rate, epsilon)
                table.add((name, changed, *row) for row in prepared.scores(agent, CAUSED[1], updates))


def trained(out: Path, updates: int) -> None:
    header = ("log", "agent", "rule", "draw", "scale", "limit", "score")
    table = Table(out / "trained.csv", header, keys=4)
    for name, label, rule, draw in product(ALL, TRAINED, RULES, DRAWS):
        if table.lacks(name, label, rule, str(draw)):
            (agent, preset), data = TRAINED[label], data_of(ALL[name], draw)
            settings = {"gamma": ALL[name].gamma, "steps": updates, "evaluate_every": updates}
            if rule == "before":
                settings |= {"reward_scale": BEFORE[name], "options": {"huber_limit": 1.0}}
            with tempfile.TemporaryDirectory() as folder:
                run = optimist.train(
                    agent, data, preset=preset, seeds=(draw,), out=folder + "/run", **settings
                )
                actions = np.asarray(run.policy(ALL[name].observations))
                scale = read_config(run.path)["training"]["reward_scale"]
            limit, score = run.learner.agent.huber_limit, round(float(ALL[name].score(actions)), 4)
            table.add([(name, label, rule, draw, scale, limit, score)])


def show(file: Path, rows: tuple[str, ...], across: str) -> None:
    """Print the mean score and the standard deviation over the draws as a table."""
    scores: dict[tuple[str, ...], dict[str, list[float]]] = {}
    with open(file, newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            cells = scores.setdefault(tuple(row[name] for name in rows), {})
            cells.setdefault(row[across], []).append(float(row["score"]))
    heading = list(dict.fromkeys(each for cells in scores.values() for each in cells))
    print(f"| {' | '.join((*rows, *heading))} |")
    print("|" + "---|" * (len(rows) + len(heading)))
    for name, cells in scores.items():
        shown = [f"{np.mean(each):.2f} ± {np.std(each, ddof=1):.2f}" for each in map(cells.get, heading)]
        print(f"| {' | '.join((*name, *shown))} |")
    print()


def main(out: Path, updates: int = UPDATES) -> None:
    logging.getLogger("optimist").setLevel(logging.ERROR)
    scaling.FARTHEST = None  # the published files are older than this limit, which limit.py measures
    out.mkdir(parents=True, exist_ok=True)
    trained(out, updates)
    causes(out, updates)
    grid(out, updates)
    show(out / "trained.csv", ("agent", "rule"), "log")
    show(out / "causes.csv", ("changed", "log"), "scale")
    show(out / "grid.csv", ("agent", "limit", "log"), "scale")


if __name__ == "__main__":
    call(__doc__, main)
