"""DQN online with the defaults beside Stable-Baselines3's: 50,000 steps of CartPole and Acrobot, three seeds.

`OPTIMIST_PEERS=/path/to/python python -m benchmarks online`, where that Python has stable-baselines3 and
gymnasium. Theirs plays with the defaults of the library, and with the settings of rl-zoo3, tuned for each.
A row is the mean return of the episodes that ended in a fifth of the steps, or of 50 episodes of the final
policy. The last fifth is what is compared; the mean of all fifths is the area under the curve. The results go
to `online/returns.csv`; the same command continues after the last run that is done.
"""

import csv
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.peers import answers
from optimist import api

SEEDS, STEPS, FIFTHS, EPISODES = range(3), 50_000, 5, 50
WORST = {"CartPole-v1": 0.0, "Acrobot-v1": -500.0}  # the returns from which a share is counted
TUNED = {
    "CartPole-v1": {
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 100_000,
        "learning_starts": 1000,
        "target_update_interval": 10,
        "train_freq": 256,
        "gradient_steps": 128,
        "exploration_fraction": 0.16,
        "exploration_final_eps": 0.04,
        "net_arch": [256, 256],
    },
    "Acrobot-v1": {
        "learning_rate": 6.3e-4,
        "batch_size": 128,
        "buffer_size": 50_000,
        "learning_starts": 0,
        "target_update_interval": 250,
        "train_freq": 4,
        "gradient_steps": -1,
        "exploration_fraction": 0.12,
        "exploration_final_eps": 0.1,
        "net_arch": [256, 256],
    },
}
PLAYERS = ("optimist", "sb3", "sb3 tuned")
OUT = Path("online") / "returns.csv"
COLUMNS = ("game", "player", "seed", "part", "return")


def fifths(ends: np.ndarray, returns: np.ndarray) -> list[float]:
    """The mean return of the episodes that ended in each fifth of the steps."""
    part = (ends - 1) * FIFTHS // STEPS
    return [float(returns[part == number].mean()) for number in range(FIFTHS)]


def ours(game: str, seed: int, folder: Path) -> tuple[list[float], list[float]]:
    played = api.collect(f"gym/{game}", out=folder / "log", seeds=(seed,), steps=STEPS)
    episodes, lanes = played.episodes, played.provenance["collection"]["lanes"]
    last_row = (np.cumsum(episodes.lengths) - 1) % (STEPS // lanes)  # a lane's steps follow one another
    final = api.load(folder / "log" / "agent").evaluate(EPISODES, epsilon=0.0)
    return fifths((last_row + 1) * lanes, episodes.returns), [episode.score for episode in final]


def theirs(game: str, seed: int, settings: dict, folder: Path) -> tuple[list[float], list[float]]:
    asked = {"game": game, "seed": seed, "steps": STEPS, "episodes": EPISODES, "settings": settings}
    *_, found = answers("peer_sb3.py", asked, folder)
    return fifths(np.array(found["ends"]), np.array(found["returns"])), found["final"]


def rows_of(game: str, player: str, seed: int) -> list[tuple]:
    with tempfile.TemporaryDirectory() as scratch:
        if player == "optimist":
            parts, final = ours(game, seed, Path(scratch))
        else:
            settings = TUNED[game] if player == "sb3 tuned" else {}
            parts, final = theirs(game, seed, settings, Path(scratch))
    found = [*enumerate(parts, start=1), ("final", float(np.mean(final)))]
    return [(game, player, str(seed), str(part), f"{value:.1f}") for part, value in found]


def rows_done() -> list[tuple]:
    if not OUT.exists():
        return []
    with open(OUT, newline="") as stream:
        return [tuple(row) for row in csv.reader(stream)][1:]


def show(game: str, rows: list[tuple]) -> None:
    def means(player: str, *parts: str) -> float:
        mine = [float(row[4]) for row in rows if row[:2] == (game, player) and row[3] in parts]
        return float(np.mean(mine))

    whole = tuple(str(number + 1) for number in range(FIFTHS))
    best = max(means(player, whole[-1]) for player in PLAYERS[1:]) - WORST[game]
    for player in PLAYERS:
        last = means(player, whole[-1])
        share = (last - WORST[game]) / best
        print(
            f"{game:12} {player:10} last fifth {last:7.1f} ({share:4.0%} of sb3's best)  "
            f"all {means(player, *whole):7.1f}  final policy {means(player, 'final'):7.1f}",
            flush=True,
        )


def main() -> None:
    OUT.parent.mkdir(exist_ok=True)
    for game in TUNED:
        for player, seed in [(player, seed) for player in PLAYERS for seed in SEEDS]:
            rows = rows_done()
            if (game, player, str(seed)) not in {row[:3] for row in rows}:
                rows += rows_of(game, player, seed)
                with open(OUT, "w", newline="") as stream:
                    csv.writer(stream).writerows([COLUMNS, *rows])
        show(game, rows_done())
