"""Decay with passes over the data or with updates: whole logs, a random tenth and the first tenth of each.

    python docs/results/ten-times-the-log/decay.py > docs/results/ten-times-the-log/decay.csv
    python docs/results/ten-times-the-log/decay.py decay.png

The first command needs numpy alone, the second optimist too. The first tenth of each log is the log of
the study `asymptotic`; its scores are read from there. 1 is the best evaluation of the players of the
whole logs, for all three. IQM is the mean of the middle half of the ten runs of both games. Scores of one
game are the means of its five runs, in points. The bounds are 95% bootstrap intervals over logs, drawn
game by game; pairs have the same logs.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
EVERY = 25_000  # updates between evaluations
BATCH = 32
STEPS = {"whole": 5_000_000, "random tenth": 500_000, "first tenth": 500_000}
READINGS = 125_000, 625_000, 1_250_000
SHARED = "QR-DQN", "DQN (Adam)", "REM"
DRAWS, SEED = 20_000, 12345


def bounds(folder):
    with open(folder / "normaliser.csv") as file:
        return {row["game"]: (float(row["random"]), float(row["DQN"])) for row in csv.DictReader(file)}


def curves(folder, games):
    """Every evaluation in points: {agent: {game: (seeds, evaluations)}}."""
    found = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    with open(folder / "scores.csv") as file:
        for row in csv.DictReader(file):
            if row["game"] in games:
                found[row["agent"]][row["game"]][int(row["seed"])][int(row["step"])] = float(row["score"])
    return {
        agent: {
            game: np.array([[seeds[seed][step] for step in sorted(seeds[seed])] for seed in sorted(seeds)])
            for game, seeds in sorted(mine.items())
        }
        for agent, mine in found.items()
    }


def cross_chosen(runs):
    """Each seed at the evaluation that is best for the mean of the other seeds."""
    return np.array([run[np.delete(runs, i, 0).mean(0).argmax()] for i, run in enumerate(runs)])


MEASURES = {
    "best": lambda runs: runs[:, runs.mean(0).argmax()],
    "cross-chosen best": cross_chosen,
    "last": lambda runs: runs[:, -1],
    "mean of last 3": lambda runs: runs[:, -3:].mean(1),
    "mean of all": lambda runs: runs.mean(1),
}


def iqm(runs):
    """The mean of the middle half of the last axis."""
    count = runs.shape[-1]
    return np.sort(runs, -1)[..., count // 4 : count - count // 4].mean(-1)


def drawn(table):
    """Bootstrap draws of a (seeds, games) table; the same seeds for every table, hence paired."""
    picked = np.random.default_rng(SEED).integers(len(table), size=(DRAWS, *table.shape))
    return table[picked, np.arange(table.shape[1])].reshape(DRAWS, -1)


def with_bounds(estimate, draws):
    return [f"{number:.3f}" for number in (estimate, *np.quantile(draws, [0.025, 0.975]))]


def of_iqm(table, minus=None):
    estimate, draws = iqm(table.ravel()), iqm(drawn(table))
    if minus is not None:
        estimate, draws = estimate - iqm(minus.ravel()), draws - iqm(drawn(minus))
    return with_bounds(estimate, draws)


def of_mean(column, minus=None):
    """The mean over the seeds of one game."""
    column = column if minus is None else column - minus
    return with_bounds(column.mean(), drawn(column[:, None]).mean(-1))


def all_curves():
    """By agent and data: {(agent, data): {game: (seeds, evaluations)}}."""
    games = bounds(HERE)
    found = {}
    for agent, mine in curves(HERE, games).items():
        name, tenth = (agent.removesuffix(", a tenth"), ", a tenth" in agent)
        found[name, "random tenth" if tenth else "whole"] = mine
    short = curves(HERE.parent / "asymptotic", games)
    found |= {(name, "first tenth"): short[name] for name, data in list(found) if data == "whole"}
    return found


def main():
    norm, found = bounds(HERE), all_curves()
    games = sorted(norm)
    out = csv.writer(sys.stdout, lineterminator="\n")
    short = [game.rpartition("/")[2] for game in games]
    columns = [f"{which}{end}" for which in ("iqm", *short) for end in ("", "_low", "_high")]
    out.writerow(["score", "agent", "data", "updates", "passes", "minus_data", "minus_updates", *columns])

    def table(agent, data, updates, measure):
        """(seeds, games) in points."""
        runs = [found[agent, data][game][:, : updates // EVERY] for game in games]
        return np.stack([MEASURES[measure](each) for each in runs], axis=1)

    def normalised(points):
        zero, one = np.array([norm[game] for game in games]).T
        return (points - zero) / (one - zero)

    def row(score, agent, data, updates, points, minus=None, against=("", "")):
        numbers = of_iqm(normalised(points), None if minus is None else normalised(minus))
        for i in range(len(games)):
            numbers += of_mean(points[:, i], None if minus is None else minus[:, i])
        passes = f"{updates * BATCH / STEPS[data]:g}"
        out.writerow([score, agent, data, updates, passes, *against, *numbers])

    def readings(agent, data):
        length = found[agent, data][games[0]].shape[1] * EVERY
        return [updates for updates in READINGS if updates <= length]

    for agent, data in found:
        for updates in readings(agent, data):
            for measure in MEASURES:
                row(measure, agent, data, updates, table(agent, data, updates, measure))
            last, peak = (table(agent, data, updates, name) for name in ("last", "cross-chosen best"))
            recent = table(agent, data, updates, "mean of last 3")
            row("last less cross-chosen best", agent, data, updates, last, peak)
            row("mean of last 3 less cross-chosen best", agent, data, updates, recent, peak)
    pairs = [("whole", 625_000, "random tenth", 625_000), ("whole", 1_250_000, "random tenth", 1_250_000)]
    pairs += [("whole", 1_250_000, "random tenth", 125_000), ("whole", 625_000, "first tenth", 625_000)]
    pairs += [("random tenth", 625_000, "first tenth", 625_000)]
    for agent in SHARED:
        for data, updates, other, others in pairs:
            for measure in MEASURES:
                one, two = table(agent, data, updates, measure), table(agent, other, others, measure)
                row(measure, agent, data, updates, one, two, (other, others))


def draw(path):
    from matplotlib.figure import Figure

    from optimist.studies.report import figures

    norm, found = bounds(HERE), all_curves()
    games, shown = sorted(norm), (*SHARED, "C51")
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    panels = figure.subplots(len(games), len(shown), sharex=True, sharey="row")
    for game, line in zip(games, panels, strict=True):
        for agent, axes in zip(shown, line, strict=True):
            for data, colour in zip(STEPS, figures.COLOURS, strict=False):
                if (agent, data) not in found:
                    continue
                runs = found[agent, data][game]
                updates = EVERY * (1 + np.arange(runs.shape[1])) / 1e6
                axes.plot(updates, runs.T, color=colour, alpha=0.2, linewidth=0.7)
                axes.plot(updates, runs.mean(0), color=colour, label=data)
            axes.axhline(norm[game][1], color=figures.INK, linestyle="--", linewidth=0.8)
            if game == games[0]:
                axes.set_title(agent, fontsize=10)
            else:
                axes.set_xlabel("million updates")
        line[0].set_ylabel(f"return in {game.rpartition('/')[2].capitalize()}")
    panels[0][0].legend(frameon=False, fontsize=8)
    figures.save_png(figures.laid_out(figure), Path(path))


if __name__ == "__main__":
    draw(sys.argv[1]) if len(sys.argv) > 1 else main()
