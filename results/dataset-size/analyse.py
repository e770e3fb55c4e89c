"""Agents on random parts of the trajectories, on whole logs and on the first tenth of a log.

Whole logs come from `asymptotic` and `epsilon-and-heads`, the mean of both for each log. Rows whose game is
empty are interquartile means over five games and five logs; 1 is the best evaluation of the players, 0 is
random play. The others are means over five logs, in points. The bounds are 95% bootstrap intervals
(library.scores); two kinds of data from the same players are compared in pairs. 20 and 50% are in `larger/`:
the players of one of their games are others, so there they are compared with each other alone. `updates` says
up to which update the evaluations are read.
"""

import sys

import numpy as np
from matplotlib.figure import Figure
from results.library.scores import (
    CROSS,
    LAST,
    MEASURES,
    best_place,
    bounds,
    first,
    normalised,
    players,
    points,
    row,
    tables,
)

from optimist.studies.report import drawing
from optimist.studies.scores.statistics import mean

EVERY = 25_000  # updates between evaluations
CLONED = 125_000  # updates of cloning on parts of logs
READINGS = {  # updates at which each kind of data is read, if it was run
    "REM, 1%": (125_000, 550_000),
    "REM, targets to 10, 1%": (125_000, 550_000),
    "REM, 10%": (175_000, 550_000, 625_000),
    "REM, 20%": (175_000, 625_000),
    "REM, 50%": (175_000, 625_000),
    "REM, 100%": (175_000, 550_000, 625_000),
    "QR-DQN, 10%": (175_000,),
    "QR-DQN, 20%": (175_000, 625_000),
    "QR-DQN, 50%": (175_000, 625_000),
    "QR-DQN, 100%": (175_000, 625_000),
    "REM, first tenth": (225_000, 625_000),
    "QR-DQN, first tenth": (225_000,),
    "Cloning, first tenth": (CLONED,),
    "Cloning, 1%": (CLONED,),  # four games
    "Cloning, 10%": (CLONED,),  # Asterix
}
LARGER = ("20%", "50%")
OTHER_PLAYERS = (
    "minatar_jax/asterix"  # of the larger parts: `player-scores.csv` differs from the first evaluation
)
PAIRS = [
    ("REM, targets to 10, 1%", "REM, 1%", 550_000),
    ("REM, 1%", "REM, 10%", 550_000),
    ("REM, 10%", "REM, 100%", 550_000),
    ("REM, 10%", "REM, 100%", 625_000),
    *(
        (f"{agent}, {part}", f"{agent}, 100%", updates)
        for agent in ("REM", "QR-DQN")
        for part in LARGER
        for updates in (175_000, 625_000)
    ),
    *((f"{agent}, 20%", f"{agent}, 50%", 625_000) for agent in ("REM", "QR-DQN")),
    *((f"REM, {part}", f"QR-DQN, {part}", 625_000) for part in LARGER),
    ("REM, 10%", "REM, 20%", 625_000),
    ("QR-DQN, 10%", "QR-DQN, 20%", 175_000),
    ("QR-DQN, 10%", "QR-DQN, 100%", 175_000),
    ("REM, 10%", "QR-DQN, 10%", 175_000),
    ("REM, first tenth", "QR-DQN, first tenth", 225_000),
    ("REM, first tenth", "REM, 10%", 625_000),
    ("REM, 1%", "Cloning, 1%", CLONED),
]

PLAYERS = {  # the evaluations of the players whose logs the parts come from
    "REM, 10%": "dataset-quality/players.csv",
    "QR-DQN, 10%": "dataset-quality/players.csv",
    **{
        f"{agent}, {part}": "dataset-size/larger/player-scores.csv"
        for agent in ("REM", "QR-DQN")
        for part in LARGER
    },
}


def all_runs():
    """{kind: [(points, the scores that are 0 and 1)]}, one entry for each repetition."""
    mine = bounds("dataset-size")
    kinds = {agent: [(games, mine)] for agent, games in points("dataset-size/scores.csv").items()}
    larger = bounds("dataset-size/larger")
    kinds |= {agent: [(games, larger)] for agent, games in points("dataset-size/larger/scores.csv").items()}
    early = points("dataset-quality/scores.csv")
    kinds |= {f"{agent}, first tenth": [(games, mine)] for agent, games in early.items()}
    for agent in "REM", "QR-DQN":
        kinds[f"{agent}, 100%"] = [
            (points(f"{folder}/scores.csv")[agent], bounds(folder))
            for folder in ("epsilon-and-heads", "asymptotic")
        ]
    return kinds


def same_logs(one, two, games):
    """The games in which both kinds of data come from the same players."""
    apart = one.endswith(LARGER) != two.endswith(LARGER)
    return [game for game in games if not (apart and game == OTHER_PLAYERS)]


