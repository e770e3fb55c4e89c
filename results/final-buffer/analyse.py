"""The table and the figure of the three tasks with the authors' code of 2019, from the CSV files in 2019/.

Each offline run belongs to the log of one player. An agent is read at all its evaluations, two agents at
those that both have; `updates` is the last of them. `low` and `high` are 95% bootstrap bounds
(library.scores), `t_low` and `t_high` those of Student's t for five logs, which are few: the bootstrap is
too narrow.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from results.library.scores import (
    CROSS,
    HEADS,
    MEASURES,
    RESULTS,
    Tables,
    interval,
    of_seeds,
    points,
    read,
    row,
    student,
    tables,
)
from results.library.study import first_evaluations

from optimist.studies.report.figures.curves import curve_grid
from optimist.studies.scores.statistics import mean

FOLDER = "final-buffer/2019"
TASK_HEADS = ["task", "updates", "score", "agent", "minus", "logs", "estimate", "deviation"]
TASK_HEADS += ["low", "high", "t_low", "t_high"]
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


def draw():
    panels: dict = {}
    for each in read(f"{FOLDER}/scores.csv"):
        panel = panels.setdefault(each["game"].removeprefix("mujoco/"), {})
        curve = panel.setdefault(each["agent"], {}).setdefault(int(each["seed"]), {})
        curve[int(each["step"])] = float(each["score"])
    levels = {
        task.name.removeprefix("mujoco/"): {name: values.mean() for name, values in task.fixed.items()}
        for task in tasks()
    }
    figure = curve_grid(
        panels, levels, window=1, columns=len(panels), xlabel="gradient updates", traces=False
    )
    return figure


def compared() -> Iterator[list]:
    """HalfCheetah in points, by log: offline agents, their players without noise, and the data."""
    runs = points("final-buffer/scores.csv")
    players = json.loads((RESULTS / "final-buffer/players.json").read_text())["players"]
    seeds = sorted(player["seed"] for player in players[:5])  # the five that ended best have an offline run
    data = {player["seed"]: player["mean_return"] for player in players}
    played = [r for r in read("final-buffer/players-evaluation.csv") if r["step"] == "1000000"]
    ended = [np.mean([float(r["return"]) for r in played if int(r["seed"]) == seed]) for seed in seeds]
    known = {
        "the players without noise": np.array([ended]).T,
        "the data": np.array([[data[seed] for seed in seeds]]).T,
    }
    ends = {
        agent: curves[:, -10:].mean(axis=1)[:, None]
        for agent, games in runs.items()
        for curves in games.values()
    }
    for one, other in [("TD3", "DDPG"), ("TD3", "BCQ"), *(("TD3", name) for name in known)]:
        theirs = ends.get(other, known.get(other))
        measure, apart = "mean of last 10", (ends[one] - theirs)[:, 0]
        words = "1,000,000 updates", measure, one, other
        yield row(*words, one=[ends[one]], minus=[theirs], statistic=mean, digits=1)
        yield of_seeds("1,000,000 updates, Student's t", one, other, apart, measure)
    for other in "DDPG", "BCQ":
        sides = {"one": tables(CROSS, runs["TD3"]), "minus": tables(CROSS, runs[other])}
        yield row("1,000,000 updates", CROSS, "TD3", other, **sides, statistic=mean, digits=1)


def figure_8():
    """Every evaluation, and the mean return of the episodes in the logs."""
    file = first_evaluations("final-buffer/scores.csv")
    logs = json.loads((RESULTS / "final-buffer/players.json").read_text())["logs"]
    (game,) = file.games
    panels = {"HalfCheetah": {agent: games[game] for agent, games in file.agents.items()}}
    levels = {"HalfCheetah": {"mean of the data": logs[game]["average"]["all"]}}
    return curve_grid(panels, levels, window=1, columns=1, xlabel="gradient updates", traces=False)


def critics() -> Iterator[list]:
    """For each run the first update at which an estimate was beyond 2,000 either way, and its last estimate.
    The best episodes return some hundreds with discount."""
    runs: dict[tuple[str, ...], dict[int, float]] = {}
    for each in read(f"{FOLDER}/critics.csv"):
        curve = runs.setdefault((each["game"], each["agent"], each["seed"]), {})
        curve[int(each["step"])] = float(each["estimate"])
    yield ["game", "agent", "seed", "diverged_at", "updates", "estimate"]
    for run, curve in sorted(runs.items()):
        beyond = min((step for step in curve if abs(curve[step]) > 2_000), default="")
        yield [*run, beyond, max(curve), curve[max(curve)]]


TABLES = {
    "2019.csv": lambda: [TASK_HEADS, *lines()],
    "differences.csv": lambda: [HEADS, *compared()],
    "2019/diverged.csv": critics,
}
FIGURES = {"2019.png": draw, "figure8.png": figure_8}
