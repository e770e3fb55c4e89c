"""The table and the figure of the three tasks with the authors' code of 2019, from the CSV files in 2019/.

    python docs/results/final-buffer/three_tasks.py > docs/results/final-buffer/2019.csv
    python docs/results/final-buffer/three_tasks.py docs/results/final-buffer/2019.png

Each offline run belongs to the log of one player. The agents of a task are read at the evaluations that all
of them have. `low` and `high` are 95% bootstrap bounds (`resampling.py`), `t_low` and `t_high` those of
Student's t for five logs, which are few: the bootstrap is too narrow.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call, print_table
from differences import STUDENT, read
from resampling import MEASURES, Tables, interval, points, tables

from optimist.studies.scores.statistics import mean

FOLDER = "final-buffer/2019"
HEADS = ["task", "updates", "score", "agent", "minus", "logs", "estimate", "deviation"]
HEADS += ["low", "high", "t_low", "t_high"]
DATA, NOISELESS = "the data", "the players without noise"
PAIRS = [("TD3", "DDPG"), ("TD3", "BCQ"), ("BCQ", "DDPG"), ("TD3", DATA), ("TD3", NOISELESS), ("BCQ", DATA)]


def runs(task: str) -> dict[str, np.ndarray]:
    """Every evaluation of each agent that the others have too, (logs, evaluations)."""
    found = {agent: games[task] for agent, games in points(f"{FOLDER}/scores.csv").items() if task in games}
    shared = min(curves.shape[1] for curves in found.values())
    return {agent: curves[:, :shared] for agent, curves in found.items()}


def tasks() -> list[str]:
    return sorted({game for games in points(f"{FOLDER}/scores.csv").values() for game in games})


def updates(task: str) -> int:
    """The last evaluation that all agents have."""
    rows = [row for row in read(f"{FOLDER}/scores.csv") if row["game"] == task]
    ends: dict[str, int] = {}
    for row in rows:
        ends[row["agent"]] = max(ends.get(row["agent"], 0), int(row["step"]))
    return min(ends.values())


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
        curves, fixed, end = runs(task), logged(task), updates(task)
        for who, values in fixed.items():
            yield line(task, "", "", who, "", values, [values[:, None]])
        for measure in MEASURES:
            scores = {agent: tables(measure, {task: each}) for agent, each in curves.items()}
            for agent, scored in scores.items():
                yield line(task, end, measure, agent, "", np.asarray(scored[0])[:, 0], scored)
            scores |= {who: [values[:, None]] for who, values in fixed.items()}
            for one, other in (pair for pair in PAIRS if scores.keys() >= {*pair}):
                apart = np.asarray(scores[one][0])[:, 0] - np.asarray(scores[other][0])[:, 0]
                yield line(task, end, measure, one, other, apart, scores[one], scores[other])


def line(task: str, end, measure: str, one: str, other: str, values: np.ndarray, *sides: Tables) -> list:
    deviation = values.std(ddof=1)
    half = STUDENT * deviation / len(values) ** 0.5
    _, low, high = interval(*sides, statistic=mean)
    numbers = values.mean(), deviation, low, high, values.mean() - half, values.mean() + half
    return [task, end, measure, one, other, len(values), *(f"{number:.1f}" for number in numbers)]


def draw(path: Path) -> None:
    from optimist.studies.report import figures, paper_figures

    panels: dict = {}
    for row in read(f"{FOLDER}/scores.csv"):
        panel = panels.setdefault(row["game"].removeprefix("mujoco/"), {})
        curve = panel.setdefault(row["agent"], {}).setdefault(int(row["seed"]), {})
        curve[int(row["step"])] = float(row["score"])
    levels = {
        task.removeprefix("mujoco/"): {who: values.mean() for who, values in logged(task).items()}
        for task in tasks()
    }
    figure = paper_figures.curve_grid(panels, levels, window=1, xlabel="gradient updates", traces=False)
    figures.save_png(figures.laid_out(figure), path)


if __name__ == "__main__":
    call(__doc__, lambda: print_table(HEADS, lines()), draw)
