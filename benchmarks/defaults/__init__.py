"""Every agent with its defaults on small logs whose best policy is known: the worst log decides a default.

`python -m benchmarks defaults [--agents dqn,cql] [--problems CartPole] [--steps N] [--workers 2]`: five
problems, three logs each, three seeds. The rows go to `defaults/scores.csv`, and the table is printed. The
same command continues.
"""

import argparse
import csv
import shutil
import sys
import tempfile
from collections import defaultdict
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.defaults.problems import KINDS, PROBLEMS, STEPS, Problem, at_random, learned, played, returns
from optimist import api
from optimist.data.dataset import Dataset
from optimist.training.storage.run_folder import read_alarms

SEEDS, EPISODES = 3, {"bandit": 2_000}
SHARES = {"half random": 0.5, "tenth random": 0.1}
AGENTS: dict[str, dict[str, Any]] = {
    "behaviour_cloning": {},
    "discrete_iql": {},
    "cql": {},
    "discrete_bcq": {},
    "dqn": {},
    "rem": {},
    "qr_dqn": {"columns": 32},  # with 200 quantiles a CPU takes hours
    "c51": {},
}
# Agents that learn online from play, for the logs of learners.
LEARNER: dict[str, Any] = {"optimizer.learning_rate": 1e-3, "optimizer.epsilon": 1e-8}
LEARNERS: dict[str, dict[str, Any]] = {
    "CartPole": {"target_period": 100, "network.hidden": "256,256", "huber_limit": 1000.0},
    "Acrobot": {"target_period": 1, "target_rate": 0.005, "network.hidden": "64,64"},
}
UPDATE_EVERY = {"CartPole": 2, "Acrobot": 1}


def recorded(name: str, seed: int = 0) -> dict[str, Any]:
    """The log of a DQN that learns online, as arrays."""
    folder, lanes = Path(tempfile.mkdtemp()) / name, 8
    data = api.collect(
        f"gym/{name}-v1",
        out=folder,
        agent="dqn",
        preset="adam",
        recipe="small",
        seeds=(seed,),
        options=LEARNER | LEARNERS[name],
        steps=30_000,
        lanes=lanes,
        warm_up=1_000,
        epsilon=0.05,
        epsilon_decay=7_500,
        window=50_000,
        update_period=UPDATE_EVERY[name],
        batch=64,
        clip_rewards=None,
    )
    timeline, steps = data.timeline, data.steps_at(np.arange(len(data)))
    frames, ends = steps + timeline.episode_of(steps), np.array(timeline.terminal[steps])
    cut = np.array(timeline.truncated[steps])
    cut[len(data) // lanes - 1 :: len(data) // lanes] = True
    arrays = {
        "observations": np.array(timeline.frames(frames)),
        "actions": np.array(timeline.action[steps]),
        "rewards": np.array(timeline.reward[steps]),
        "terminals": ends,
        "truncations": cut & ~ends,
        "next_observations": np.array(timeline.frames(frames + 1)),
        "actions_count": data.spec.actions,
    }
    shutil.rmtree(folder.parent)
    return arrays


def log_of(problem: Problem, kind: str, folder: Path, seed: int = 0) -> Dataset:
    """A log as somebody else's table; it is made once."""
    file = folder / f"{problem.name}-{kind.replace(' ', '-')}{f'-{seed}' * bool(seed)}.npz"
    if not file.exists():
        steps = STEPS[problem.name]
        if kind in SHARES:
            arrays = played(problem, at_random(problem, problem.best, SHARES[kind]), steps, seed)
        elif problem.name in LEARNERS:
            arrays = recorded(problem.name, seed)
        else:
            arrays = learned(problem, steps, seed)
        np.savez_compressed(file, **arrays)
    with np.load(file) as found:
        return Dataset.from_arrays(**{name: found[name][()] for name in found.files})


def score(problem: Problem, act: Any) -> float:
    """0 is random play, 1 the best policy that is known."""
    lowest = returns(problem, at_random(problem, problem.best, 1.0), 2_000, seed=1).mean()
    highest = returns(problem, problem.best, 2_000, seed=1).mean()
    mine = returns(problem, act, EPISODES.get(problem.name, 100), seed=2).mean()
    return float((mine - lowest) / (highest - lowest))


def trained(task: tuple[str, str, str, Path, dict[str, Any]]) -> list[tuple]:
    """The rows of one agent on one log: the score of each seed, and whether the alarm calls it diverged."""
    agent, name, kind, folder, settings = task
    problem, out = PROBLEMS[name](), folder / "runs" / f"{agent}-{name}-{kind.replace(' ', '-')}"
    data = log_of(problem, kind, folder)
    fixed = {"seeds": range(SEEDS), "environment": "none", "hold_out": 0.0, "out": out, "restart": True}
    run = api.train(agent, data, options=AGENTS[agent], **fixed, **settings)
    diverged, rows = read_alarms(out), []
    for seed in range(SEEDS):
        policy = run.policy_of(seed)
        found = score(problem, lambda seen, rng, policy=policy: np.asarray(policy(seen)))
        rows.append((agent, name, kind, seed, f"{found:.4f}", int(seed in diverged)))
    shutil.rmtree(out)
    return rows


def table(rows: list[tuple]) -> str:
    """The mean score of the seeds on each log; the mean, the worst log, and the logs below cloning."""
    logs: dict[str, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    alarms: dict[str, int] = defaultdict(int)
    for agent, name, kind, _, found, diverged in rows:
        logs[agent][name, kind].append(float(found))
        alarms[agent] += int(diverged)
    means = {agent: {log: mean(each) for log, each in found.items()} for agent, found in logs.items()}
    lines = ["| agent | " + " | ".join(PROBLEMS) + " | mean | worst log | below cloning | alarms |"]
    lines.append("|" + "---|" * (len(PROBLEMS) + 5))
    cloning = means.get("behaviour_cloning", {})
    for agent in filter(means.__contains__, AGENTS):
        found = means[agent]
        cells = [" / ".join(f"{found.get((name, kind), np.nan):.2f}" for kind in KINDS) for name in PROBLEMS]
        below = sum(value < cloning.get(log, -np.inf) - 0.05 for log, value in found.items())
        ends = [f"{mean(found.values()):.2f}", f"{min(found.values()):.2f}", f"{below} of {len(found)}"]
        lines.append(f"| `{agent}` | " + " | ".join([*cells, *ends, str(alarms[agent])]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--agents", type=lambda text: text.split(","), default=list(AGENTS))
    parser.add_argument("--problems", type=lambda text: text.split(","), default=list(PROBLEMS))
    parser.add_argument("--steps", type=int, help="gradient steps, in place of the recipe's")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("defaults"))
    asked = parser.parse_args(sys.argv[2:])
    asked.out.mkdir(parents=True, exist_ok=True)
    file = asked.out / "scores.csv"
    rows = [tuple(row) for row in csv.reader(file.open())] if file.exists() else []
    done = {row[:3] for row in rows}
    settings = {"steps": asked.steps} if asked.steps else {}
    logs = [(name, kind) for name in asked.problems for kind in KINDS]
    for name, kind in logs:
        log_of(PROBLEMS[name](), kind, asked.out)
    each = [(agent, *log) for agent in asked.agents for log in logs]
    tasks = [(*what, asked.out, settings) for what in each if what not in done]
    with get_context("spawn").Pool(asked.workers) as pool, file.open("a", newline="") as stream:
        for found in pool.imap_unordered(trained, tasks):
            rows += found
            csv.writer(stream).writerows(found)
            stream.flush()
    print(table(rows))
