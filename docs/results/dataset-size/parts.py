"""Agents on a random 1 and 10% of the trajectories, on whole logs and on the first tenth of a log.

    python docs/results/dataset-size/parts.py > docs/results/dataset-size/parts.csv
    python docs/results/dataset-size/parts.py size.png quality.png

The first command needs numpy alone, the second optimist too. Whole logs come from `asymptotic` and
`epsilon-and-heads`, the mean of both for each log. Rows whose game is empty are interquartile means over five
games and five logs; 1 is the best evaluation of the players, 0 is random play. The others are means over
five logs, in points. The bounds are 95% bootstrap intervals over logs, drawn game by game; two kinds of data
from the same players are compared in pairs. `updates` says up to which update the evaluations are read.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
RESULTS = HERE.parent
EVERY = 25_000  # updates between evaluations
DRAWS, SEED = 20_000, 12345
CLONED = 125_000  # updates of cloning on parts of logs
READINGS = {  # updates at which each kind of data is read
    "REM, 1%": (125_000, 550_000),
    "REM, targets to 10, 1%": (125_000, 550_000),
    "REM, 10%": (175_000, 550_000, 625_000),
    "REM, 100%": (175_000, 550_000, 625_000),
    "QR-DQN, 10%": (175_000,),
    "QR-DQN, 100%": (175_000, 625_000),
    "REM, first tenth": (225_000, 625_000),
    "QR-DQN, first tenth": (225_000,),
    "Cloning, first tenth": (CLONED,),
    "Cloning, 1%": (CLONED,),  # four games
}
PAIRS = [
    ("REM, targets to 10, 1%", "REM, 1%", 550_000),
    ("REM, 1%", "REM, 10%", 550_000),
    ("REM, 10%", "REM, 100%", 550_000),
    ("REM, 10%", "REM, 100%", 625_000),
    ("QR-DQN, 10%", "QR-DQN, 100%", 175_000),
    ("REM, 10%", "QR-DQN, 10%", 175_000),
    ("REM, first tenth", "QR-DQN, first tenth", 225_000),
    ("REM, first tenth", "REM, 10%", 625_000),
    ("REM, 1%", "Cloning, 1%", CLONED),
]


def curves(path):
    """Every evaluation in points: {agent: {game: (seeds, evaluations)}}."""
    found = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    with open(path) as file:
        for row in csv.DictReader(file):
            found[row["agent"]][row["game"]][int(row["seed"])][int(row["step"])] = float(row["score"])
    return {
        agent: {
            game: np.array([[seeds[seed][step] for step in sorted(seeds[seed])] for seed in sorted(seeds)])
            for game, seeds in sorted(games.items())
        }
        for agent, games in found.items()
    }


def bounds(folder):
    with open(folder / "normaliser.csv") as file:
        return {row["game"]: (float(row["random"]), float(row["DQN"])) for row in csv.DictReader(file)}


def all_runs():
    """{kind: [(runs by game, bounds by game)]}, one entry for each repetition."""
    mine = bounds(HERE)
    kinds = {agent: [(games, mine)] for agent, games in curves(HERE / "scores.csv").items()}
    early = curves(RESULTS / "dataset-quality/scores.csv")
    kinds |= {f"{agent}, first tenth": [(games, mine)] for agent, games in early.items()}
    for agent in "REM", "QR-DQN":
        kinds[f"{agent}, 100%"] = [
            (curves(RESULTS / folder / "scores.csv")[agent], bounds(RESULTS / folder))
            for folder in ("epsilon-and-heads", "asymptotic")
        ]
    return kinds


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


def scores(repetitions, measure, updates, games, normalised):
    """(games, logs), the mean over repetitions."""
    found = []
    for runs, limits in repetitions:
        each = np.array([measure(runs[game][:, : updates // EVERY]) for game in games])
        zero, one = np.array([limits[game] if normalised else (0, 1) for game in games]).T[..., None]
        found.append((each - zero) / (one - zero))
    return np.mean(found, 0)


def iqm(each):
    """The mean of the middle half of all runs: (..., games, logs)."""
    flat = np.sort(each.reshape(*each.shape[:-2], -1), -1)
    cut = flat.shape[-1] // 4
    return flat[..., cut : flat.shape[-1] - cut].mean(-1)


def drawn(each):
    """Bootstrap draws of the logs of each game; the same logs for both of a pair."""
    games, logs = each.shape
    chosen = np.random.default_rng(SEED).integers(logs, size=(DRAWS, games, logs))
    return each[np.arange(games)[:, None], chosen]


def numbers(estimate, draws):
    return [f"{value:.4f}" for value in (estimate, *np.quantile(draws, [0.025, 0.975]))]


def main():
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["score", "agent", "updates", "minus", "game", "games", "estimate", "low", "high"])
    kinds = all_runs()
    games_of = {kind: list(repetitions[0][0]) for kind, repetitions in kinds.items()}
    for name, measure in MEASURES.items():
        for kind, readings in READINGS.items():
            for updates in readings:
                games = games_of[kind]
                each = scores(kinds[kind], measure, updates, games, normalised=True)
                start = [name, kind, updates, ""]
                out.writerow([*start, "", len(games), *numbers(iqm(each), iqm(drawn(each)))])
                for game in games:
                    points = scores(kinds[kind], measure, updates, [game], normalised=False)
                    row = numbers(points.mean(), drawn(points).mean((-2, -1)))
                    out.writerow([*start, game, 1, *row])
        for one, two, updates in PAIRS:
            games = [game for game in games_of[one] if game in games_of[two]]
            first, second = (scores(kinds[k], measure, updates, games, normalised=True) for k in (one, two))
            draws = iqm(drawn(first)) - iqm(drawn(second))
            row = numbers(iqm(first) - iqm(second), draws)
            out.writerow([name, one, updates, two, "", len(games), *row])
        for kind in "REM, first tenth", "QR-DQN, first tenth", "Cloning, first tenth":
            for updates in READINGS[kind]:
                for game, played in beginners().items():
                    ahead = scores(kinds[kind], measure, updates, [game], normalised=False) - played
                    row = numbers(ahead.mean(), drawn(ahead).mean((-2, -1)))
                    out.writerow([name, kind, updates, "the player in the first tenth", game, 1, *row])
    for kind in READINGS:
        updates, games = READINGS[kind][-1], games_of[kind]
        last, best = (
            scores(kinds[kind], MEASURES[name], updates, games, normalised=True)
            for name in ("last", "cross-chosen best")
        )
        row = numbers(iqm(last) - iqm(best), iqm(drawn(last)) - iqm(drawn(best)))
        out.writerow(["last minus cross-chosen best", kind, updates, "", "", len(games), *row])


def draw(path, lines, best_policy=None):
    """A panel per game: the mean over logs of each kind of data, and the players."""
    from matplotlib.figure import Figure

    from optimist.studies.report import figures

    kinds, limits = all_runs(), bounds(HERE)
    figure = Figure(figsize=(14, 3.2), layout="constrained")
    for axes, game in zip(figure.subplots(1, len(limits)), sorted(limits), strict=True):
        for kind, colour, style in lines:
            if game not in kinds[kind][0][0]:
                continue
            runs = np.mean([each[game] for each, _ in kinds[kind]], 0)
            updates = EVERY // 1000 * np.arange(1, runs.shape[1] + 1)
            axes.plot(updates, runs.mean(0), style, color=figures.COLOURS[colour], label=kind)
        axes.axhline(limits[game][1], color=figures.INK, linewidth=0.8, label="player, best evaluation")
        if best_policy:
            axes.axhline(
                best_policy[game].mean(),
                color=figures.INK,
                linewidth=0.8,
                linestyle=":",
                label="player, first tenth",
            )
        axes.set(title=game.partition("/")[2].replace("_", " "), xlabel="thousand updates")
        axes.set_ylim(bottom=0)
    handles, labels = axes.get_legend_handles_labels()
    first, names = figure.axes[0].get_legend_handles_labels()
    handles += [h for h, name in zip(first, names, strict=True) if name not in labels]
    labels += [name for name in names if name not in labels]
    figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False, fontsize=8)
    figures.save_png(figures.laid_out(figure), Path(path))


def beginners():
    """Each player at the better of the evaluations in the first tenth of the log: {game: (logs,)}."""
    players = curves(RESULTS / "dataset-quality/players.csv")["DQN (Nature), player"]
    return {game: runs[:, runs[:, :2].mean(0).argmax()] for game, runs in players.items()}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        draw(
            sys.argv[1],
            [
                ("REM, 1%", 0, "-"),
                ("REM, targets to 10, 1%", 0, ":"),
                ("REM, 10%", 1, "-"),
                ("REM, 100%", 2, "-"),
                ("QR-DQN, 10%", 1, "--"),
                ("QR-DQN, 100%", 2, "--"),
                ("Cloning, 1%", 3, "-"),
            ],
        )
        draw(
            sys.argv[2],
            [("REM, first tenth", 0, "-"), ("QR-DQN, first tenth", 1, "-"), ("Cloning, first tenth", 3, "-")],
            beginners(),
        )
    else:
        main()
