"""Does a larger minibatch reach the same return sooner, and how must rate and target period change with it?

    python -m benchmarks.large_batches FOLDER [--workers 6] [--until 500]

Five players of each game are logged. Every arm learns from the same logs, seed i from the log of player i:
a minibatch of 32 with the recipe's settings, and k times as many transitions by one of three rules. An arm
makes 1/sqrt(k) of the updates, so that larger batches see more transitions. At the end each batch size is
timed alone. FOLDER/found.tar.gz has the text files of all runs; a run that is not done at `--until` seconds
is stopped. It was tried on a CPU with 64 updates; no result is published yet.
"""

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BASE = 32
BATCHES = (256, 1024, 4096)
RULES = ("plain", "root", "linear")
RATE, PERIOD = 2.5e-4, 250  # of the recipe mini
KEPT = ("episodes.csv", "metrics.jsonl", "config.toml", "*.txt", "rates.csv")
AGENT = ["dqn", "--preset", "adam"]


def arm(batch: int, rule: str) -> list[str]:
    """The options of one arm. The target follows the network after as many transitions as with a batch of 32,
    except by the rule `plain`, which changes nothing but the batch."""
    k = batch / BASE
    rate = {"plain": RATE, "root": RATE * k**0.5, "linear": RATE * k}[rule]
    period = PERIOD if rule == "plain" else max(1, round(PERIOD / k))
    return [
        *("--batch", str(batch), "--optimizer.learning-rate", f"{rate:.6g}"),
        *("--target-period", str(period)),
    ]


def optimist(words: list[str], said: Path, until: float) -> None:
    """Run a command until it ends or the clock reads `until`."""
    with said.open("ab") as output:
        program = [sys.executable, "-m", "optimist", *words]
        process = subprocess.Popen(program, stdout=output, stderr=subprocess.STDOUT)
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()


def rates(path: Path, seeds: int) -> None:
    """Updates a second of one seed, of all seeds fused, by batch size: nothing else runs meanwhile."""
    from optimist.studies.bench.learners import learning, random_log

    log = random_log("minatar")
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["batch", "seeds", "updates_per_second_and_seed"])
        for batch in (BASE, *BATCHES):
            for count in (1, seeds):
                do = learning("dqn", log, "minatar", batch, count).do
                do()
                begun, made = time.perf_counter(), 0
                while time.perf_counter() - begun < 1:
                    made += do()
                out.writerow([batch, count, f"{made / count / (time.perf_counter() - begun):.0f}"])
                file.flush()


def pack(folder: Path) -> None:
    with tarfile.open(folder / "found.tar.gz", "w:gz") as archive:
        for pattern in KEPT:
            for path in sorted(folder.rglob(pattern)):
                archive.add(path, path.relative_to(folder))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--games", default="asterix,breakout")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--until", type=float, default=500)
    parser.add_argument("--played", type=int, default=500_000)
    parser.add_argument("--updates", type=int, default=250_000, help="of the batch of 32")
    asked, began = parser.parse_args(), time.monotonic()
    folder, until = asked.folder, began + asked.until
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.which("nvidia-cuda-mps-control"):  # kernels of several processes run side by side
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False)
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    games = asked.games.split(",")

    def collect(game: str) -> None:
        words = ["collect", f"minatar_jax/{game}", "--preset", "dqn-nature", "--recipe", "mini"]
        words += ["--seeds", asked.seeds, "--steps", str(asked.played), "--out", str(folder / f"log-{game}")]
        optimist(words, folder / f"log-{game}.txt", until)

    def train(task: tuple[str, int, str]) -> None:
        game, batch, rule = task
        updates = round(asked.updates / (batch / BASE) ** 0.5)
        name = f"{game}-{batch}-{rule}"
        words = ["train", *AGENT, str(folder / f"log-{game}"), "--recipe", "mini", "--seeds", asked.seeds]
        words += [
            "--data-per-seed",
            "own",
            "--steps",
            str(updates),
            "--episodes",
            "100",
            "--keep-policies",
            "0",
        ]
        words += ["--evaluate-every", str(max(1, updates // 25)), *arm(batch, rule)]
        optimist([*words, "--out", str(folder / name)], folder / f"{name}.txt", until)
        print(f"{time.monotonic() - began:6.1f} s: {name} ended", flush=True)

    tasks = [(game, BASE, "plain") for game in games]
    tasks += [(game, batch, rule) for batch in reversed(BATCHES) for rule in RULES for game in games]
    with ThreadPoolExecutor(asked.workers) as pool:
        list(pool.map(collect, games))
        print(f"{time.monotonic() - began:6.1f} s: the logs are there", flush=True)
        list(pool.map(train, tasks))
    pack(folder)
    rates(folder / "rates.csv", len(asked.seeds.split(",")))
    pack(folder)


if __name__ == "__main__":
    main()
