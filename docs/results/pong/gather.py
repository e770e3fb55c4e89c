"""The CSVs of this page from the folder of `three_seeds.py`, or from its unpacked found.tar.gz.

python docs/results/pong/gather.py FOLDER docs/results/pong
"""

import csv
import json
import sys
from pathlib import Path

NAMES = {
    "dqn_adam": "DQN (Adam)",
    "rem": "REM",
    "rem_head_epsilon": "REM, head epsilon / 200",
}
SHARES = ("step_share_heads", "step_share_torso")


def lines(path):
    """The figures of a run; a last line that was cut off is left out."""
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return found


def write(path, heads, rows):
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(heads)
        out.writerows(rows)


def main():
    folder, out = map(Path, sys.argv[1:])
    episodes, scores, shares, players = [], [], [], []
    for short, name in NAMES.items():
        for run in sorted(folder.glob(f"{short}-?")):
            seed, curve = int(run.name[-1]), {}
            with (run / "episodes.csv").open() as file:
                for row in csv.DictReader(file):
                    episodes.append([name, seed, row["step"], row["episode"], row["return"], row["length"]])
                    curve.setdefault(int(row["step"]), []).append(float(row["return"]))
            scores += [["atari/Pong", name, seed, step, sum(c) / len(c)] for step, c in sorted(curve.items())]
            shares += [
                [name, seed, row["step"], *(f"{row[share]:.5f}" for share in SHARES), row.get("estimate", "")]
                for row in lines(run / "metrics.jsonl")
                if row["step"] in (250, 1_000, *curve) and SHARES[0] in row
            ]
    for log in sorted(folder.glob("log-?")):
        for row in lines(log / "agent" / "metrics.jsonl"):
            rate = round(row["steps_per_second"])
            players.append(
                [log.name[-1], row["step"], f"{row['play/return']:.3f}", f"{row['epsilon']:.4f}", rate]
            )
    cards = {log.stem[-1]: json.loads(log.read_text()) for log in sorted(folder.glob("log-?.json"))}
    write(out / "episodes.csv", ["agent", "seed", "step", "episode", "return", "length"], episodes)
    write(out / "scores.csv", ["game", "agent", "seed", "step", "score"], scores)
    write(out / "step-shares.csv", ["agent", "seed", "step", "heads", "torso", "estimate"], shares)
    write(out / "players.csv", ["seed", "step", "return", "epsilon", "steps_per_second"], players)
    (out / "logs.json").write_text(json.dumps(cards, indent=1) + "\n")


if __name__ == "__main__":
    main()
