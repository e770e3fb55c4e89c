"""Pong, five logs: the table and the figure.

The agents of a group are compared at the evaluations that all of them have. Cross-chosen best: each seed at
the evaluation that is best for the mean of the other seeds. The bounds are Student's 95% interval of a mean
over five logs, of scores or of paired differences; for the cross-chosen best, whose scores depend on each
other, they are too narrow.
"""

from collections import defaultdict
from itertools import combinations

import numpy as np
from matplotlib.figure import Figure
from results.library.drawing import draw_level
from results.library.scores import MEASURES, read, student

from optimist.studies.report import drawing

DQN, REM, MATCHED, EXACT = "DQN (Adam)", "REM", "REM, head epsilon / 200", "DQN (Adam), float32"
GROUPS = {"step size": (DQN, REM, MATCHED), "rounding": (DQN, EXACT)}
PLAYER = "the player"
SHOWN = ("last", "best", "cross-chosen best", "mean of all")


def scores() -> dict[str, dict[int, np.ndarray]]:
    """{agent: {updates: the score of each seed}}."""
    found = defaultdict(lambda: defaultdict(list))
    for row in sorted(read("pong/scores.csv"), key=lambda row: int(row["seed"])):
        found[row["agent"]][int(row["step"])].append(float(row["score"]))
    return {agent: {step: np.array(curve[step]) for step in sorted(curve)} for agent, curve in found.items()}


def players() -> np.ndarray:
    """The last evaluation of each player: the mean of its episodes."""
    found = defaultdict(lambda: defaultdict(list))
    for row in read("pong/player-episodes.csv"):
        found[int(row["step"])][int(row["seed"])].append(float(row["return"]))
    last = found[max(found)]
    return np.array([np.mean(last[seed]) for seed in sorted(last)])


def numbers(values):
    """Each seed's value, mean, standard deviation and bounds."""
    mean, low, high = student(values)
    return [f"{value:.2f}" for value in (*values, mean, values.std(ddof=1), low, high)]


def rows():
    found, play = scores(), players()
    yield ["", "", PLAYER, "", *numbers(play)]
    for agent, curve in found.items():
        for step, values in curve.items():
            yield ["", f"at {step}", agent, "", *numbers(values)]
            yield ["", f"at {step}", agent, PLAYER, *numbers(values - play)]
    for group, agents in GROUPS.items():
        shared = sorted(set.intersection(*(set(found[agent]) for agent in agents)))
        runs = {agent: np.stack([found[agent][step] for step in shared], 1) for agent in agents}
        for name in SHOWN:
            measured = {agent: MEASURES[name](each) for agent, each in runs.items()}
            for agent, values in measured.items():
                yield [group, name, agent, "", *numbers(values)]
            for other, agent in combinations(measured, 2):
                yield [group, name, agent, other, *numbers(measured[agent] - measured[other])]
        for place, step in enumerate(shared):
            for other, agent in combinations(runs, 2):
                yield [
                    *(group, f"at {step}", agent, other),
                    *numbers(runs[agent][:, place] - runs[other][:, place]),
                ]
    last = {agent: next(reversed(curve.items())) for agent, curve in found.items()}
    yield [
        *("", f"at {last[REM][0]} minus at {last[DQN][0]}", REM, DQN),
        *numbers(last[REM][1] - last[DQN][1]),
    ]


def table():
    seeds = [f"seed_{number}" for number in range(len(players()))]
    return [["group", "score", "agent", "minus", *seeds, "mean", "deviation", "low", "high"], *rows()]


def draw():
    """Each run as a thin line, the mean over seeds as a thick one."""
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.subplots()
    for number, (agent, curve) in enumerate(scores().items()):
        colour = drawing.COLOURS[0 if agent == EXACT else number]
        style = "--" if agent == EXACT else "-"
        runs = np.stack(list(curve.values()), 1)
        if agent != EXACT:
            axes.plot(list(curve), runs.T, color=colour, linewidth=0.7, alpha=0.45)
        axes.plot(list(curve), runs.mean(0), style, color=colour, linewidth=2.4, label=agent)
    draw_level(axes, "the players", players().mean())
    axes.set_xlabel("gradient updates")
    axes.set_ylabel("mean return of 16 episodes")
    axes.legend(frameon=False, fontsize=8)
    return figure


TABLES = {"table.csv": table}
FIGURES = {"curves.png": draw}
