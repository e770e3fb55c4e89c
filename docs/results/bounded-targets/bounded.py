"""Agents with bounded targets beside the same agents without, and C51 with a wider support.

    python docs/results/bounded-targets/bounded.py > docs/results/bounded-targets/bounded.csv
    python docs/results/bounded-targets/bounded.py bounded.png

The first command needs numpy alone, the second optimist too. `near-greedy` are means over five logs of Space
Invaders, in points. `whole logs` are interquartile means over five games and five logs; 1 is the best
evaluation of the players, 0 is random play. Agents of other studies learned from logs of the same players and
are compared in pairs; "both" is the mean of two repetitions for each log. The bounds are 95% bootstrap
intervals over logs, drawn game by game.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
RESULTS = HERE.parent
LIMITED = "DQN (Adam), targets to 10"
READINGS = {"1X": 5, "5X": 25}  # evaluations
DRAWS, SEED = 20_000, 12345


def curves(path, scaled_by=None):
    """Every evaluation: {agent: {game: (seeds, evaluations)}}."""
    bounds = {}
    if scaled_by:
        with open(scaled_by) as file:
            bounds = {row["game"]: (float(row["random"]), float(row["DQN"])) for row in csv.DictReader(file)}
    found = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    with open(path) as file:
        for row in csv.DictReader(file):
            zero, one = bounds.get(row["game"], (0, 1))
            score = (float(row["score"]) - zero) / (one - zero)
            found[row["agent"]][row["game"]][int(row["seed"])][int(row["step"])] = score
    return {
        agent: {
            game: np.array([[seeds[seed][step] for step in sorted(seeds[seed])] for seed in sorted(seeds)])
            for game, seeds in sorted(games.items())
        }
        for agent, games in found.items()
    }


def cross_chosen(runs):
    """Each seed at the evaluation that is best for the mean of the other seeds."""
    return np.array([run[np.delete(runs, i, 0).mean(0).argmax()] for i, run in enumerate(runs)])


MEASURES = {
    "cross-chosen best": cross_chosen,
    "last": lambda runs: runs[:, -1],
    "mean of last 3": lambda runs: runs[:, -3:].mean(1),
    "mean of all": lambda runs: runs.mean(1),
}


def iqm(scores):
    """The mean of the middle half of all runs: (..., games, logs)."""
    flat = np.sort(scores.reshape(*scores.shape[:-2], -1), -1)
    cut = flat.shape[-1] // 4
    return flat[..., cut : flat.shape[-1] - cut].mean(-1)


def drawn(scores):
    """Bootstrap draws of the logs of each game; the same logs for all agents."""
    games, logs = scores.shape
    chosen = np.random.default_rng(SEED).integers(logs, size=(DRAWS, games, logs))
    return scores[np.arange(games)[:, None], chosen]


def near_greedy():
    """{agent: (seeds, evaluations)} in points, from this study and from `exploration`."""
    game = "space_invaders, epsilon 0.01"
    files = HERE / "near-greedy.csv", RESULTS / "exploration/scores.csv", RESULTS / "exploration/quarters.csv"
    found = {agent: games[game] for file in files for agent, games in curves(file).items() if game in games}
    found["DQN (Adam), both"] = (found["DQN (Adam)"], found["DQN (Adam), again"])
    return found


def whole_logs():
    """{agent: {game: (seeds, evaluations)}}, normalised, from this study and two on the same logs."""
    first, second, mine = (
        curves(RESULTS / folder / "scores.csv", RESULTS / folder / "normaliser.csv")
        for folder in ("epsilon-and-heads", "asymptotic", "bounded-targets")
    )
    agent = "DQN (Adam)"
    found = {**mine, "C51": second["C51"], f"{agent}, first": first[agent], f"{agent}, second": second[agent]}
    return {**found, f"{agent}, both": (first[agent], second[agent])}


def measured(measure, runs):
    """The score of each log; for two repetitions their mean."""
    return np.mean([measure(run) for run in runs], 0) if isinstance(runs, tuple) else measure(runs)


def of_games(measure, games, evaluations):
    """(games, logs)."""
    if isinstance(games, tuple):
        return np.mean([of_games(measure, each, evaluations) for each in games], 0)
    return np.array([measure(runs[:, :evaluations]) for runs in games.values()])


def row(estimate, draws):
    return [f"{value:.4f}" for value in (estimate, *np.quantile(draws, [0.025, 0.975]))]


def main():
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["logs", "score", "agent", "minus", "estimate", "low", "high"])
    points, games = near_greedy(), whole_logs()
    pairs = [
        (LIMITED, "DQN (Adam)"),
        (LIMITED, "DQN (Adam), again"),
        (LIMITED, "DQN (Adam), both"),
        (LIMITED, "Cloning"),
        ("QR-DQN, targets to 10", "QR-DQN"),
        ("QR-DQN, targets to 10", "Cloning"),
        ("C51, support to 20", "C51"),
        ("C51, support to 20", "QR-DQN, targets to 10"),
        ("C51, support to 20", LIMITED),
        ("C51, support to 20", "Cloning"),
    ]
    shown = [agent for agent in points if "quarter" not in agent]
    for name, measure in MEASURES.items():
        scores = {agent: measured(measure, points[agent])[None] for agent in shown}
        for agent in shown:
            out.writerow(["near-greedy", name, agent, "", *mean_row(scores[agent])])
        for one, two in pairs:
            out.writerow(["near-greedy", name, one, two, *mean_row(scores[one] - scores[two])])
    for reading, evaluations in READINGS.items():
        scores = {
            name: {agent: of_games(measure, runs, evaluations) for agent, runs in games.items()}
            for name, measure in MEASURES.items()
        }
        place = f"whole logs, {reading}"
        for name, found in scores.items():
            for agent, each in found.items():
                out.writerow([place, name, agent, "", *row(iqm(each), iqm(drawn(each)))])
            for two in [agent for agent in games if agent != LIMITED]:
                one, other = found[LIMITED], found[two]
                draws = iqm(drawn(one)) - iqm(drawn(other))
                out.writerow([place, name, LIMITED, two, *row(iqm(one) - iqm(other), draws)])
        for agent in games:
            last, best = scores["last"][agent], scores["cross-chosen best"][agent]
            draws = iqm(drawn(last)) - iqm(drawn(best))
            out.writerow(
                [place, "last minus cross-chosen best", agent, "", *row(iqm(last) - iqm(best), draws)]
            )


def mean_row(scores):
    return row(scores.mean(), drawn(scores).mean((-2, -1)))


def draw(path):
    from matplotlib.figure import Figure

    from optimist.studies.report import figures

    points, games = near_greedy(), whole_logs()
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    lines = [
        (left, "DQN (Adam)", 0, "--"),
        (left, LIMITED, 0, "-"),
        (left, "QR-DQN", 1, "--"),
        (left, "QR-DQN, targets to 10", 1, "-"),
        (left, "C51", 2, "--"),
        (left, "C51, support to 20", 2, "-"),
    ]
    for axes, agent, colour, style in lines:
        updates = 25 * np.arange(1, points[agent].shape[1] + 1)
        axes.plot(updates, points[agent].mean(0), style, color=figures.COLOURS[colour], label=agent)
    for agent, colour, style in (("DQN (Adam), both", 0, "--"), (LIMITED, 0, "-"), ("C51", 2, "--")):
        pairs = games[agent] if isinstance(games[agent], tuple) else (games[agent],)
        runs = np.mean([np.array(list(each.values())) for each in pairs], 0)
        updates = 25 * np.arange(1, runs.shape[-1] + 1)
        middle = [iqm(runs[..., i]) for i in range(runs.shape[-1])]
        label = agent.replace(", both", " (two repetitions)")
        right.plot(updates, middle, style, color=figures.COLOURS[colour], label=label)
    left.axhline(65.854, color=figures.INK, linewidth=0.8)
    right.axhline(1, color=figures.INK, linewidth=0.8)
    left.set(xlabel="thousand updates", ylabel="return", title="Space Invaders, near-greedy logs")
    right.set(xlabel="thousand updates", ylabel="interquartile mean", title="five games, whole logs")
    for axes in (left, right):
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=8)
    figures.save_png(figures.laid_out(figure), Path(path))


if __name__ == "__main__":
    draw(sys.argv[1]) if len(sys.argv) > 1 else main()
