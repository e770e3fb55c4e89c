"""Three players of one Atari game are logged; three agents then learn offline, each seed from its own log.

    python docs/results/pong/three_seeds.py FOLDER [--collect-until 145] [--train-until 457]

All three players run at the same time, then all nine offline runs, one process each. The clock decides: the
players are stopped after `--collect-until` seconds and the offline runs after `--train-until`, counted from
the start. What has been evaluated by then is in FOLDER/found.tar.gz, which is written anew every half minute.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

HEADS = 200
AGENTS = {
    "dqn_adam": ["dqn", "--preset", "adam"],
    "rem": ["rem", "--preset", "paper"],
    "rem_head_epsilon": ["rem", "--preset", "paper", "--optimizer.head-epsilon", str(0.01 / 32 / HEADS)],
}
KEPT = ("*.csv", "*.jsonl", "*.toml", "*.json", "*.txt")
PACK_EVERY = 30  # seconds
STARTS = 3  # of a process that fails


class Work:
    """One command; it is started again if it fails, and continues where it was."""

    def __init__(self, name: str, words: list[str], folder: Path, cores: int):
        self.words, self.output = [sys.executable, "-m", "optimist", *words], folder / f"{name}.txt"
        self.settings = {**os.environ, "NPROC": str(cores)}
        self.starts = 0
        self.start()

    def start(self) -> None:
        self.starts += 1
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                self.words, stdout=output, stderr=subprocess.STDOUT, env=self.settings
            )

    def runs(self) -> bool:
        if self.process.poll() not in (None, 0) and self.starts < STARTS:
            self.start()
        return self.process.poll() is None


def wait(works: list[Work], until: float, folder: Path, patience: float) -> None:
    """Until all works are done or the clock reads `until`; then stop those that still run."""
    packed = time.monotonic()
    while any([work.runs() for work in works]) and time.monotonic() < until:
        time.sleep(0.5)
        if time.monotonic() - packed > PACK_EVERY:
            pack(folder)
            packed = time.monotonic()
    end = time.monotonic() + patience
    for work in works:  # all are asked first, so that they end together
        if work.process.poll() is None:
            work.process.send_signal(signal.SIGINT)
    for work in works:
        try:
            work.process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            work.process.kill()
            work.process.wait()


def pack(folder: Path) -> None:
    """Put the text files of all logs and runs into one archive."""
    part = folder / "found.part"
    with tarfile.open(part, "w:gz") as archive:
        for pattern in KEPT:
            for path in sorted(folder.rglob(pattern)):
                archive.add(path, path.relative_to(folder))
    part.replace(folder / "found.tar.gz")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--game", default="Pong")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--lanes", default="64", help="of each player")
    parser.add_argument("--steps", default="1000000", help="of each player")
    parser.add_argument("--updates", default="1250000", help="of each offline run")
    parser.add_argument("--evaluate-every", default="31250")
    parser.add_argument("--episodes", default="10")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--collect-until", type=float, default=145)
    parser.add_argument("--train-until", type=float, default=457)
    parser.add_argument("--collection", default="", help="more options of `optimist collect`")
    asked, began = parser.parse_args(), time.monotonic()
    folder, seeds = asked.folder, asked.seeds.split(",")
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.which("nvidia-cuda-mps-control"):  # kernels of several processes run side by side
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False)
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

    def tell(words: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s: {words}", flush=True)

    players = [
        Work(
            f"player-{seed}",
            [
                *("collect", f"atari/{asked.game}", "--preset", "dqn-nature", "--seeds", seed),
                *("--steps", asked.steps, "--lanes", asked.lanes, "--checkpoint-seconds", "1000"),
                *("--loggers", "jsonl", *asked.collection.split(), "--out", str(folder / f"log-{seed}")),
            ],
            folder,
            max(1, asked.cores // len(seeds) + 2),  # two of them are left to the learner
        )
        for seed in seeds
    ]
    wait(players, began + asked.collect_until, folder, patience=15)
    tell("the players have stopped")
    runs = [
        Work(
            f"{name}-{seed}",
            [
                *("train", words[0], str(folder / f"log-{seed}"), *words[1:], "--seeds", seed),
                *("--steps", asked.updates, "--evaluate-every", asked.evaluate_every),
                *("--evaluation-steps", "none", "--episodes", asked.episodes, "--feed", "device"),
                *("--keep-policies", "0", "--loggers", "jsonl", "--out", str(folder / f"{name}-{seed}")),
            ],
            folder,
            6,
        )
        for seed in seeds
        for name, words in AGENTS.items()
    ]
    for seed in seeds:
        with (folder / f"log-{seed}.json").open("wb") as card:
            info = [sys.executable, "-m", "optimist", "data", "info", str(folder / f"log-{seed}"), "--json"]
            subprocess.run(info, stdout=card, env={**os.environ, "JAX_PLATFORMS": "cpu"}, check=False)
    tell("the logs are described")
    wait(runs, began + asked.train_until, folder, patience=5)
    pack(folder)
    tell("packed")


if __name__ == "__main__":
    main()
