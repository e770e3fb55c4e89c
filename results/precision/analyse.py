"""float32, tf32 and bf16: the tables and the figures.

Evaluations up to the last one that all runs have are compared. Differences are paired by log and seed. The
bounds are Student's 95% interval of the mean difference: over the logs of a game, and over the logs of all
games, where every difference is divided by float32's mean in its game. Cross-chosen best: each run at the
evaluation that is best for the mean of the other runs of its game and precision; its scores depend on each
other, so its interval is too narrow.
"""

from collections import defaultdict

import numpy as np
from matplotlib.figure import Figure
from results.library.scores import MEASURES, read, student

from optimist.studies.report import drawing

FILES = ("scores.csv", "ten-logs-scores.csv", "to-the-end-scores.csv")
LATE, FROM = ("asterix", "breakout"), 475_000  # games and first step of the late evaluations


SHOWN = ("mean of all", "mean of last 3", "last", "cross-chosen best")


def runs_of(scores: str, games: tuple[str, ...] = ()) -> tuple[list[int], dict[tuple[str, str], np.ndarray]]:
    """REM in these games, or in all: the evaluated steps that every run has, and the scores as
    {(game, precision): (seeds, steps)}."""
    found: dict = defaultdict(lambda: defaultdict(dict))
    for row in read(f"precision/{scores}"):
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


def differences(scores: str):
    steps, runs = runs_of(scores)
    games = list(dict.fromkeys(game for game, _ in runs))
    rounded = [name for name in dict.fromkeys(name for _, name in runs) if name != "float32"]
    yield ["to", "measure", "precision", "game", "float32", "difference", "low", "high"]
    for measure in SHOWN:
        score = MEASURES[measure]
        for precision in rounded:
            relative = []
            for game in games:
                usual = score(runs[game, "float32"])
                difference = score(runs[game, precision]) - usual
                relative.append(difference / usual.mean())
                row = [steps[-1], measure, precision, game, f"{usual.mean():.3f}"]
                yield [*row, *bounds(difference)]
            together = np.concatenate(relative)
            yield [steps[-1], measure, precision, "all, relative", "1", *bounds(together)]


def late():
    """tf32 minus float32 at each of the last evaluations, in the two games that all experiments have; "all"
    has the logs of every experiment that was evaluated there."""
    yield ["scores", "step", "logs", "difference", "low", "high"]
    everywhere = defaultdict(list)
    for file in FILES:
        steps, runs = runs_of(file, LATE)
        usual = np.concatenate([runs[game, "float32"] / runs[game, "float32"].mean(0) for game in LATE])
        rounded = np.concatenate([runs[game, "tf32"] / runs[game, "float32"].mean(0) for game in LATE])
        for place, step in enumerate(steps):
            if step >= FROM:
                difference = rounded[:, place] - usual[:, place]
                everywhere[step].append(difference)
                yield [file, step, len(difference), *bounds(difference)]
    for step, found in sorted(everywhere.items()):
        together = np.concatenate(found)
        yield ["all", step, len(together), *bounds(together)]


def draw(scores: str):
    """The mean over logs of each precision, with every run as a thin line."""
    steps, runs = runs_of(scores)
    games = list(dict.fromkeys(game for game, _ in runs))
    colours = dict(zip(dict.fromkeys(name for _, name in runs), drawing.COLOURS, strict=False))
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
    return figure


TABLES = {
    "differences.csv": lambda: differences("scores.csv"),
    "ten-logs-differences.csv": lambda: differences("ten-logs-scores.csv"),
    "to-the-end-differences.csv": lambda: differences("to-the-end-scores.csv"),
    "late.csv": late,
}
FIGURES = {
    "curves.png": lambda: draw("scores.csv"),
    "ten-logs.png": lambda: draw("ten-logs-scores.csv"),
}
