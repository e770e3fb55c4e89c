"""A narrow CartPole log: train five agents on it, choose a policy by the log, export it, play it elsewhere.

`PYTHONPATH=. python docs/results/narrow-log/narrow.py FOLDER [UPDATES]` in the repository's root; with few
updates the estimators of the choice have as few. The log is that of `benchmarks/conservative.py`: a
controller that balances the pole, with 2% random actions. The evaluations during training are recorded, and
the choice does not use them. The same command continues.
"""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
from benchmarks.conservative import narrow_log

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call

from optimist import api

AGENTS = ("cql", "discrete_bcq", "discrete_iql", "dqn", "rem")
SEEDS, KEPT, EPISODES = range(5), 5, 20
FITTED = 10_000  # updates of the estimators that choose, the default of `optimist select`

# Neither JAX nor optimist: `-I` leaves out the path of this repository, and both are looked for at the end.
PLAYER = """
import sys
import gymnasium, numpy, onnxruntime
policy = onnxruntime.InferenceSession(sys.argv[1])
name, returns = policy.get_inputs()[0].name, []
for seed in range(100):
    game = gymnasium.make("CartPole-v1")
    observation, total, over = game.reset(seed=seed)[0], 0.0, False
    while not over:
        action = policy.run(None, {name: observation.astype(numpy.float32)})[0]
        observation, reward, ended, cut, _ = game.step(int(action))
        total, over = total + reward, ended or cut
    returns.append(total)
assert not {"jax", "optimist"} & set(sys.modules)
print(numpy.mean(returns), numpy.min(returns))
"""


def main(folder: Path, updates: int = 20_000) -> None:
    data = api.open(folder / "log") if (folder / "log").exists() else narrow_log(folder / "log", seed=0)
    returns = [each.return_ for each in data.episodes]
    print(f"log: {len(data):,} steps, {len(returns)} episodes, mean return {np.mean(returns):.0f}")
    runs = []
    for agent in AGENTS:
        every = updates // KEPT
        settings = {"steps": updates, "evaluate_every": every, "episodes": EPISODES, "epsilon": 0.0}
        runs.append(api.train(agent, data, seeds=SEEDS, out=folder / agent, **settings))
    played = {run.path: scores(run) for run in runs}
    for agent, run in zip(AGENTS, runs, strict=True):
        last = [round(played[run.path][updates, seed]) for seed in SEEDS]
        print(f"{agent}: {np.mean(last):.0f} at the last evaluation; seeds {last}")
    selection = api.select(runs, updates=min(updates, FITTED))
    with open(folder / "policies.csv", "w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(("agent", "step", "seed", "cautious", "support", "return"))
        for each in selection.ranking:
            score = played[each.run][each.step, each.seed]
            table.writerow(
                (each.agent, each.step, each.seed, f"{each.value:.4f}", f"{each.support:.4f}", score)
            )
    best, chosen = max(max(each.values()) for each in played.values()), selection.ranking[0]
    score = played[chosen.run][chosen.step, chosen.seed]
    print(f"chosen of {len(selection.ranking)}: {chosen.name}, {score:.0f}; the best policy has {best:.0f}")
    file = folder / "policy.onnx"
    print(api.export(api.load(chosen.run, step=chosen.step), file, seed=chosen.seed))
    elsewhere = subprocess.run(
        [sys.executable, "-I", "-c", PLAYER, str(file)], capture_output=True, text=True, check=True
    )
    print(
        "the file, played without JAX and optimist: mean and lowest of 100 episodes", elsewhere.stdout.strip()
    )


def scores(run) -> dict[tuple[int, int], float]:
    """The mean return of the evaluation of each step and seed."""
    found: dict[tuple[int, int], list[float]] = {}
    for episode in run.episodes():
        found.setdefault((episode.step, episode.seed), []).append(episode.score)
    return {place: float(np.mean(each)) for place, each in found.items()}


if __name__ == "__main__":
    call(__doc__, main)
