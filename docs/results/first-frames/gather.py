"""The CSVs of this page from the folder of `first_frames.py`, or from its unpacked found.tar.gz.

python docs/results/first-frames/gather.py FOLDER docs/results/first-frames

FOLDER/device.txt, if there is one, is the output of
nvidia-smi --query-gpu=timestamp,utilization.gpu,memory.used --format=csv,noheader,nounits -l 1
"""

import csv
import json
import sys
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

NAMES = {
    "dqn_nature": "DQN (Nature)",
    "dqn_adam": "DQN (Adam)",
    "qr_dqn": "QR-DQN",
    "rem": "REM",
    "dqn_adam_tf32": "DQN (Adam), tf32",
    "rem_tf32": "REM, tf32",
}
SHARES = ("step_share_heads", "step_share_torso")


def lines(path):
    """The figures of a run; a last line that was cut off is left out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return found


def episodes_of(run):
    """{step: [(return, length), ...]} of a run's evaluations."""
    found = defaultdict(list)
    if (run / "episodes.csv").exists():
        with (run / "episodes.csv").open() as file:
            for row in csv.DictReader(file):
                found[int(row["step"])].append((float(row["return"]), int(row["length"])))
    return dict(sorted(found.items()))


def write(path, heads, rows):
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(heads)
        out.writerows(rows)


def device(path, began):
    """Second, percent busy and MiB used, of every line."""
    found = []
    for line in path.read_text().splitlines():
        clock, busy, used, *_ = (word.strip() for word in line.split(","))
        seconds = datetime.strptime(clock, "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=UTC).timestamp() - began
        found.append([f"{seconds:.1f}", busy, used])
    return found


def main():
    folder, out = map(Path, sys.argv[1:])
    episodes, scores, shares, progress = [], [], [], []
    for short, name in NAMES.items():
        curve = episodes_of(folder / short)
        for step, each in curve.items():
            episodes += [[name, 0, step, number, *pair] for number, pair in enumerate(each)]
            scores.append(["atari/Pong", name, 0, step, sum(score for score, _ in each) / len(each)])
        shares += [
            [
                name,
                0,
                row["step"],
                *(f"{row[share]:.5f}" if share in row else "" for share in SHARES),
                row.get("estimate", ""),
            ]
            for row in lines(folder / short / "metrics.jsonl")
            if row["step"] in (250, 1_000, *curve)
        ]
    play = folder / "log" / "agent"
    player = [
        [row["step"], f"{row['play/return']:.3f}", f"{row['epsilon']:.4f}", round(row["steps_per_second"])]
        for row in lines(play / "metrics.jsonl")
    ]
    evaluations = [
        [step, number, *pair] for step, each in episodes_of(play).items() for number, pair in enumerate(each)
    ]
    with (folder / "progress.csv").open() as file:
        rows = [row for row in csv.reader(file) if len(row) == 3]
    began = float(rows[0][0])
    progress = [[f"{float(clock) - began:.1f}", name, step] for clock, name, step in rows]
    write(out / "episodes.csv", ["agent", "seed", "step", "episode", "return", "length"], episodes)
    write(out / "scores.csv", ["game", "agent", "seed", "step", "score"], scores)
    write(out / "step-shares.csv", ["agent", "seed", "step", "heads", "torso", "estimate"], shares)
    write(out / "player.csv", ["step", "return", "epsilon", "steps_per_second"], player)
    write(out / "player-episodes.csv", ["step", "episode", "return", "length"], evaluations)
    write(out / "progress.csv", ["seconds", "run", "step"], progress)
    if (folder / "device.txt").exists():
        write(out / "device.csv", ["seconds", "busy", "mib"], device(folder / "device.txt", began))
    (out / "log.json").write_text((folder / "log.json").read_text())


if __name__ == "__main__":
    main()
