"""The table and the figure of this page from its CSVs. The figure needs optimist.

    python docs/results/first-frames/table.py > docs/results/first-frames/table.csv
    python docs/results/first-frames/table.py docs/results/first-frames/curves.png

There is one log and one seed. The standard error is that of the episodes of one evaluation: it says how well
the policy was measured, and nothing about other seeds or logs.
"""

import csv
import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call

HERE = Path(__file__).parent
TO = 1_250_000  # updates of the comparison


def curves():
    """{agent: {updates: [returns]}}."""
    found = defaultdict(lambda: defaultdict(list))
    with (HERE / "episodes.csv").open() as file:
        for row in csv.DictReader(file):
            found[row["agent"]][int(row["step"])].append(float(row["return"]))
    return found


def error(returns):
    return stdev(returns) / len(returns) ** 0.5


def main():
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["agent", "reading", "updates", "score", "error"])
    for agent, all_of in curves().items():
        curve = {step: returns for step, returns in all_of.items() if step <= TO}
        steps, means = sorted(curve), {step: mean(returns) for step, returns in curve.items()}
        best = max(steps, key=means.get)
        for step in sorted(all_of):
            out.writerow([agent, "at", step, f"{mean(all_of[step]):.2f}", f"{error(all_of[step]):.2f}"])
        out.writerow([agent, "best", best, f"{means[best]:.2f}", f"{error(curve[best]):.2f}"])
        out.writerow([agent, "mean of last 3", steps[-1], f"{mean(means[s] for s in steps[-3:]):.2f}", ""])
        out.writerow([agent, "mean of all", steps[-1], f"{mean(means.values()):.2f}", ""])


def draw(path):
    from levels import draw_level
    from matplotlib.figure import Figure

    from optimist.studies.report import figures

    (card,) = json.loads((HERE / "logs.json").read_text())["atari/Pong"].values()
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.subplots()
    colours = {}
    for agent, curve in curves().items():
        plain = agent.removesuffix(", tf32")
        colour = colours.setdefault(plain, figures.COLOURS[len(colours)])
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
    figures.save_png(figures.laid_out(figure), Path(path))


if __name__ == "__main__":
    call(__doc__, main, draw)
