"""Agents with bounded targets beside the same agents without, and C51 with a wider support.

    python docs/results/bounded-targets/bounded.py > docs/results/bounded-targets/bounded.csv
    python docs/results/bounded-targets/bounded.py bounded.png

`near-greedy` are means over five logs of Space Invaders, in points. `whole logs` are interquartile means over
five games and five logs; 1 is the best evaluation of the players, 0 is random play. Agents of other studies
learned from logs of the same players and are compared in pairs; "both" is the mean of two repetitions for
each log. The bounds are 95% bootstrap intervals (`resampling.py`).
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call, print_table
from resampling import CROSS, LAST, MEASURES, first, points, row, scores, tables

from optimist.studies.scores.statistics import iqm, mean

DQN = "DQN (Adam)"
LIMITED = f"{DQN}, targets to 10"
GAME = "space_invaders, epsilon 0.01"
READINGS = {"1X": 5, "5X": 25}  # evaluations
PAIRS = [
    (LIMITED, DQN),
    (LIMITED, f"{DQN}, again"),
    (LIMITED, f"{DQN}, both"),
    (LIMITED, "Cloning"),
    ("QR-DQN, targets to 10", "QR-DQN"),
    ("QR-DQN, targets to 10", "Cloning"),
    ("C51, support to 20", "C51"),
    ("C51, support to 20", "QR-DQN, targets to 10"),
    ("C51, support to 20", LIMITED),
    ("C51, support to 20", "Cloning"),
]
HEADS = ("logs", "score", "agent", "minus", "estimate", "low", "high")


def near_greedy():
    """{agent: its repetitions} in points, from this study and from `exploration`."""
    files = "bounded-targets/near-greedy.csv", "exploration/scores.csv", "exploration/quarters.csv"
    found = {
        agent: [{GAME: games[GAME]}]
        for file in files
        for agent, games in points(file).items()
        if GAME in games and "quarter" not in agent
    }
    return {**found, f"{DQN}, both": found[DQN] + found[f"{DQN}, again"]}


def whole_logs():
    """{agent: its repetitions}, normalised, from this study and two on the same logs."""
    earlier, later = (scores(folder) for folder in ("epsilon-and-heads", "asymptotic"))
    mine = {agent: [runs] for agent, runs in scores("bounded-targets").items()}
    twice = {f"{DQN}, first": [earlier[DQN]], f"{DQN}, second": [later[DQN]]}
    return {**mine, "C51": [later["C51"]], **twice, f"{DQN}, both": [earlier[DQN], later[DQN]]}


def lines():
    for measure in MEASURES:
        if measure == "best":
            continue
        found = {agent: tables(measure, *runs) for agent, runs in near_greedy().items()}
        for agent, one in found.items():
            yield row("near-greedy", measure, agent, "", one=one, statistic=mean)
        for agent, other in PAIRS:
            words = "near-greedy", measure, agent, other
            yield row(*words, one=found[agent], minus=found[other], statistic=mean)
    for reading, evaluations in READINGS.items():
        place = f"whole logs, {reading}"
        read = {agent: [first(evaluations, each) for each in runs] for agent, runs in whole_logs().items()}
        for measure in MEASURES:
            if measure == "best":
                continue
            found = {agent: tables(measure, *runs) for agent, runs in read.items()}
            for agent, one in found.items():
                yield row(place, measure, agent, "", one=one)
            for other in (agent for agent in found if agent != LIMITED):
                yield row(place, measure, LIMITED, other, one=found[LIMITED], minus=found[other])
        for agent, runs in read.items():
            last, best = (tables(measure, *runs) for measure in (LAST, CROSS))
            yield row(place, f"{LAST} minus {CROSS}", agent, "", one=last, minus=best)


def draw(path):
    from matplotlib.figure import Figure

    from optimist.studies.report import figures

    greedy, games = near_greedy(), whole_logs()
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
        curves = greedy[agent][0][GAME]
        updates = 25 * np.arange(1, curves.shape[1] + 1)
        axes.plot(updates, curves.mean(0), style, color=figures.COLOURS[colour], label=agent)
    for agent, colour, style in (("DQN (Adam), both", 0, "--"), (LIMITED, 0, "-"), ("C51", 2, "--")):
        runs = np.mean([np.array(list(each.values())) for each in games[agent]], 0)
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
    call(__doc__, lambda: print_table(HEADS, lines()), draw)
