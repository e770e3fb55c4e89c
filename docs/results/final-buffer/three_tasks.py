"""The table and the figure of the three tasks with the authors' code of 2019, from the CSV files in 2019/.

    python docs/results/final-buffer/three_tasks.py > docs/results/final-buffer/2019.csv
    python docs/results/final-buffer/three_tasks.py docs/results/final-buffer/2019.png

Each offline run belongs to the log of one player. An agent is read at all its evaluations, two agents at
those that both have; `updates` is the last of them. `low` and `high` are 95% bootstrap bounds
(`resampling.py`), `t_low` and `t_high` those of Student's t for five logs, which are few: the bootstrap is
too narrow.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call, print_table
from differences import read
from resampling import MEASURES, Tables, interval, points, student, tables

from optimist.studies.scores.statistics import mean

FOLDER = "final-buffer/2019"
HEADS = ["task", "updates", "score", "agent", "minus", "logs", "estimate", "deviation"]
HEADS += ["low", "high", "t_low", "t_high"]
DATA, NOISELESS = "the data", "the players without noise"
CLONING, CLONED_BEST = "Cloning", "Cloning the best tenth"
PAIRS = [("TD3", "DDPG"), ("TD3", "BCQ"), ("BCQ", "DDPG"), ("TD3", DATA), ("TD3", NOISELESS), ("BCQ", DATA)]
PAIRS += [(agent, CLONING) for agent in ("TD3", "BCQ", "DDPG")]
PAIRS += [("TD3", CLONED_BEST), ("BCQ", CLONED_BEST), (CLONING, DATA)]


class Task(NamedTuple):
    """What is known of one task, for each log."""

    name: str
    updates: list[int]  # at each evaluation
    curves: dict[str, np.ndarray]  # every evaluation of each agent, (logs, evaluations)
    fixed: dict[str, np.ndarray]  # what was logged, (logs,)

    def shared(self, *names: str) -> int:
        """The number of evaluations that all these agents have."""
        return min(self.curves[name].shape[1] for name in names if name in self.curves)

    def scored(self, measure: str, name: str, evaluations: int) -> Tables:
        if name in self.fixed:
            return [self.fixed[name][:, None]]
        return tables(measure, {self.name: self.curves[name][:, :evaluations]})

    def line(self, measure: str, one: str, minus: str = "") -> list:
        """A row of the file: an agent, or the difference of two."""
        names = [name for name in (one, minus) if name]
        evaluations = self.shared(*names)
        sides = [self.scored(measure, name, evaluations) for name in names]
        values = [np.asarray(side[0])[:, 0] for side in sides]
        start = [self.name, self.updates[evaluations - 1], measure, one, minus]
        return [*start, *numbers(values[0] - values[1] if minus else values[0], *sides)]


def tasks() -> Iterator[Task]:
    agents = points(f"{FOLDER}/scores.csv")
    for name in sorted({task for games in agents.values() for task in games}):
        rows = [row for row in read(f"{FOLDER}/scores.csv") if row["game"] == name]
        curves = {agent: games[name] for agent, games in agents.items() if name in games}
        yield Task(name, sorted({int(row["step"]) for row in rows}), curves, logged(name))


def logged(task: str) -> dict[str, np.ndarray]:
    """The mean return of each log, and of each of its players at the end, without noise."""
    seeds = sorted({int(row["seed"]) for row in read(f"{FOLDER}/scores.csv") if row["game"] == task})
    rows = [row for row in read(f"{FOLDER}/players.csv") if row["game"] == task]
    means = {int(row["seed"]): float(row["mean_return"]) for row in rows}
    played = [row for row in read(f"{FOLDER}/player-scores.csv") if row["game"] == task]
    ended = {
        int(row["seed"]): float(row["score"]) for row in sorted(played, key=lambda row: int(row["step"]))
    }
    return {
        DATA: np.array([means[seed] for seed in seeds]),
        NOISELESS: np.array([ended[seed] for seed in seeds]),
    }


def lines() -> Iterator[list]:
    for task in tasks():
        for name, values in task.fixed.items():
            yield [task.name, "", "", name, "", *numbers(values, [values[:, None]])]
        for measure in MEASURES:
            yield from (task.line(measure, agent) for agent in task.curves)
            known = {*task.curves, *task.fixed}
            yield from (task.line(measure, *pair) for pair in PAIRS if known >= {*pair})


def numbers(values: np.ndarray, *sides: Tables) -> list:
    """How many logs; their mean and deviation; the bounds of the bootstrap and of Student's t."""
    _, low, high = interval(*sides, statistic=mean)
    average, t_low, t_high = student(values)
    found = average, values.std(ddof=1), low, high, t_low, t_high
    return [len(values), *(f"{number:.2f}" for number in found)]


def draw(path: Path) -> None:
    from optimist.studies.report import figures, paper_figures

    panels: dict = {}
    for row in read(f"{FOLDER}/scores.csv"):
        panel = panels.setdefault(row["game"].removeprefix("mujoco/"), {})
        curve = panel.setdefault(row["agent"], {}).setdefault(int(row["seed"]), {})
        curve[int(row["step"])] = float(row["score"])
    levels = {
        task.name.removeprefix("mujoco/"): {name: values.mean() for name, values in task.fixed.items()}
        for task in tasks()
    }
    figure = paper_figures.curve_grid(panels, levels, window=1, xlabel="gradient updates", traces=False)
    figures.save_png(figures.laid_out(figure), path)


if __name__ == "__main__":
    call(__doc__, lambda: print_table(HEADS, lines()), draw)