def lines():
    kinds = all_runs()
    games_of = {kind: list(repetitions[0][0]) for kind, repetitions in kinds.items()}

    def scored(kind, measure, updates, games, in_points=False):
        read = []
        for runs, limits in kinds[kind]:
            if short := [game for game in games if runs[game].shape[1] * EVERY < updates]:
                sys.exit(f"{kind}: fewer than {updates:,} updates in {', '.join(short)}: change READINGS")
            some = first(updates // EVERY, {game: runs[game] for game in games})
            read.append(some if in_points else normalised(some, limits))
        return tables(measure, *read)

    for measure in MEASURES:
        for kind, readings in READINGS.items():
            for updates in readings:
                start, games = [measure, kind, updates, ""], games_of[kind]
                yield row(*start, "", len(games), one=scored(kind, measure, updates, games))
                for game in games:
                    one = scored(kind, measure, updates, [game], in_points=True)
                    yield row(*start, game, 1, one=one, statistic=mean)
        for one, two, updates in PAIRS:
            games = same_logs(one, two, [game for game in games_of[one] if game in games_of[two]])
            both = [scored(kind, measure, updates, games) for kind in (one, two)]
            yield row(measure, one, updates, two, "", len(games), one=both[0], minus=both[1])
        for kind, file in PLAYERS.items():
            updates, games = READINGS[kind][-1], games_of[kind]
            words, minus = [measure, kind, updates, "its player"], players(file, games, kinds[kind][0][1])
            yield row(*words, "", len(games), one=scored(kind, measure, updates, games), minus=minus)
            for game in games:
                one, minus = (
                    scored(kind, measure, updates, [game], in_points=True),
                    players(file, [game], None),
                )
                yield row(*words, game, 1, one=one, minus=minus, statistic=mean)
        for kind in "REM, first tenth", "QR-DQN, first tenth", "Cloning, first tenth":
            for updates in READINGS[kind]:
                for game, played in beginners().items():
                    one = scored(kind, measure, updates, [game], in_points=True)
                    words = [measure, kind, updates, "the player in the first tenth", game, 1]
                    yield row(*words, one=one, minus=[played[:, None]], statistic=mean)
    for kind, readings in READINGS.items():
        updates, games = readings[-1], games_of[kind]
        last, best = (scored(kind, measure, updates, games) for measure in (LAST, CROSS))
        yield row(f"{LAST} minus {CROSS}", kind, updates, "", "", len(games), one=last, minus=best)


HEADS = ("score", "agent", "updates", "minus", "game", "games", "estimate", "low", "high")


def draw(rows, best_policy=None):
    """A panel per game in each row of lines: the mean over logs of each kind of data, and the players."""
    limits = bounds("dataset-size")
    figure = Figure(figsize=(14, 1 + 2.4 * len(rows)), layout="constrained")
    panels = figure.subplots(len(rows), len(limits), sharex=True, sharey="col", squeeze=False)
    for row_of_panels, lines in zip(panels, rows, strict=True):
        for axes, game in zip(row_of_panels, sorted(limits), strict=True):
            draw_kinds(axes, game, lines)
            axes.axhline(limits[game][1], color=drawing.INK, linewidth=0.8, label="player, best evaluation")
            if best_policy:
                level, style = best_policy[game].mean(), {"linewidth": 0.8, "linestyle": ":"}
                axes.axhline(level, color=drawing.INK, label="player, first tenth", **style)
    for axes in panels.flat:
        axes.set_ylim(bottom=0)
    for axes, game in zip(panels[0], sorted(limits), strict=True):
        axes.set_title(game.partition("/")[2].replace("_", " "))
    for axes in panels[-1]:
        axes.set_xlabel("thousand updates")
    drawn = [axes.get_legend_handles_labels() for axes in figure.axes]
    named = {name: handle for handles, names in drawn for handle, name in zip(handles, names, strict=True)}
    where = {"loc": "outside lower center", "ncols": 7, "frameon": False, "fontsize": 8}
    figure.legend(named.values(), named.keys(), **where)
    return figure


def draw_kinds(axes, game, lines):
    kinds = all_runs()
    for kind, colour, style in lines:
        if game in kinds[kind][0][0]:
            runs = np.mean([each[game] for each, _ in kinds[kind]], 0)
            updates = EVERY // 1000 * np.arange(1, runs.shape[1] + 1)
            axes.plot(updates, runs.mean(0), style, color=drawing.COLOURS[colour], label=kind)


def beginners():
    """Each player at the better of the evaluations in the first tenth of the log: {game: (logs,)}."""
    players = points("dataset-quality/players.csv")["DQN (Nature), player"]
    return {game: runs[:, best_place(runs[:, :2])] for game, runs in players.items()}


REM = [
    ("REM, 1%", 0, "-"),
    ("REM, targets to 10, 1%", 0, ":"),
    ("REM, 10%", 1, "-"),
    ("REM, 20%", 4, "-"),
    ("REM, 50%", 5, "-"),
    ("REM, 100%", 2, "-"),
    ("Cloning, 1%", 3, "-"),
]
QR_DQN = [
    (f"QR-DQN, {part}", colour, "--") for part, colour in (("10%", 1), ("20%", 4), ("50%", 5), ("100%", 2))
]
QUALITY = [("REM, first tenth", 0, "-"), ("QR-DQN, first tenth", 1, "-"), ("Cloning, first tenth", 3, "-")]


TABLES = {"parts.csv": lambda: [HEADS, *lines()]}
FIGURES = {
    "size.png": lambda: draw([REM, QR_DQN]),
    "../dataset-quality/quality.png": lambda: draw([QUALITY], beginners()),
}
