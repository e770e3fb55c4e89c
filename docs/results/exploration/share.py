"""Offline agents against the share of exploratory steps in their logs.

    python docs/results/exploration/share.py > docs/results/exploration/share.csv
    python docs/results/exploration/share.py share.png

The first command needs numpy alone, the second optimist too. Scores are means over five logs, in points.
`of_player` is the mean as a share of the best evaluation of the players, from random play up. The bounds
are 95% bootstrap intervals over logs. Agents on the same logs are compared in pairs; logs with another
epsilon are other logs.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
STEPS, WARM_UP, DECAY = 2_000_000, 5_000, 100_000  # of a player; epsilon falls from 1 during DECAY steps
AGENTS = "DQN (Adam)", "REM", "QR-DQN", "C51", "Cloning"
PAIRS = (
    *((agent, "Cloning") for agent in AGENTS[:-1]),
    ("C51", "QR-DQN"),
    ("QR-DQN", "DQN (Adam)"),
    ("REM", "DQN (Adam)"),
)
DRAWS, SEED = 20_000, 12345


def share(epsilon, steps=STEPS):
    """The share of steps of a log, or of its first `steps`, with a random action."""
    return (WARM_UP + DECAY * (1 + epsilon) / 2 + (steps - WARM_UP - DECAY) * epsilon) / steps


def curves(name):
    """Every evaluation: {epsilon: {agent: (seeds, evaluations)}}."""
    found = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    with open(HERE / name) as file:
        for row in csv.DictReader(file):
            epsilon = float(row["game"].rpartition(" ")[2])
            found[epsilon][row["agent"]][int(row["seed"])][int(row["step"])] = float(row["score"])
    return {
        epsilon: {
            agent: np.array([[seeds[seed][step] for step in sorted(seeds[seed])] for seed in sorted(seeds)])
            for agent, seeds in mine.items()
        }
        for epsilon, mine in found.items()
    }


def players():
    """Random play and the best evaluation of the players, by epsilon."""
    with open(HERE / "normaliser.csv") as file:
        rows = list(csv.DictReader(file))
    return {float(row["game"].rpartition(" ")[2]): (float(row["random"]), float(row["DQN"])) for row in rows}


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


def mean(runs, stream=0):
    """The mean over logs and its bounds; another stream draws other logs."""
    draws = np.random.default_rng([SEED, stream]).integers(len(runs), size=(DRAWS, len(runs)))
    return runs.mean(), runs[draws].mean(1)


def numbers(estimate, draws):
    return [f"{value:.3f}" for value in (estimate, *np.quantile(draws, [0.025, 0.975]))]


def main():
    found, known = curves("scores.csv"), players()
    out = csv.writer(sys.stdout, lineterminator="\n")
    heads = ["score", "agent", "epsilon", "share", "minus", "minus_epsilon"]
    out.writerow(
        [*heads, "points", "points_low", "points_high", "of_player", "of_player_low", "of_player_high"]
    )
    for name, measure in MEASURES.items():
        for epsilon, (zero, one) in known.items():
            start, scale = [name], one - zero
            for agent in AGENTS:
                runs = measure(found[epsilon][agent])
                row = [agent, epsilon, f"{share(epsilon):.4f}", "", "", *numbers(*mean(runs))]
                out.writerow([*start, *row, *numbers(*mean((runs - zero) / scale))])
            for agent, other in PAIRS:
                runs = measure(found[epsilon][agent]) - measure(found[epsilon][other])
                row = [agent, epsilon, f"{share(epsilon):.4f}", other, epsilon, *numbers(*mean(runs))]
                out.writerow([*start, *row, *numbers(*mean(runs / scale))])
        for agent in AGENTS:
            for epsilon in list(known)[1:]:
                one, two = (mean(measure(found[e][agent]), i) for i, e in enumerate((epsilon, 0.01)))
                apart = numbers(one[0] - two[0], one[1] - two[1])
                out.writerow([name, agent, epsilon, f"{share(epsilon):.4f}", agent, 0.01, *apart, "", "", ""])
        for agent, runs in curves("quarters.csv")[0.01].items():
            part = share(0.01, STEPS // 4) if "first" in agent else share(0.01)
            zero, one = known[0.01]
            row = [agent, 0.01, f"{part:.4f}", "", "", *numbers(*mean(measure(runs)))]
            out.writerow([name, *row, *numbers(*mean((measure(runs) - zero) / (one - zero)))])


def draw(path):
    from matplotlib.figure import Figure

    from optimist.studies.report import figures

    found, known = curves("scores.csv"), players()
    shares = [100 * share(epsilon) for epsilon in known]
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    for agent, colour in zip(AGENTS, figures.COLOURS, strict=False):
        runs = np.array([MEASURES["mean of last 3"](found[epsilon][agent]) for epsilon in known])
        axes.plot(shares, runs.mean(1), color=colour, marker="o", label=agent)
        axes.plot(np.repeat(shares, runs.shape[1]), runs.ravel(), ".", color=colour, alpha=0.4, markersize=4)
    axes.plot(
        shares, [one for _, one in known.values()], "--", color=figures.INK, label="players, best evaluation"
    )
    for agent, runs in curves("quarters.csv")[0.01].items():
        if "quarter" in agent:
            part = share(0.01, STEPS // 4) if "first" in agent else share(0.01)
            height = MEASURES["mean of last 3"](runs).mean()
            axes.plot(100 * part, height, "s", color=figures.COLOURS[0], markerfacecolor="none")
            axes.annotate(
                "DQN (Adam) on the first quarter" if "first" in agent else "on a random quarter",
                (100 * part, height),
                xytext=(6, -12) if "first" in agent else (6, 5),
                textcoords="offset points",
                fontsize=8,
            )
    axes.set(xlabel="exploratory steps in the log (%)", ylabel="return, mean of the last three evaluations")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    figures.save_png(figures.laid_out(figure), Path(path))


if __name__ == "__main__":
    draw(sys.argv[1]) if len(sys.argv) > 1 else main()
