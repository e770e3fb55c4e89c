"""The CSVs, the table and the figure of this page.

    python docs/results/precision/table.py FOLDER  # writes scores.csv
    python docs/results/precision/table.py > docs/results/precision/differences.csv
    python docs/results/precision/table.py docs/results/precision/curves.png  # needs optimist

Differences are paired by log and seed. The bounds are Student's 95% interval of the mean difference: over
five logs in a game, over ten for both games, where every difference is divided by float32's mean in its game.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from precision import AGENTS, GAMES, PRECISIONS, curves

HERE = Path(__file__).parent
NAMES = {"rem": "REM", "dqn_adam": "DQN (Adam)"}
STUDENT = {5: 2.776, 10: 2.262}  # 97.5% quantile, by the number of logs
MEASURES = {
    "mean of all": lambda runs: runs.mean(1),
    "mean of last 3": lambda runs: runs[:, -3:].mean(1),
    "last": lambda runs: runs[:, -1],
}


def gather(folder: Path) -> None:
    rows = [
        [f"minatar_jax/{game}", NAMES[agent], precision, seed, step, f"{score:.4f}"]
        for agent in AGENTS
        for (game, precision, seed), each in curves(folder, agent).items()
        for step, score in sorted(each.items())
    ]
    with (HERE / "scores.csv").open("w", newline="") as file:
        heads = ["game", "agent", "precision", "seed", "step", "score"]
        csv.writer(file, lineterminator="\n").writerows([heads, *rows])


def read() -> dict[str, tuple[list[int], dict[tuple[str, str], np.ndarray]]]:
    """{agent: (steps, {(game, precision): (seeds, steps)})}, up to the last step that all runs of it have."""
    found: dict = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    with (HERE / "scores.csv").open() as file:
        for row in csv.DictReader(file):
            runs = found[row["agent"]][row["game"].split("/")[1], row["precision"]]
            runs[int(row["seed"])][int(row["step"])] = float(row["score"])
    tables = {}
    for agent, runs in found.items():
        if len(runs) < len(GAMES) * len(PRECISIONS):
            continue
        steps = sorted(set.intersection(*(set(c) for seeds in runs.values() for c in seeds.values())))
        tables[agent] = (
            steps,
            {
                run: np.array([[c[s] for s in steps] for _, c in sorted(seeds.items())])
                for run, seeds in runs.items()
            },
        )
    return tables


def bounds(values: np.ndarray) -> list[str]:
    half = STUDENT[len(values)] * values.std(ddof=1) / len(values) ** 0.5
    return [f"{value:.3f}" for value in (values.mean(), values.mean() - half, values.mean() + half)]


def main() -> None:
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["agent", "to", "measure", "precision", "game", "float32", "difference", "low", "high"])
    for agent, (steps, runs) in read().items():
        for measure, score in MEASURES.items():
            for precision in PRECISIONS[1:]:
                relative = []
                for game in GAMES:
                    usual = score(runs[game, "float32"])
                    differences = score(runs[game, precision]) - usual
                    relative.append(differences / usual.mean())
                    row = [agent, steps[-1], measure, precision, game, f"{usual.mean():.3f}"]
                    out.writerow([*row, *bounds(differences)])
                both = np.concatenate(relative)
                out.writerow([agent, steps[-1], measure, precision, "both, relative", "1", *bounds(both)])


def draw(path: Path) -> None:
    """The mean over logs of each precision, with every run as a thin line."""
    from matplotlib.figure import Figure

    from optimist.studies.report import figures

    tables = read()
    figure = Figure(figsize=(9, 3.4 * len(tables)), layout="constrained")
    grid = figure.subplots(len(tables), len(GAMES), squeeze=False)
    for line, (agent, (steps, runs)) in zip(grid, tables.items(), strict=True):
        for axes, game in zip(line, GAMES, strict=True):
            for precision, colour in zip(PRECISIONS, figures.COLOURS, strict=False):
                each = runs[game, precision]
                axes.plot(steps, each.T, color=colour, linewidth=0.6, alpha=0.4)
                axes.plot(steps, each.mean(0), color=colour, linewidth=2, label=precision)
            axes.set_title(f"{agent}, {game}")
            axes.set_xlabel("gradient updates")
            axes.set_ylabel("mean return")
    grid[0][0].legend(frameon=False)
    figures.save_png(figures.laid_out(figure), path)


if __name__ == "__main__":
    if not sys.argv[1:]:
        main()
    elif sys.argv[1].endswith(".png"):
        draw(Path(sys.argv[1]))
    else:
        gather(Path(sys.argv[1]))
