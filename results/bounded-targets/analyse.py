"""Agents with bounded targets beside the same agents without, and what sets C51 apart: its loss or its steps.

`near-greedy` are means over five logs of Space Invaders, in points. `whole logs` are interquartile means over
five games and five logs; 1 is the best evaluation of the players, 0 is random play. Agents of other studies
learned from logs of the same players and are compared in pairs; "both" is the mean of two repetitions for
each log. The bounds are 95% bootstrap intervals (library.scores), and Student's for pairs on near-greedy
logs.
"""

import numpy as np
from matplotlib.figure import Figure
from results.library.scores import CROSS, LAST, MEASURES, first, points, row, scores, student, tables

from optimist.studies.report import drawing
from optimist.studies.scores.statistics import iqm, mean

DQN = "DQN (Adam)"
LIMITED = f"{DQN}, targets to 10"
SMALL_STEPS, LARGE_STEPS = f"{DQN}, head epsilon x 30", "C51, head epsilon / 30"
TWICE = (DQN, "C51")  # two repetitions on the near-greedy logs
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
    ("C51, support to 20", "C51, both"),
    ("C51, support to 20", "QR-DQN, targets to 10"),
    ("C51, support to 20", LIMITED),
    ("C51, support to 20", "Cloning"),
    ("HL-Gauss", f"{DQN}, both"),
    ("HL-Gauss", "C51, both"),
    ("HL-Gauss", "QR-DQN"),
    ("HL-Gauss", LIMITED),
    ("HL-Gauss", "Cloning"),
    (SMALL_STEPS, f"{DQN}, both"),
    (SMALL_STEPS, "C51, both"),
    (LARGE_STEPS, "C51, both"),
    (LARGE_STEPS, f"{DQN}, both"),
    (LARGE_STEPS, "Cloning"),
    ("C51, again", "C51"),
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
    return {**found, **{f"{agent}, both": found[agent] + found[f"{agent}, again"] for agent in TWICE}}


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
            yield row(
                "near-greedy", measure, agent, other, one=found[agent], minus=found[other], statistic=mean
            )
            each = [np.mean([np.asarray(scored)[:, 0] for scored in found[who]], 0) for who in (agent, other)]
            bounds = (f"{number:.4f}" for number in student(each[0] - each[1]))
            yield ["near-greedy, Student's t", measure, agent, other, *bounds]
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


def draw():
    greedy, games = near_greedy(), whole_logs()
    figure = Figure(figsize=(14, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    lines = [
        (left, "DQN (Adam)", 0, "--"),
        (left, LIMITED, 0, "-"),
        (left, "QR-DQN", 1, "--"),
        (left, "QR-DQN, targets to 10", 1, "-"),
        (left, "C51", 2, "--"),
        (left, "C51, support to 20", 2, "-"),
        (middle, f"{DQN}, both", 0, "--"),
        (middle, SMALL_STEPS, 0, "-"),
        (middle, "HL-Gauss", 1, "-"),
        (middle, "C51, both", 2, "--"),
        (middle, LARGE_STEPS, 2, "-"),
    ]
    for axes, agent, colour, style in lines:
        curves = np.mean([each[GAME] for each in greedy[agent]], 0)
        updates = 25 * np.arange(1, curves.shape[1] + 1)
        label = agent.replace(", both", " (two repetitions)")
        axes.plot(updates, curves.mean(0), style, color=drawing.COLOURS[colour], label=label)
    for agent, colour, style in (("DQN (Adam), both", 0, "--"), (LIMITED, 0, "-"), ("C51", 2, "--")):
        runs = np.mean([np.array(list(each.values())) for each in games[agent]], 0)
        updates = 25 * np.arange(1, runs.shape[-1] + 1)
        curve = [iqm(runs[..., i]) for i in range(runs.shape[-1])]
        label = agent.replace(", both", " (two repetitions)")
        right.plot(updates, curve, style, color=drawing.COLOURS[colour], label=label)
    right.axhline(1, color=drawing.INK, linewidth=0.8)
    right.set(xlabel="thousand updates", ylabel="interquartile mean", title="five games, whole logs")
    for axes, title in ((left, "near-greedy logs: bounds"), (middle, "near-greedy logs: loss or steps")):
        axes.axhline(65.854, color=drawing.INK, linewidth=0.8)
        axes.set(xlabel="thousand updates", ylabel="return", title=title)
    for axes in (left, middle, right):
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=8)
    return figure


TABLES = {"bounded.csv": lambda: [HEADS, *lines()]}
FIGURES = {"bounded.png": draw}
