"""Three rounds of a growing log: differences."""

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from results.library.scores import HEADS, of_seeds, read


def compared() -> Iterator[list]:
    rows = read("growing-the-log/returns.csv")
    own, chance = "its own policy", "random play"

    def returns(way: str, rounds: int) -> np.ndarray:
        mine = [each for each in rows if (each["grown_by"], int(each["round"])) == (way, rounds)]
        return np.array([float(each["return"]) for each in mine])

    for rounds in (1, 2, 3):
        yield of_seeds(f"{rounds} rounds", own, chance, returns(own, rounds) - returns(chance, rounds))
    for way in own, chance:
        yield of_seeds("3 rounds minus none", way, "", returns(way, 3) - returns(way, 0))
    online = read("growing-the-log/online.csv")
    gains = np.array([float(each["after"]) - float(each["before"]) for each in online])
    yield of_seeds("a round online", "after", "before", gains.reshape(5, -1).mean(axis=1))


def rounds() -> Figure:
    played = read("growing-the-log/returns.csv")
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot(xlabel="rounds of growth, 2,000 steps each", ylabel="mean return of the policy")
    for way, colour in {"its own policy": "C0", "random play": "C1"}.items():
        returns = np.array([float(row["return"]) for row in played if row["grown_by"] == way]).reshape(-1, 4)
        axes.plot(returns.T, color=colour, alpha=0.3, linewidth=1)
        axes.plot(returns.mean(axis=0), color=colour, label=f"the log grows by {way}")
    axes.set_xticks(range(4))
    axes.legend(frameon=False)
    return figure


TABLES = {"differences.csv": lambda: [HEADS, *compared()]}
FIGURES = {"rounds.png": rounds}
