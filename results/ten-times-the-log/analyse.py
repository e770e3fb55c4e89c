"""Decay with passes over the data or with updates: whole logs, a random tenth and the first tenth of each.

The first tenth of each log is the log of the study `asymptotic`; its scores are read from there. In Breakout
two of its five players are other ones, and the scores are read from `epsilon-and-heads`, which has the right
ones. C51 and DQN (Nature) did not learn there: their cells of Breakout's first tenth are empty, and so are
those of the IQM, which needs all games. The clock ended REM on a random tenth of Seaquest after its
evaluation at 1,125,000 updates: where 1,250,000 are read, that run is read there, and both sides of its pair
too. 1 is the best evaluation of the players of the whole logs, for all three. IQM is the mean of the middle
half of the runs of all games that normaliser.csv has. Scores of one game are the means of its five runs, in
points. The bounds are 95% bootstrap intervals (library.scores); pairs have the same logs.
"""

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from results.library.scores import (
    CROSS,
    HEADS,
    LAST,
    MEASURES,
    bounds,
    first,
    interval,
    normalised,
    of_seeds,
    points,
    tables,
)
from results.library.study import Study, tables_of

from optimist.studies.report import drawing
from optimist.studies.scores.statistics import iqm, mean

HERE = "ten-times-the-log"
SHORT = {"minatar_jax/breakout": "epsilon-and-heads"}  # its first tenths; those of other games: `asymptotic`
EVERY = 25_000  # updates between evaluations
BATCH = 32
STEPS = {"whole": 5_000_000, "random tenth": 500_000, "first tenth": 500_000}
READINGS = 125_000, 625_000, 1_250_000
SHARED = "QR-DQN", "DQN (Adam)", "REM"
PAIRS = [
    ("whole", 625_000, "random tenth", 625_000),
    ("whole", 1_250_000, "random tenth", 1_250_000),
    ("whole", 1_250_000, "random tenth", 125_000),
    ("whole", 625_000, "first tenth", 625_000),
    ("random tenth", 625_000, "first tenth", 625_000),
]
GAMES = [game.partition("/")[2] for game in bounds(HERE)]
COLUMNS = [f"{which}{end}" for which in ("iqm", *GAMES) for end in ("", "_low", "_high")]
DECAY_HEADS = ["score", "agent", "data", "updates", "passes", "minus_data", "minus_updates", *COLUMNS]


def all_curves():
    """By agent and data: {(agent, data): {game: (seeds, evaluations)}}, in points."""
    found = {}
    for agent, mine in points(f"{HERE}/scores.csv").items():
        name, tenth = (agent.removesuffix(", a tenth"), ", a tenth" in agent)
        found[name, "random tenth" if tenth else "whole"] = mine
    agents = [name for name, data in found if data == "whole"]
    return found | {(agent, "first tenth"): first_tenths(agent) for agent in agents}


def first_tenths(agent):
    """{game: (seeds, evaluations)}, without a game in which the agent has no run on the right logs."""
    short = {game: points(f"{SHORT.get(game, 'asymptotic')}/scores.csv") for game in bounds(HERE)}
    return {game: found[agent][game] for game, found in short.items() if agent in found}


def cells(sides, games, statistic):
    """Estimate and bounds of the statistic over these games, empty if a side has no runs in one of them."""
    if any(game not in runs for _, runs in sides for game in games):
        return [""] * 3
    read = (tables(measure, {game: runs[game] for game in sorted(games)}) for measure, runs in sides)
    return [f"{number:.4f}" for number in interval(*read, statistic=statistic)]


