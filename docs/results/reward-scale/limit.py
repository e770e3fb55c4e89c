"""Should standardised features end at +-10? Four logs that have values beyond, with that limit and without.

    python limit.py OUT

An agent with the settings of `optimist train` learns from three or six draws of each log. Writes limit.csv
into OUT: the score, and for the wide logs also that of decisions beyond 10 deviations. The same command
continues.
"""

import logging
import sys
import tempfile
from itertools import product
from pathlib import Path

import jax
import numpy as np
from scale import TRAINED, Table, data_of, show
from simulated import LOGS, WIDE

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call

import optimist
from optimist.data.look import FARTHEST
from optimist.training import scaling

UPDATES, MANY = 10_000, 400_000
TASKS = {"machine": LOGS["machine"], "shop": LOGS["shop"], **WIDE}  # the others have no values beyond 10
DRAWS = {"machine": 6, "shop": 3, "orders": 3, "accounts": 3}
LIMITS = {"none": None, "10": FARTHEST}


def beyond(task, policy) -> float:
    """The score of the decisions that are more than 10 deviations from the mean."""
    drawn = task.drawn(np.random.default_rng(2_000_000), MANY)
    seen = drawn[np.abs(drawn[:, 0] - drawn[:, 0].mean()) > FARTHEST * drawn[:, 0].std()]
    actions, expected = np.asarray(policy(seen)), task.expected(seen)
    found, worst = expected[np.arange(len(seen)), actions].mean(), expected.mean()
    return round(float((found - worst) / (expected.max(axis=1).mean() - worst)), 4)


def main(out: Path) -> None:
    logging.getLogger("optimist").setLevel(logging.ERROR)
    out.mkdir(parents=True, exist_ok=True)
    table = Table(out / "limit.csv", ("log", "agent", "limit", "draw", "score", "beyond"), keys=4)
    for name, label, limit in product(TASKS, ("DQN (Adam)", "CQL"), LIMITS):
        scaling.FARTHEST = LIMITS[limit]
        jax.clear_caches()
        for draw in range(DRAWS[name]):
            if table.lacks(name, label, limit, str(draw)):
                (agent, preset), task = TRAINED[label], TASKS[name]
                settings = {"gamma": task.gamma, "steps": UPDATES, "evaluate_every": UPDATES}
                with tempfile.TemporaryDirectory() as folder:
                    words = {"preset": preset, "seeds": (draw,), "out": folder + "/run"}
                    run = optimist.train(agent, data_of(task, draw), **words, **settings)
                    score = round(float(task.score(np.asarray(run.policy(task.observations)))), 4)
                    far = beyond(task, run.policy) if name in WIDE else ""
                table.add([(name, label, limit, draw, score, far)])
    show(out / "limit.csv", ("agent", "limit"), "log")


if __name__ == "__main__":
    call(__doc__, main)
