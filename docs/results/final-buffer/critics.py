"""What the critics estimated on the way, from the folder of a study, and when they diverged.

    python docs/results/final-buffer/critics.py results/Hopper docs/results/final-buffer/2019
    python docs/results/final-buffer/critics.py docs/results/final-buffer/2019

The first adds the study's runs to critics.csv, with every 10,000th update; the second prints a row for
each run of that file. A run has diverged when an estimate is beyond 2,000 either way: the best episodes
return some hundreds with discount.
"""

import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call, print_table, refuse
from gathering import add, lines

from optimist.studies.status import read_record

BEYOND = 2_000
EVERY = 10_000
RUN = ["game", "agent", "seed"]


def gather(study: Path, out: Path) -> None:
    rows = [
        [job.environment, job.label, row["seed"], row["step"], f"{row['estimate']:.4g}"]
        for job in read_record(study).jobs
        for row in lines(job.run_folder(study) / "metrics.jsonl")
        if job.label and "estimate" in row and row["step"] % EVERY == 0
    ]
    add(out / "critics.csv", [*RUN, "step", "estimate"], rows)


def show(folder: Path) -> None:
    if not (folder / "critics.csv").exists():
        refuse(f"{folder} has no critics.csv: add a study to it first")
    runs: dict[tuple[str, ...], dict[int, float]] = {}
    with (folder / "critics.csv").open() as file:
        for row in csv.DictReader(file):
            curve = runs.setdefault(tuple(row[name] for name in RUN), {})
            curve[int(row["step"])] = float(row["estimate"])
    rows = [[*run, *summary(curve)] for run, curve in sorted(runs.items())]
    print_table([*RUN, "diverged_at", "updates", "estimate"], rows)


def summary(curve: dict[int, float]) -> list:
    """The first update beyond the bound, if there is one; the last update and its estimate."""
    last = max(curve)
    return [min((step for step in curve if abs(curve[step]) > BEYOND), default=""), last, curve[last]]


if __name__ == "__main__":
    call(__doc__, gather, show)
