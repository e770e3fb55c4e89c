"""The conservative agents beside d3rlpy's: the same logs and settings, five seeds, paired by seed.

`OPTIMIST_PEERS=/path/to/python python -m benchmarks conservative`, where that Python has d3rlpy and
gymnasium. Each seed has a log of its own, which both sides learn from. The results go to `conservative/`.
"""

import csv
import json
import math
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import optimist
from benchmarks.peer_d3rlpy import EPISODES, returns
from optimist import envs
from optimist.data import Recorder, Sampler, transitions

SEEDS, LOG_STEPS, LANES, UPDATES = 5, 20_000, 4, 5_000
CARTPOLE, PENDULUM = "CartPole-v1", "Pendulum-v1"
COMMON = {"batch": 64, "gamma": 0.99, "rate": 3e-4, "hidden": [64, 64], "target_period": 500, "bound": 2.0}
NETWORK = {"network.hidden": "64,64", "optimizer.learning_rate": 3e-4, "optimizer.epsilon": 1e-8}
AGENTS = {
    CARTPOLE: {
        "cql": {"target_period": 500, "network.torso": "mlp"},
        "discrete_bcq": {"target_period": 500, "network.torso": "mlp"},
    },
    PENDULUM: {
        "td3_bc": {},
        "iql": {},
        "rebrac": {"actor_penalty": 0.1, "critic_penalty": 0.01},
        "sac_cql": {"actor_rate": 3e-4, "conservatism": 1.0, "samples": 4},
    },
}
SCALES = {CARTPOLE: 1.0, PENDULUM: 0.1}  # of the rewards: advantages of tens would saturate IQL's weights
STUDENT = 2.776  # the 97.5% quantile of Student's distribution with 4 degrees of freedom


def narrow_log(path: Path, seed: int) -> optimist.Dataset:
    """A scripted controller that balances the pole; 2% of its actions are random."""
    play, random = envs.make(f"gym/{CARTPOLE}", lanes=LANES, seed=seed), np.random.default_rng(seed)
    with Recorder(path, play.spec, lanes=LANES, provenance={"environment": f"gym/{CARTPOLE}"}) as recorder:
        frame = play.reset()
        for _ in range(LOG_STEPS // LANES):
            position, speed, angle, turning = frame.T
            right = angle + 0.5 * turning + 0.05 * position + 0.1 * speed > 0
            noisy = random.random(LANES) < 0.02
            action = np.where(noisy, random.integers(2, size=LANES), right).astype(np.int32)
            taken = play.step(action)
            recorder.add(frame, action, taken.reward, taken.terminal, taken.truncated, taken.next_observation)
            frame = taken.observation
    return optimist.open(path)


def logs_of(game: str, folder: Path) -> list:
    if game == CARTPOLE:
        return [narrow_log(folder / f"cartpole-{seed}", seed) for seed in range(SEEDS)]
    played = optimist.collect(
        f"gym/{PENDULUM}",
        out=folder / "pendulum",
        agent="td3",
        seeds=range(SEEDS),
        options={"network.hidden": "64,64", "noise": 0.3},
        steps=LOG_STEPS,
        lanes=LANES,
        warm_up=2000,
        epsilon=0.0,
        epsilon_decay=0,
        update_period=1,
        batch=64,
    )
    return [played.played_by(seed) for seed in range(SEEDS)]


def save(log, path: Path, scale: float) -> str:
    """The log as d3rlpy takes it: it has no final observation of an episode that was cut off."""
    rows, steps = transitions(Sampler(log), np.arange(len(log)), log.timeline.frames), log.steps()
    last = np.isin(steps, log.stops - 1)
    terminal = log.timeline.terminal[steps]
    np.savez(
        path,
        observations=rows.observation,
        actions=rows.action if rows.action.ndim > 1 else rows.action[:, None],
        rewards=scale * log.timeline.reward[steps],
        terminals=terminal.astype(np.float32),
        timeouts=(last & ~terminal).astype(np.float32),
    )
    return str(path)


def ours(game: str, name: str, logs: list, folder: Path) -> list[list[float]]:
    found = []
    for seed, log in enumerate(logs):
        run = optimist.train(
            name,
            log,
            options={**NETWORK, **AGENTS[game][name]},
            seeds=(seed,),
            out=folder / f"{name}-{seed}",
            environment="",
            steps=UPDATES,
            batch=COMMON["batch"],
            gamma=COMMON["gamma"],
            evaluate_every=UPDATES,
            observations="none",
            reward_scale=SCALES[game],
            clip_rewards=None,
        )
        found.append(returns(run.policy, game))
    return found


def theirs(game: str, name: str, files: list[str], folder: Path) -> list[list[float]]:
    settings = {**COMMON, "game": game, "agent": name, "logs": files, "steps": UPDATES}
    (folder / "settings.json").write_text(json.dumps(settings))
    script = Path(__file__).with_name("peer_d3rlpy.py")
    line = [os.environ["OPTIMIST_PEERS"], str(script), str(folder / "settings.json")]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"seed"')]
    return [row["returns"] for row in rows]


def interval(differences: np.ndarray) -> tuple[float, float]:
    """Half the width of the 95% interval of a mean over seeds is Student's quantile times its error."""
    mean = float(differences.mean())
    half = STUDENT * float(differences.std(ddof=1)) / math.sqrt(len(differences))
    return mean - half, mean + half


def main() -> None:
    out = Path("conservative")
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, open(out / "returns.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["game", "agent", "library", "seed", "episode", "return"])
        for game, agents in AGENTS.items():
            folder = Path(scratch) / game
            folder.mkdir()
            logs = logs_of(game, folder)
            files = [save(log, folder / f"{seed}.npz", SCALES[game]) for seed, log in enumerate(logs)]
            print(
                game, "mean return of each log:", [round(float(x.episodes.returns.mean()), 1) for x in logs]
            )
            for name in agents:
                sides = {
                    "optimist": ours(game, name, logs, folder),
                    "d3rlpy": theirs(game, name, files, folder),
                }
                for library, scores in sides.items():
                    for seed in range(SEEDS):
                        for episode in range(EPISODES):
                            value = round(scores[seed][episode], 3)
                            writer.writerow([game, name, library, seed, episode, value])
                stream.flush()
                here, there = (np.mean(sides[library], axis=1) for library in sides)
                low, high = interval(here - there)
                print(
                    f"{game} {name:13} optimist {here.mean():8.1f}  d3rlpy {there.mean():8.1f}  "
                    f"difference {(here - there).mean():7.1f} [{low:.1f}, {high:.1f}]",
                    flush=True,
                )
