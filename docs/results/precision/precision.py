"""The same logs and seeds, learned from with products in float32, tf32 and bf16, on one GPU.

    python docs/results/precision/precision.py FOLDER [--until 400]

Five players of each game are logged; then REM, and after it DQN (Adam), learn from them with each precision,
all precisions at the same time. `--until` is in seconds from the start. At the end, or when the process gets
SIGTERM, FOLDER/verdict.json has the differences of bf16 and tf32 from float32.
"""

import argparse
import csv
import json
import signal
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "first-frames"))
from work import Diary, Work, pack, share_the_device, stop, wait

GAMES = ("asterix", "breakout")
PRECISIONS = ("float32", "tf32", "bf16")
AGENTS = {"rem": ["rem"], "dqn_adam": ["dqn", "--preset", "adam"]}
STUDENT = 2.262  # 97.5% quantile with 9 degrees of freedom: ten logs
FEWEST = 5  # evaluations that all runs must have for a verdict


def curves(folder: Path, agent: str) -> dict[tuple[str, str, int], dict[int, float]]:
    """{(game, precision, seed): {updates: mean return}}."""
    found: dict = defaultdict(lambda: defaultdict(list))
    for game in GAMES:
        for precision in PRECISIONS:
            path = folder / f"{agent}-{game}-{precision}" / "episodes.csv"
            for row in csv.DictReader(path.open()) if path.exists() else ():
                found[game, precision, int(row["seed"])][int(row["step"])].append(float(row["return"]))
    return {run: {step: statistics.mean(c) for step, c in each.items()} for run, each in found.items()}


def difference(folder: Path, agent: str, precision: str) -> dict:
    """The mean over logs of (this precision minus float32) / (mean of float32 in the game), by the mean of
    all evaluations that every run of the agent has; with Student's 95% interval."""
    runs = curves(folder, agent)
    logs = sorted({(game, seed) for game, _, seed in runs})
    if len(runs) < len(logs) * len(PRECISIONS) or not logs:
        return {"evaluations": 0}
    steps = sorted(set.intersection(*(set(each) for each in runs.values())))
    if not steps:
        return {"evaluations": 0}
    area = {run: statistics.mean(each[step] for step in steps) for run, each in runs.items()}
    usual = {game: statistics.mean(area[g, "float32", s] for g, s in logs if g == game) for game, _ in logs}
    each = [(area[g, precision, s] - area[g, "float32", s]) / usual[g] for g, s in logs]
    half = STUDENT * statistics.stdev(each) / len(each) ** 0.5
    mean = statistics.mean(each)
    return {"evaluations": len(steps), "to": steps[-1], "mean": mean, "low": mean - half, "high": mean + half}


def verdict(folder: Path) -> dict:
    """The differences; bf16 does no harm unless REM's interval is below zero."""
    found = {agent: {p: difference(folder, agent, p) for p in PRECISIONS[1:]} for agent in AGENTS}
    seen = found["rem"]["bf16"]
    found["harmless"] = seen["evaluations"] >= FEWEST and seen["high"] >= 0
    (folder / "verdict.json").write_text(json.dumps(found, indent=1) + "\n")
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--updates", default="625000")
    parser.add_argument("--evaluate-every", default="25000")
    parser.add_argument("--episodes", default="100")
    parser.add_argument("--until", type=float, default=400)
    parser.add_argument("--more", default="", help="more options of `optimist collect`")
    asked = parser.parse_args()
    folder, until = asked.folder, time.monotonic() + asked.until
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
        for game in GAMES
    ]
    wait(works, until, folder, over)
    diary.add("the logs are recorded")
    for agent, words in AGENTS.items():
        if over() or time.monotonic() > until:
            break
        works = [
            Work(
                f"{agent}-{game}-{precision}",
                [
                    *("train", words[0], str(folder / f"log-{game}"), *words[1:], "--recipe", "mini"),
                    *("--seeds", asked.seeds, "--data-per-seed", "own", "--precision", precision),
                    *("--steps", asked.updates, "--evaluate-every", asked.evaluate_every),
                    *("--episodes", asked.episodes, "--feed", "device", "--keep-policies", "0"),
                    *("--loggers", "jsonl"),
                ],
                folder,
                **shared,
            )
            for game in GAMES
            for precision in PRECISIONS
        ]
        wait(works, until, folder, over)
        diary.add(f"{agent}: " + ", ".join(f"{work.name} {work.evaluated():,}" for work in works))
    stop(works)
    diary.add(json.dumps(verdict(folder)))
    pack(folder)


if __name__ == "__main__":
    main()
