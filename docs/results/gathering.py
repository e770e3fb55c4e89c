"""The CSV files of a page about Atari, from the folder of its runs or its unpacked found.tar.gz.

python docs/results/gathering.py FOLDER docs/results/pong
"""

import csv
import json
import sys
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

GAME = "atari/Pong"
NAMES = {  # of the runs' folders, and on the page
    "dqn_nature": "DQN (Nature)",
    "dqn_adam": "DQN (Adam)",
    "qr_dqn": "QR-DQN",
    "rem": "REM",
    "rem_head_epsilon": "REM, head epsilon / 200",
    "dqn_adam_tf32": "DQN (Adam), tf32",
    "dqn_adam_float32": "DQN (Adam), float32",
    "rem_tf32": "REM, tf32",
}
SHARES = ("step_share_heads", "step_share_torso")


def lines(path: Path) -> list[dict]:
    """The figures of a run; a last line that was cut off is left out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return found


def episodes_of(run: Path) -> dict[tuple[int, int], list[tuple[float, int]]]:
    """{(seed, step): [(return, length), ...]} of a run's evaluations."""
    found = defaultdict(list)
    if (run / "episodes.csv").exists():
        with (run / "episodes.csv").open() as file:
            for row in csv.DictReader(file):
                found[int(row["seed"]), int(row["step"])].append((float(row["return"]), int(row["length"])))
    return dict(sorted(found.items()))


def write(path: Path, heads: list[str], rows: list[list]) -> None:
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(heads)
        out.writerows(rows)


def write_runs(folder: Path, out: Path) -> None:
    """Episodes, scores, and shares of an Adam step after 250 and 1,000 updates and at every evaluation."""
    episodes, scores, shares = [], [], []
    for short, name in NAMES.items():
        curve = episodes_of(folder / short)
        for (seed, step), each in curve.items():
            episodes += [[name, seed, step, number, *pair] for number, pair in enumerate(each)]
            scores.append([GAME, name, seed, step, sum(score for score, _ in each) / len(each)])
        evaluated = {step for _, step in curve}
        shares += [
            [
                *(name, row.get("seed", 0), row["step"]),
                *(f"{row[share]:.5f}" if share in row else "" for share in SHARES),
                row.get("estimate", ""),
            ]
            for row in lines(folder / short / "metrics.jsonl")
            if row["step"] in (250, 1_000, *evaluated)
        ]
    write(out / "episodes.csv", ["agent", "seed", "step", "episode", "return", "length"], episodes)
    write(out / "scores.csv", ["game", "agent", "seed", "step", "score"], scores)
    write(out / "step-shares.csv", ["agent", "seed", "step", "heads", "torso", "estimate"], shares)


def write_players(folder: Path, out: Path) -> None:
    """The players' returns while they played, and the episodes of their evaluations."""
    play = folder / "log" / "agent"
    rows = [
        [
            *(row.get("seed", 0), row["step"], f"{row['play/return']:.3f}", f"{row['epsilon']:.4f}"),
            round(row["steps_per_second"]),
        ]
        for row in lines(play / "metrics.jsonl")
        if "play/return" in row
    ]
    evaluations = [
        [*moment, number, *pair]
        for moment, each in episodes_of(play).items()
        for number, pair in enumerate(each)
    ]
    write(out / "players.csv", ["seed", "step", "return", "epsilon", "steps_per_second"], rows)
    write(out / "player-episodes.csv", ["seed", "step", "episode", "return", "length"], evaluations)
    (out / "log.json").write_text((folder / "log.json").read_text())


def write_progress(folder: Path, out: Path) -> float:
    """The newest step of every run, second by second; the clock when the first one was written."""
    with (folder / "progress.csv").open() as file:
        rows = [row for row in csv.reader(file) if len(row) == 3]
    began = float(rows[0][0])
    progress = [[f"{float(clock) - began:.1f}", name, step] for clock, name, step in rows]
    write(out / "progress.csv", ["seconds", "run", "step"], progress)
    return began


def write_device(folder: Path, out: Path, began: float) -> None:
    """Percent busy and MiB used, second by second, if FOLDER/device.txt was written meanwhile by
    nvidia-smi --query-gpu=timestamp,utilization.gpu,memory.used --format=csv,noheader,nounits -l 1"""
    found = []
    for line in (folder / "device.txt").read_text().splitlines() if (folder / "device.txt").exists() else ():
        clock, busy, used, *_ = (word.strip() for word in line.split(","))
        seconds = datetime.strptime(clock, "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=UTC).timestamp() - began
        found.append([f"{seconds:.1f}", busy, used])
    if found:
        write(out / "device.csv", ["seconds", "busy", "mib"], found)


def main() -> None:
    folder, out = map(Path, sys.argv[1:])
    write_runs(folder, out)
    write_players(folder, out)
    write_device(folder, out, write_progress(folder, out))


if __name__ == "__main__":
    main()