def lines():
    limits, found = bounds(HERE), all_curves()

    def read(agent, data, updates):
        return first(updates // EVERY, found[agent, data])

    def line(score, agent, data, updates, one, minus=None, against=("", "")):
        """`one` and `minus` are a measure and the runs that it scores, in points."""
        sides = [side for side in (one, minus) if side]
        numbers = cells([(measure, normalised(runs, limits)) for measure, runs in sides], limits, iqm)
        for game in limits:
            numbers += cells(sides, [game], mean)
        passes = f"{updates * BATCH / STEPS[data]:g}"
        return [score, agent, data, updates, passes, *against, *numbers]

    for (agent, data), games in found.items():
        length = next(iter(games.values())).shape[1] * EVERY
        for updates in (updates for updates in READINGS if updates <= length):
            runs = read(agent, data, updates)
            for measure in MEASURES:
                yield line(measure, agent, data, updates, (measure, runs))
            for measure in LAST, "mean of last 3":
                words = f"{measure} less {CROSS}", agent, data, updates
                yield line(*words, (measure, runs), (CROSS, runs))
    for agent in SHARED:
        for data, updates, *other in PAIRS:
            both = read(agent, data, updates), read(agent, *other)
            if updates == other[-1]:
                both = shared(*both)
            for measure in MEASURES:
                sides = ((measure, runs) for runs in both)
                yield line(measure, agent, data, updates, *sides, other)


def shared(one, other):
    """In each game the evaluations that both have."""
    ends = {game: min(one[game].shape[1], other[game].shape[1]) for game in one}
    return tuple({game: runs[game][:, :end] for game, end in ends.items()} for runs in (one, other))


def draw():
    norm, found = bounds(HERE), all_curves()
    games, shown = sorted(norm), (*SHARED, "C51")
    figure = Figure(figsize=(8, 1.6 * len(games)), layout="constrained")
    panels = figure.subplots(len(games), len(shown), sharex=True, sharey="row")
    for game, line in zip(games, panels, strict=True):
        for agent, axes in zip(shown, line, strict=True):
            for data, colour in zip(STEPS, drawing.COLOURS, strict=False):
                if game not in found.get((agent, data), ()):
                    continue
                runs = found[agent, data][game]
                updates = EVERY * (1 + np.arange(runs.shape[1])) / 1e6
                axes.plot(updates, runs.T, color=colour, alpha=0.2, linewidth=0.7)
                axes.plot(updates, runs.mean(0), color=colour, label=data)
            axes.axhline(norm[game][1], color=drawing.INK, linestyle="--", linewidth=0.8)
            if game == games[0]:
                axes.set_title(agent, fontsize=10)
            if game == games[-1]:
                axes.set_xlabel("million updates")
        line[0].set_ylabel(game.rpartition("/")[2].replace("_", " ").title())
    kinds = panels[0][0].get_legend_handles_labels()
    figure.legend(*kinds, loc="outside lower center", ncol=3, frameon=False)
    return figure


def compared() -> Iterator[list]:
    """Whole logs minus their first tenths, and agents on whole logs, in points; the bounds are Student's."""
    whole, evaluations = points("ten-times-the-log/scores.csv"), 25
    for agent in ("QR-DQN", "DQN (Adam)", "REM"):
        for game, curves in whole[agent].items():
            # Breakout's first tenths: see above
            short = "epsilon-and-heads" if game == "minatar_jax/breakout" else "asymptotic"
            both = curves, points(f"{short}/scores.csv")[agent][game]
            for measure in MEASURES:
                scored = (np.asarray(tables(measure, {game: each[:, :evaluations]})[0]) for each in both)
                mine, theirs = scored
                words = f"{game}, 625,000 updates, Student's t", agent, "the first tenth"
                yield of_seeds(*words, (mine - theirs)[:, 0], measure)
            tenth = whole[f"{agent}, a tenth"][game]
            end = tenth.shape[1]  # the clock ended REM's runs on the tenths of Seaquest
            words = f"{game}, {25_000 * end:,} updates, Student's t", agent, "a random tenth"
            yield of_seeds(*words, _fall(curves[:, :end]) - _fall(tenth), "last less cross-chosen best")
    for agent, other in (("QR-DQN", "Cloning"), ("QR-DQN", "C51"), ("C51", "Cloning"), ("REM", "DQN (Adam)")):
        for game in whole[agent]:
            for measure in MEASURES:
                both = (tables(measure, {game: whole[name][game]})[0] for name in (agent, other))
                mine, theirs = map(np.asarray, both)
                reading = f"{game}, 1,250,000 updates, Student's t"
                yield of_seeds(reading, agent, other, (mine - theirs)[:, 0], measure)


def _fall(curves: np.ndarray) -> np.ndarray:
    """How much the last evaluation of each run differs from the one that is best for the other runs."""
    last, best = (np.asarray(tables(measure, {"": curves})[0])[:, 0] for measure in (LAST, CROSS))
    return last - best


TABLES = {
    "decay.csv": lambda: [DECAY_HEADS, *lines()],
    "differences.csv": lambda: [HEADS, *compared()],
    **tables_of("ten-times-the-log", "0.5x-", evaluations=25),
    **tables_of("ten-times-the-log", "1x-", evaluations=50),
}
FIGURES = {"curves.png": lambda: Study("ten-times-the-log").curves(), "decay.png": draw}
