"""Offline agents against the share of exploratory steps in their logs.

Scores are means over five logs, in points. `of_player` is the mean as a share of the best evaluation of the
players, from random play up. The bounds are 95% bootstrap intervals (library.scores). Agents on the same
logs are compared in pairs; logs with another epsilon are other logs, and are drawn separately.
"""

import numpy as np
from matplotlib.figure import Figure
from results.library.scores import DRAWS, MEASURES, bounds, interval, points, tables

from optimist.studies.report import drawing
from optimist.studies.scores.statistics import mean, stratified_bootstrap

STEPS, WARM_UP, DECAY = 2_000_000, 5_000, 100_000  # of a player; epsilon falls from 1 during DECAY steps
AGENTS = "DQN (Adam)", "REM", "QR-DQN", "C51", "Cloning"
PAIRS = (
    *((agent, "Cloning") for agent in AGENTS[:-1]),
    ("C51", "QR-DQN"),
    ("QR-DQN", "DQN (Adam)"),
    ("REM", "DQN (Adam)"),
)
NUMBERS = [f"{unit}{end}" for unit in ("points", "of_player") for end in ("", "_low", "_high")]
HEADS = ["score", "agent", "epsilon", "share", "minus", "minus_epsilon", *NUMBERS]


def share(epsilon, steps=STEPS):
    """The share of steps of a log, or of its first `steps`, with a random action."""
    return (WARM_UP + DECAY * (1 + epsilon) / 2 + (steps - WARM_UP - DECAY) * epsilon) / steps


def curves(name):
    """Every evaluation: {epsilon: {agent: (seeds, evaluations)}}."""
    found = {}
    for agent, games in points(f"exploration/{name}").items():
        for game, runs in games.items():
            found.setdefault(float(game.rpartition(" ")[2]), {})[agent] = runs
    return found


def players():
    """Random play and the best evaluation of the players, by epsilon."""
    return {float(game.rpartition(" ")[2]): limits for game, limits in bounds("exploration").items()}


def lines():
    found, known, quarters = curves("scores.csv"), players(), curves("quarters.csv")[0.01]

    def line(measure, agent, epsilon, one, minus=None, part=None):
        """`minus` is another agent on the same logs, and its name."""
        zero, scale = known[epsilon][0], known[epsilon][1] - known[epsilon][0]
        sides = [tables(measure, {"": runs}) for runs in (one, *([minus[1]] if minus else []))]
        numbers = interval(*sides, statistic=mean)
        shares = [(number - (0 if minus else zero)) / scale for number in numbers]
        words = [measure, agent, epsilon, f"{part or share(epsilon):.4f}"]
        against = [minus[0], epsilon] if minus else ["", ""]
        return [*words, *against, *(f"{number:.4f}" for number in (*numbers, *shares))]

    for measure in MEASURES:
        for epsilon in known:
            mine = found[epsilon]
            for agent in AGENTS:
                yield line(measure, agent, epsilon, mine[agent])
            for agent, other in PAIRS:
                yield line(measure, agent, epsilon, mine[agent], (other, mine[other]))
        for agent in AGENTS:
            for epsilon in list(known)[1:]:
                sides = (tables(measure, {"": found[each][agent]})[0] for each in (epsilon, 0.01))
                apart = stratified_bootstrap(
                    lambda one, other: mean(one) - mean(other), *sides, repetitions=DRAWS
                )
                numbers = (f"{number:.4f}" for number in (apart.estimate, apart.low, apart.high))
                words = [measure, agent, epsilon, f"{share(epsilon):.4f}", agent, 0.01]
                yield [*words, *numbers, "", "", ""]
        for agent, runs in quarters.items():
            part = share(0.01, STEPS // 4) if "first" in agent else share(0.01)
            yield line(measure, agent, 0.01, runs, part=part)


def draw():
    found, known = curves("scores.csv"), players()
    shares = [100 * share(epsilon) for epsilon in known]
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    for agent, colour in zip(AGENTS, drawing.COLOURS, strict=False):
        runs = np.array([MEASURES["mean of last 3"](found[epsilon][agent]) for epsilon in known])
        axes.plot(shares, runs.mean(1), color=colour, marker="o", label=agent)
        axes.plot(np.repeat(shares, runs.shape[1]), runs.ravel(), ".", color=colour, alpha=0.4, markersize=4)
    axes.plot(
        shares, [one for _, one in known.values()], "--", color=drawing.INK, label="players, best evaluation"
    )
    for agent, runs in curves("quarters.csv")[0.01].items():
        if "quarter" in agent:
            part = share(0.01, STEPS // 4) if "first" in agent else share(0.01)
            height = MEASURES["mean of last 3"](runs).mean()
            axes.plot(100 * part, height, "s", color=drawing.COLOURS[0], markerfacecolor="none")
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
    return figure


TABLES = {"share.csv": lambda: [HEADS, *lines()]}
FIGURES = {"share.png": draw}
