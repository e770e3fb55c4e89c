"""The same logs and seeds, learned from with products in float32, tf32 and bf16, on one GPU.

    python docs/results/precision/precision.py FOLDER [--until 400]

Players of each game are logged, one for each seed. Then each agent learns from them with each precision, in
all games and precisions at the same time. `--until` is in seconds from the start; what has been evaluated by
then, or when the process gets SIGTERM, is in FOLDER/found.tar.gz.
"""

import argparse
import csv
import signal
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from work import Diary, Work, pack, share_the_device, stop, wait

GAMES = "asterix,breakout"
PRECISIONS = "float32,tf32,bf16"
AGENTS = {"rem": ["rem"], "dqn_adam": ["dqn", "--preset", "adam"]}


def curves(folder: Path) -> dict[tuple[str, str, str, int], dict[int, float]]:
    """{(agent, game, precision, seed): {updates: mean return}}."""
    found: dict = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.glob("*-*-*/episodes.csv")):
        agent, game, precision = path.parent.name.split("-")
        for row in csv.DictReader(path.open()):
            found[agent, game, precision, int(row["seed"])][int(row["step"])].append(float(row["return"]))
    return {run: {step: statistics.mean(c) for step, c in each.items()} for run, each in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--games", default=GAMES)
    parser.add_argument("--precisions", default=PRECISIONS)
    parser.add_argument("--agents", default=",".join(AGENTS))
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--updates", default="625000")
    parser.add_argument("--evaluate-every", default="25000")
    parser.add_argument("--episodes", default="100")
    parser.add_argument("--until", type=float, default=400)
    parser.add_argument("--more", default="", help="more options of `optimist collect`")
    asked = parser.parse_args()
    folder, until = asked.folder, time.monotonic() + asked.until
    games, precisions = asked.games.split(","), asked.precisions.split(",")
    folder.mkdir(parents=True, exist_ok=True)
    diary = Diary(folder / "diary.jsonl")
    share_the_device()
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(True))

    def over() -> bool:
        return bool(told)

    shared = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "NPROC": "3"}
    works = [
        Work(
            f"log-{game}",
            [
                *("collect", f"minatar_jax/{game}", "--preset", "dqn-nature", "--recipe", "mini"),
                *("--seeds", asked.seeds, "--loggers", "jsonl", "--keep-policies", "0", *asked.more.split()),
            ],
            folder,
            **shared,
        )
        for game in games
    ]
    wait(works, until, folder, over)
    diary.add("the logs are recorded")
    for agent in asked.agents.split(","):
        if over() or time.monotonic() > until:
            break
        name, *preset = AGENTS[agent]
        works = [
            Work(
                f"{agent}-{game}-{precision}",
                [
                    *("train", name, str(folder / f"log-{game}"), *preset, "--recipe", "mini"),
                    *("--seeds", asked.seeds, "--data-per-seed", "own", "--precision", precision),
                    *("--steps", asked.updates, "--evaluate-every", asked.evaluate_every),
                    *("--episodes", asked.episodes, "--feed", "device", "--keep-policies", "0"),
                    *("--loggers", "jsonl"),
                ],
                folder,
                **shared,
            )
            for game in games
            for precision in precisions
        ]
        wait(works, until, folder, over)
        diary.add(f"{agent}: " + ", ".join(f"{work.name} {work.evaluated():,}" for work in works))
    stop(works)
    pack(folder)
    diary.add("packed")


if __name__ == "__main__":
    main()
