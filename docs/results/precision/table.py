"""The CSVs and the figures of this page, from an experiment's folder or from its scores.

    python docs/results/precision/table.py gather FOLDER SCORES.csv
    python docs/results/precision/table.py differences SCORES.csv > DIFFERENCES.csv
    python docs/results/precision/table.py late SCORES.csv OTHER.csv ... > LATE.csv
    python docs/results/precision/table.py draw SCORES.csv FIGURE.png  # needs optimist

Evaluations up to the last one that all runs have are compared. Differences are paired by log and seed. The
bounds are Student's 95% interval of the mean difference: over the logs of a game, and over the logs of all
games, where every difference is divided by float32's mean in its game. Cross-chosen best: each run at the
evaluation that is best for the mean of the other runs of its game and precision; its scores depend on each
other, so its interval is too narrow.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call
from precision import curves
from resampling import student

NAMES = {"rem": "REM", "dqn_adam": "DQN (Adam)"}


LATE, FROM = ("asterix", "breakout"), 475_000  # games and first step of the late evaluations


def cross_chosen(runs: np.ndarray) -> np.ndarray:
    return np.array([run[np.delete(runs, i, 0).mean(0).argmax()] for i, run in enumerate(runs)])


MEASURES = {
    "mean of all": lambda runs: runs.mean(1),
    "mean of last 3": lambda runs: runs[:, -3:].mean(1),
    "last": lambda runs: runs[:, -1],
    "cross-chosen best": cross_chosen,
}


def gather(folder: str, scores: str) -> None:
    rows = [
        [f"minatar_jax/{game}", NAMES[agent], precision, seed, step, f"{score:.4f}"]
        for (agent, game, precision, seed), each in curves(Path(folder)).items()
        for step, score in sorted(each.items())
    ]
    with Path(scores).open("w", newline="") as file:
        heads = ["game", "agent", "precision", "seed", "step", "score"]
        csv.writer(file, lineterminator="\n").writerows([heads, *rows])


def read(scores: str, games: tuple[str, ...] = ()) -> tuple[list[int], dict[tuple[str, str], np.ndarray]]:
    """REM in these games, or in all: the evaluated steps that every run has, and the scores as
    {(game, precision): (seeds, steps)}."""
    found: dict = defaultdict(lambda: defaultdict(dict))
    with Path(scores).open() as file:
        for row in csv.DictReader(file):
            game = row["game"].split("/")[1]
            if row["agent"] == "REM" and game in (games or (game,)):
                runs = found[game, row["precision"]]
                runs[int(row["seed"])][int(row["step"])] = float(row["score"])
    steps = sorted(set.intersection(*(set(c) for seeds in found.values() for c in seeds.values())))
    return steps, {
        run: np.array([[c[step] for step in steps] for _, c in sorted(seeds.items())])
        for run, seeds in found.items()
    }


def bounds(values: np.ndarray) -> list[str]:
    return [f"{value:.3f}" for value in student(values)]


def differences(scores: str) -> None:
    steps, runs = read(scores)
    games = list(dict.fromkeys(game for game, _ in runs))
    rounded = [name for name in dict.fromkeys(name for _, name in runs) if name != "float32"]
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["to", "measure", "precision", "game", "float32", "difference", "low", "high"])
    for measure, score in MEASURES.items():
        for precision in rounded:
            relative = []
            for game in games:
                usual = score(runs[game, "float32"])
                difference = score(runs[game, precision]) - usual
                relative.append(difference / usual.mean())
                row = [steps[-1], measure, precision, game, f"{usual.mean():.3f}"]
                out.writerow([*row, *bounds(difference)])
            together = np.concatenate(relative)
            out.writerow([steps[-1], measure, precision, "all, relative", "1", *bounds(together)])


def late(first: str, *others: str) -> None:
    """tf32 minus float32 at each of the last evaluations, in the two games that all experiments have; "all"
    has the logs of every experiment that was evaluated there."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["scores", "step", "logs", "difference", "low", "high"])
    everywhere = defaultdict(list)
    for file in (first, *others):
        steps, runs = read(file, LATE)
        usual = np.concatenate([runs[game, "float32"] / runs[game, "float32"].mean(0) for game in LATE])
        rounded = np.concatenate([runs[game, "tf32"] / runs[game, "float32"].mean(0) for game in LATE])
        for place, step in enumerate(steps):
            if step >= FROM:
                difference = rounded[:, place] - usual[:, place]
                everywhere[step].append(difference)
                out.writerow([Path(file).name, step, len(difference), *bounds(difference)])
    for step, found in sorted(everywhere.items()):
        together = np.concatenate(found)
        out.writerow(["all", step, len(together), *bounds(together)])


def draw(scores: str, path: str) -> None:
    """The mean over logs of each precision, with every run as a thin line."""
    from matplotlib.figure import Figure

    from optimist.studies.report import figures

    steps, runs = read(scores)
    games = list(dict.fromkeys(game for game, _ in runs))
    colours = dict(zip(dict.fromkeys(name for _, name in runs), figures.COLOURS, strict=False))
    columns = min(3, len(games))
    lines = -(-len(games) // columns)
    figure = Figure(figsize=(3.6 * columns, 3.2 * lines), layout="constrained")
    for number, game in enumerate(games):
        axes = figure.add_subplot(lines, columns, number + 1)
        for precision, colour in colours.items():
            each = runs[game, precision]
            axes.plot(steps, each.T, color=colour, linewidth=0.5, alpha=0.3)
            axes.plot(steps, each.mean(0), color=colour, linewidth=2, label=precision)
        axes.set_title(f"REM, {game.replace('_', ' ')}")
        axes.set_xlabel("gradient updates")
        axes.set_ylabel("mean return")
        if number == 0:
            axes.legend(frameon=False)
    figures.save_png(figures.laid_out(figure), Path(path))


if __name__ == "__main__":
    call(__doc__, gather=gather, differences=differences, late=late, draw=draw)
