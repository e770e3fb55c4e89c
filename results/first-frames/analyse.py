"""Pong, the first three million steps: the table and the figure.

There is one log and one seed. The standard error is that of the episodes of one evaluation: it says how well
the policy was measured, and nothing about other seeds or logs.
"""

import json
from collections import defaultdict
from statistics import mean, stdev

from matplotlib.figure import Figure
from results.library.drawing import draw_level
from results.library.scores import RESULTS, read

from optimist.studies.report import drawing

TO = 1_250_000  # updates of the comparison


def curves():
    """{agent: {updates: [returns]}}."""
    found = defaultdict(lambda: defaultdict(list))
    for row in read("first-frames/episodes.csv"):
        found[row["agent"]][int(row["step"])].append(float(row["return"]))
    return found


def error(returns):
    return stdev(returns) / len(returns) ** 0.5


def table():
    yield ["agent", "reading", "updates", "score", "error"]
    for agent, all_of in curves().items():
        curve = {step: returns for step, returns in all_of.items() if step <= TO}
        steps, means = sorted(curve), {step: mean(returns) for step, returns in curve.items()}
        best = max(steps, key=means.get)
        for step in sorted(all_of):
            yield [agent, "at", step, f"{mean(all_of[step]):.2f}", f"{error(all_of[step]):.2f}"]
        yield [agent, "best", best, f"{means[best]:.2f}", f"{error(curve[best]):.2f}"]
        yield [agent, "mean of last 3", steps[-1], f"{mean(means[s] for s in steps[-3:]):.2f}", ""]
        yield [agent, "mean of all", steps[-1], f"{mean(means.values()):.2f}", ""]


def draw():
    (card,) = json.loads((RESULTS / "first-frames/logs.json").read_text())["atari/Pong"].values()
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.subplots()
    colours = {}
    for agent, curve in curves().items():
        plain = agent.removesuffix(", tf32")
        colour = colours.setdefault(plain, drawing.COLOURS[len(colours)])
        steps, style = sorted(curve), "--" if plain != agent else "-"
        scores = [mean(curve[step]) for step in steps]
        axes.plot(steps, scores, style, color=colour, marker="o", markersize=3, label=agent)
        errors = [2 * error(curve[step]) for step in steps]
        low, high = zip(*((s - e, s + e) for s, e in zip(scores, errors, strict=True)), strict=True)
        axes.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
    for name, level in (("best policy", card["best_policy_return"]), ("average", card["return_mean"])):
        draw_level(axes, f"the log: {name}", level)
    axes.set_xlabel("gradient updates")
    axes.set_ylabel("mean return of 16 episodes, ± 2 standard errors")
    axes.legend(frameon=False, fontsize=8)
    return figure


TABLES = {"table.csv": table}
FIGURES = {"curves.png": draw}
