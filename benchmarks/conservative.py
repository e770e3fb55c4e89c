"""The conservative agents beside d3rlpy's: the same logs and settings, five seeds, paired by seed.

`OPTIMIST_PEERS=/path/to/python python -m benchmarks conservative`, where that Python has d3rlpy and
gymnasium. Each seed has a log of its own, which both sides learn from. The results go to `conservative/`; the
same command continues after the last agent that is done.
"""

import csv
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peer_d3rlpy import returns
from benchmarks.peers import answers
from optimist import api, envs
from optimist.data import Dataset, Recorder, Sampler, transitions

SEEDS, LOG_STEPS, LANES = 5, 20_000, 4
CARTPOLE, PENDULUM = "CartPole-v1", "Pendulum-v1"
UPDATES = {CARTPOLE: 2_000, PENDULUM: 1_500}  # few: eager PyTorch takes 6 to 30 ms of a shared core for each
RATE = 1e-3
COMMON = {"batch": 64, "gamma": 0.99, "hidden": [64, 64], "target_period": 500, "bound": 2.0}
NETWORK = {"network.hidden": "64,64", "optimizer.epsilon": 1e-8}
AGENTS: dict[str, dict[str, dict[str, Any]]] = {
    CARTPOLE: {
        "cql": {"target_period": 500, "network.torso": "mlp"},
        "discrete_bcq": {"target_period": 500, "network.torso": "mlp"},
    },
    PENDULUM: {
        "td3_bc": {},
        "iql": {},
        "rebrac": {"actor_penalty": 0.1, "critic_penalty": 0.01},
        "sac_cql": {"actor_rate": 1e-3, "conservatism": 1.0, "samples": 4},
    },
}
SCALES = {CARTPOLE: 1.0, PENDULUM: 0.1}  # of the rewards: advantages of tens would saturate IQL's weights
COLUMNS = ("game", "agent", "library", "seed", "episode", "return")
STUDENT = 2.776  # the 97.5% quantile of Student's distribution with 4 degrees of freedom


def narrow_log(path: Path, seed: int) -> Dataset:
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
    return api.open(path)


def logs_of(game: str, folder: Path) -> list:
    if game == CARTPOLE:
        return [narrow_log(folder / f"cartpole-{seed}", seed) for seed in range(SEEDS)]
    played = api.collect(
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
    """The transitions as d3rlpy's minibatches have them. At the end of an episode, where no next action was
    logged, the action itself stands for it."""
    sampler = Sampler(log, next_actions=True)
    rows = transitions(sampler, np.arange(len(log)), log.timeline.frames)
    action, following = (x.reshape(len(log), -1).astype(np.float32) for x in (rows.action, rows.next_action))
    np.savez(
        path,
        observations=rows.observation,
        actions=action,
        rewards=(scale * rows.reward[:, None]).astype(np.float32),
        next_observations=rows.next_observation,
        next_actions=np.where(rows.next_logged[:, None], following, action),
        terminals=(rows.discount[:, None] == 0).astype(np.float32),
    )
    return str(path)


def ours(game: str, name: str, logs: list, folder: Path) -> list[list[float]]:
    found = []
    for seed, log in enumerate(logs):
        run = api.train(
            name,
            log,
            options={**NETWORK, "optimizer.learning_rate": RATE, **AGENTS[game][name]},
            seeds=(seed,),
            out=folder / f"{name}-{seed}",
            environment="",
            steps=UPDATES[game],
            batch=COMMON["batch"],
            gamma=COMMON["gamma"],
            evaluate_every=UPDATES[game],
            observations="none",
            hold_out=0,  # as the peer: every episode is learned from
            reward_scale=SCALES[game],
            clip_rewards=None,
        )
        found.append(returns(run.policy, game))
    return found


def theirs(game: str, name: str, files: list[str], folder: Path) -> list[list[float]]:
    lengths = {"steps": UPDATES[game], "rate": RATE}
    actions = {CARTPOLE: 2, PENDULUM: 1}[game]
    settings = {**COMMON, **lengths, "game": game, "agent": name, "logs": files, "actions": actions}
    return [row["returns"] for row in answers("peer_d3rlpy.py", settings, folder) if "seed" in row]


def interval(differences: np.ndarray) -> tuple[float, float]:
    """Half the width of the 95% interval of a mean over seeds is Student's quantile times its error."""
    mean = float(differences.mean())
    half = STUDENT * float(differences.std(ddof=1)) / math.sqrt(len(differences))
    return mean - half, mean + half


def compared(game: str, name: str, logs: list, folder: Path) -> list[tuple]:
    """The rows of both sides: game, agent, library, seed, episode, return."""
    files = [save(log, folder / f"{seed}.npz", SCALES[game]) for seed, log in enumerate(logs)]
    sides = {"optimist": ours(game, name, logs, folder), "d3rlpy": theirs(game, name, files, folder)}
    return [
        (game, name, library, seed, episode, round(value, 3))
        for library, scores in sides.items()
        for seed, episodes in enumerate(scores)
        for episode, value in enumerate(episodes)
    ]


def rows_in(path: Path) -> list[tuple]:
    if not path.exists():
        return []
    with open(path, newline="") as stream:
        return [(*row[:3], int(row[3]), int(row[4]), float(row[5])) for row in list(csv.reader(stream))[1:]]


def show(game: str, name: str, rows: list[tuple]) -> None:
    def means(library: str) -> np.ndarray:
        mine = [row for row in rows if row[:3] == (game, name, library)]
        return np.array([np.mean([row[5] for row in mine if row[3] == seed]) for seed in range(SEEDS)])

    here, there = means("optimist"), means("d3rlpy")
    low, high = interval(here - there)
    print(
        f"{game} {name:13} optimist {here.mean():8.1f}  d3rlpy {there.mean():8.1f}  "
        f"difference {(here - there).mean():7.1f} [{low:.1f}, {high:.1f}]",
        flush=True,
    )


def main() -> None:
    out = Path("conservative") / "returns.csv"
    out.parent.mkdir(exist_ok=True)
    for game, agents in AGENTS.items():
        missing = [name for name in agents if (game, name) not in {row[:2] for row in rows_in(out)}]
        with tempfile.TemporaryDirectory() as scratch:
            logs = logs_of(game, Path(scratch)) if missing else []
            if logs:
                print(
                    game,
                    "mean return of each log:",
                    [round(float(x.episodes.returns.mean()), 1) for x in logs],
                )
            for name in missing:
                rows = [*rows_in(out), *compared(game, name, logs, Path(scratch))]
                with open(out, "w", newline="") as stream:
                    csv.writer(stream).writerows([COLUMNS, *rows])
        for name in agents:
            show(game, name, rows_in(out))
