"""Parts of figures that several pages draw."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from optimist.studies.report.figures.curves import curve_grid


def draw_level(axes: Any, name: str, level: float) -> None:
    """A score that curves are compared with, as a line across a figure."""
    axes.axhline(level, color="grey", linewidth=0.8, linestyle=":")
    place = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "bottom"}
    axes.annotate(name, (0.995, level), **place, fontsize=8, color="grey")


def one_game(title: str, agents: dict[str, list[dict]], column: str, log: Path | None, xlabel: str) -> Figure:
    """Curves without smoothing, of rows by agent, and the returns in the log; online there is none."""
    curves: dict = {agent: {} for agent in agents}
    for agent, rows in agents.items():
        for row in rows:
            curve = curves[agent].setdefault(int(row["seed"]), {})
            curve.setdefault(int(row["step"]), []).append(float(row[column]))
        for curve in curves[agent].values():
            curve.update({step: float(np.mean(each)) for step, each in curve.items()})
        if not log:  # the seeds are read at different steps
            curves[agent] = {seed: _at_equal_steps(curve) for seed, curve in curves[agent].items()}
    card = json.loads(log.read_text()) if log else {}
    levels = {"best policy in the data": "best_policy_return", "average behaviour": "return_mean"}
    lines = {label: card[name] for label, name in levels.items() if card}
    return curve_grid({title: curves}, {title: lines}, window=1, columns=1, xlabel=xlabel)


def _at_equal_steps(curve: dict[int, float], every: int = 5_000) -> dict[int, float]:
    steps = sorted(curve)
    places = range(2 * every, steps[-1] + 1, every)
    return {at: float(np.interp(at, steps, [curve[step] for step in steps])) for at in places}
