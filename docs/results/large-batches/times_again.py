"""How sure the times of the page on large batches are: every way to draw its five logs again.

    python docs/results/large-batches/times_again.py > docs/results/large-batches/draws.csv

A time is that at which the mean curve of the logs first has a share of the best of the batch of 32's mean
curve. Both batch sizes get the same logs, and each draw has its own best."""

import sys
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from command import call, print_table
from table import LOWEST, USUAL, rates, read, seconds

FOLDER = Path(__file__).parent
ARM = (256, "root")
SHARES = (0.7, 0.8, 0.9, 1.0)
HEADS = ["game", "batch", "rule", "share_of_best", "relative_time", "draws", "sooner", "never"]


def first_time(times: np.ndarray, curve: np.ndarray, enough: float) -> float:
    """Infinite if the curve is never there."""
    reached = curve >= enough
    return times[reached.argmax()] if reached.any() else np.inf


def lines_of(game: str, arms: dict, rate: dict[tuple[str, int], float]):
    (steps, scores), (usual_steps, usual) = arms[ARM], arms[USUAL]
    times, usual_times = seconds(game, ARM[0], steps, rate), seconds(game, USUAL[0], usual_steps, rate)
    lowest, logs = LOWEST.get(game, 0.0), range(len(scores))

    def relative_time(drawn: list[int], share: float) -> float:
        """The time of the arm, relative to that of the batch of 32, with these logs."""
        curve, usual_curve = scores[drawn].mean(0), usual[drawn].mean(0)
        enough = lowest + share * (usual_curve.max() - lowest)
        return first_time(times, curve, enough) / first_time(usual_times, usual_curve, enough)

    for share in SHARES:
        whole = relative_time(list(logs), share)
        draws = [relative_time(list(drawn), share) for drawn in product(logs, repeat=len(logs))]
        sooner, never = np.less(draws, 1).mean(), np.isinf(draws).mean()
        yield [game, *ARM, share, f"{whole:.3f}", len(draws), f"{sooner:.4f}", f"{never:.4f}"]


def every_line() -> list[list]:
    rate = rates(FOLDER)
    return [line for game, arms in read(FOLDER).items() for line in lines_of(game, arms, rate)]


if __name__ == "__main__":
    call(__doc__, lambda: print_table(HEADS, every_line()))
