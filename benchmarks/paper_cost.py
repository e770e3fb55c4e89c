"""What the paper's offline grid costs on 1, 8 and 64 GPUs: `python -m benchmarks paper_cost`.

Computed from measured rates alone, without evaluation and without the online runs that made the logs. Runs do
not communicate, so a grid takes as many rounds as there are programs for each GPU.
"""

import csv
import math
from pathlib import Path

GAMES, SEEDS = 60, 5
AGENTS = ("DQN (Nature)", "DQN (Adam)", "Ensemble-DQN", "QR-DQN", "REM")  # trained offline on all games
UPDATES = {"1X": 12_500_000, "5X": 62_500_000}  # of one run
GPUS = (1, 8, 64)
RATES = Path(__file__).parents[1] / "results" / "performance" / "gpu-learner.csv"


def days(updates: int, rate: float, fused: int, gpus: int) -> float:
    """Days of the grid if each program trains `fused` seeds at this rate, in updates per second of all."""
    programs = GAMES * len(AGENTS) * SEEDS // fused
    return math.ceil(programs / gpus) * updates * fused / rate / 86_400


def main() -> None:
    with open(RATES, newline="") as file:
        rows = [
            row for row in csv.DictReader(file) if row["batch"] == "32" and SEEDS % int(row["seeds"]) == 0
        ]
    print(f"{GAMES} games x {len(AGENTS)} agents x {SEEDS} seeds, days of H200s at REM's rate:")
    print("| | updates/s | " + " | ".join(f"{gpus} GPU{'s' * (gpus > 1)}" for gpus in GPUS) + " |")
    print("|---" * (2 + len(GPUS)) + "|")
    for reading, updates in UPDATES.items():
        for row in rows:
            fused, rate = int(row["seeds"]), float(row["updates_per_second"])
            found = " | ".join(f"{days(updates, rate, fused, gpus):,.1f}" for gpus in GPUS)
            how = "one run at a time" if fused == 1 else f"{fused} seeds fused"
            print(f"| {reading}, {row['precision']}, {how} | {rate:,.0f} | {found} |")


if __name__ == "__main__":
    main()
