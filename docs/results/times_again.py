"""How sure the times of the page on large batches are: every way to draw its five logs again.

    python docs/results/times_again.py > docs/results/large-batches/draws.csv

A time is that at which the mean curve of the logs first has a share of the best of the batch of 32's mean
curve. Both batch sizes get the same logs, and each draw has its own best."""

import csv
import sys
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "large-batches"))
from table import USUAL, rates, read

FOLDER = Path(__file__).parent / "large-batches"
ARM = (256, "root")
SHARES = (0.7, 0.8, 0.9, 1.0)


def first_time(steps: np.ndarray, curve: np.ndarray, enough: float, rate: float) -> float:
    """Seconds; infinite if the curve is never there."""
    reached = curve >= enough
    return steps[reached.argmax()] / rate if reached.any() else np.inf


def relative_time(share: float, logs: list[int], arms: dict, rate: dict[int, float]) -> float:
    """The time of the arm, relative to that of the batch of 32, with these logs."""
    (steps, scores), (usual_steps, usual) = arms[ARM], arms[USUAL]
    curve, usual_curve = scores[logs].mean(0), usual[logs].mean(0)
    enough = share * usual_curve.max()
    usual_time = first_time(usual_steps, usual_curve, enough, rate[USUAL[0]])
    return first_time(steps, curve, enough, rate[ARM[0]]) / usual_time


def lines():
    rate = rates(FOLDER)
    for game, arms in read(FOLDER).items():
        logs = range(len(arms[ARM][1]))
        for share in SHARES:
            whole = relative_time(share, list(logs), arms, rate)
            draws = [
                relative_time(share, list(drawn), arms, rate) for drawn in product(logs, repeat=len(logs))
            ]
            sooner, never = np.less(draws, 1).mean(), np.isinf(draws).mean()
            yield [game, *ARM, share, f"{whole:.3f}", len(draws), f"{sooner:.4f}", f"{never:.4f}"]


if __name__ == "__main__":
    heads = ["game", "batch", "rule", "share_of_best", "relative_time", "draws", "sooner", "never"]
    csv.writer(sys.stdout, lineterminator="\n").writerows([heads, *lines()])
