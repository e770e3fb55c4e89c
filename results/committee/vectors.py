"""What averaging networks at play gains on vectors: the small problems of `python -m benchmarks defaults`.

    python -m results.committee.vectors FOLDER --until 1400

Three problems whose best policy is known (CartPole, Acrobot, FrozenLake; chain and bandit are solved by all),
three logs each (of a learner, of the best policy with half and with a tenth of its actions at random), made
anew with two seeds: 18 logs, and with three more (`--logs 3,4,5`) because time was left. Every agent has its
defaults and five seeds. 0 is random play, 1 the best policy.

Primary measure, fixed before any run: the score of the committee of the five last policies minus the mean
score of its members, its mean over the agents that learn values from a maximum (dqn, rem, qr_dqn, c51) and
the 18 logs; 95% by the bootstrap over logs, all agents of a log together. The committee helps on vectors if
the interval is above zero. Secondary: every agent, every kind of log; the committee minus its worst member;
without the members that the guard calls diverged; logs on which it is more than 0.05 below its members' mean.

A committee averages what its members say of each action: values, or the logits of a clone or of IQL's policy;
of discrete BCQ both columns, before actions are left out.
"""

import argparse
import csv
import shutil
import time
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from benchmarks.defaults import AGENTS, log_of, score
from benchmarks.defaults.problems import KINDS, PROBLEMS
from optimist.training.storage.alarms import read_alarms

from optimist import api
from optimist.training.play.acting import Policy

NAMES, SEEDS = ("CartPole", "Acrobot", "FrozenLake"), 5
HEAD = ("agent", "problem", "kind", "log", "who", "score", "diverged")


class Averaged:
    """A table whose columns are the mean of several."""

    def __init__(self, columns: Any):
        self._columns = columns

    def columns(self) -> Any:
        return self._columns


@dataclass(frozen=True)
class Committee:
    """Acts by the mean of what its members say of each action."""

    agent: Any

    def action(self, spec, params, observation, key, allowed=None):
        tables = [self.agent.table(spec)(member["q"], observation) for member in params]
        if type(self.agent).__name__ == "DiscreteBcq":
            both = jnp.stack([table.columns() for table in tables]).mean(axis=0)
            return jnp.argmax(self.agent.values(Averaged(both)))
        return jnp.argmax(jnp.stack([self.agent.values(table) for table in tables]).mean(axis=0))


def trained(task: tuple) -> list[tuple]:
    """The scores of the seeds of one agent on one log, and of their committees."""
    agent, name, kind, log, folder, steps, ends = task
    if time.time() > ends:
        return []
    problem = PROBLEMS[name]()
    out = folder / "runs" / f"{agent}-{name}-{kind.replace(' ', '-')}-{log}"
    fixed = {"seeds": range(SEEDS), "environment": "none", "hold_out": 0.0, "out": out, "restart": True}
    settings = {"steps": steps} if steps else {}
    run = api.train(agent, log_of(problem, kind, folder, log), options=AGENTS[agent], **fixed, **settings)
    diverged, members = set(read_alarms(out)), [run.params_of(seed) for seed in range(SEEDS)]

    def scored(act: Policy) -> str:
        return f"{score(problem, lambda seen, rng: np.asarray(act(seen))):.4f}"

    def committee(some: list[int]) -> Policy:
        averaging = replace(run.learner, agent=Committee(run.learner.agent))
        return Policy(averaging, tuple(members[seed] for seed in some))

    what, seeds = (agent, name, kind, log), list(range(SEEDS))
    rows = [(*what, seed, scored(run.policy_of(seed)), int(seed in diverged)) for seed in seeds]
    rows.append((*what, "committee", scored(committee(seeds)), len(diverged)))
    rows.append((*what, "three", scored(committee(seeds[:3])), len(diverged & {0, 1, 2})))
    healthy = [seed for seed in seeds if seed not in diverged]
    if diverged and len(healthy) > 1:
        rows.append((*what, "healthy", scored(committee(healthy)), 0))
    shutil.rmtree(out)
    jax.clear_caches()
    print(f"{time.time() - ends:.0f} {agent} {name} {kind} {log}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=float, default=1400, help="seconds")
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--steps", type=int, help="gradient steps, in place of the recipe's")
    parser.add_argument("--agents", type=lambda text: text.split(","), default=list(AGENTS))
    parser.add_argument("--logs", type=lambda text: [int(each) for each in text.split(",")], default=[1, 2])
    parser.add_argument("--problems", type=lambda text: text.split(","), default=list(NAMES))
    asked = parser.parse_args()
    ends, file = time.time() + asked.until, asked.folder / "vectors.csv"
    asked.folder.mkdir(parents=True, exist_ok=True)
    rows = list(csv.reader(file.open())) if file.exists() else [HEAD]
    done = {tuple(row[:4]) for row in rows}
    logs = [(name, kind, log) for log in asked.logs for name in asked.problems for kind in KINDS]
    tasks = [
        (agent, *log, asked.folder, asked.steps, ends)
        for log in logs
        for agent in asked.agents
        if (agent, *map(str, log)) not in done
    ]
    with get_context("spawn").Pool(asked.workers) as pool:
        made = [pool.apply_async(log_of, (PROBLEMS[log[0]](), log[1], asked.folder, log[2])) for log in logs]
        for each in made:
            each.wait()
        for found in pool.imap_unordered(trained, tasks):
            rows += found
            with file.open("w", newline="") as stream:
                csv.writer(stream, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
