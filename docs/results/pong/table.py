"""The table and the figure of this page from scores.csv. The table needs numpy alone; the figure, optimist.

    python docs/results/pong/table.py > docs/results/pong/table.csv
    python docs/results/pong/table.py docs/results/pong/curves.png

Every evaluation up to the last one that all runs reached is read. Cross-chosen best: each seed at the
evaluation that is best for the mean of the other seeds. The bounds are Student's 95% interval of a mean over
three logs (two degrees of freedom), of scores or of paired differences; for the cross-chosen best, whose
scores depend on each other, they are too narrow.
"""

import csv
import sys
from collections import defaultdict
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np

STUDENT = {3: 4.303}  # 97.5% quantile, by the number of values


def curves():
    """The evaluated steps, and {agent: (seeds, evaluations)}."""
    found = defaultdict(lambda: defaultdict(dict))
    with open(Path(__file__).parent / "scores.csv") as file:
        for row in csv.DictReader(file):
            found[row["agent"]][int(row["seed"])][int(row["step"])] = float(row["score"])
    steps = sorted(set.intersection(*(set(c) for seeds in found.values() for c in seeds.values())))
    return steps, {
        agent: np.array([[seeds[seed][step] for step in steps] for seed in sorted(seeds)])
        for agent, seeds in found.items()
    }


def cross_chosen(runs):
    return np.array([run[np.delete(runs, i, 0).mean(0).argmax()] for i, run in enumerate(runs)])


MEASURES = {
    "last": lambda runs: runs[:, -1],
    "best": lambda runs: runs[:, runs.mean(0).argmax()],
    "cross-chosen best": cross_chosen,
    "mean of last 3": lambda runs: runs[:, -3:].mean(1),
    "mean of all": lambda runs: runs.mean(1),
}


def at_step(runs, at):
    return runs[:, at]


def numbers(values):
    """Each seed's value, mean, standard deviation and bounds."""
    mean, deviation = values.mean(), values.std(ddof=1)
    half = STUDENT[len(values)] * deviation / len(values) ** 0.5
    return [f"{value:.2f}" for value in (*values, mean, deviation, mean - half, mean + half)]


def draw(path):
    """Each run as a thin line, the mean over seeds as a thick one."""
    from matplotlib.figure import Figure

    from optimist.studies.report import figures

    steps, runs = curves()
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for (agent, each), colour in zip(runs.items(), figures.COLOURS, strict=False):
        axes.plot(steps, each.T, color=colour, linewidth=0.8, alpha=0.6)
        axes.plot(steps, each.mean(0), color=colour, linewidth=2.2, label=agent)
    axes.set_xlabel("gradient updates")
    axes.set_ylabel("mean return of ten episodes")
    axes.legend(frameon=False)
    figures.save_png(figures.laid_out(figure), Path(path))


def main():
    steps, runs = curves()
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(
        ["score", "agent", "minus", "seed_0", "seed_1", "seed_2", "mean", "deviation", "low", "high"]
    )
    readings = {f"at {step}": partial(at_step, at=at) for at, step in enumerate(steps)}
    for name, measure in {**MEASURES, **readings}.items():
        scores = {agent: measure(each) for agent, each in runs.items()}
        for agent, values in scores.items():
            out.writerow([name, agent, "", *numbers(values)])
        for other, agent in combinations(scores, 2):
            out.writerow([name, agent, other, *numbers(scores[agent] - scores[other])])


if __name__ == "__main__":
    draw(sys.argv[1]) if sys.argv[1:] else main()
