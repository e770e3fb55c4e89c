"""Pong on an H200: the figures."""

import json

from matplotlib.figure import Figure
from results.library.drawing import one_game
from results.library.scores import RESULTS, read

from optimist.studies.report import drawing

AGENTS = {"qr_dqn": "QR-DQN", "dqn_nature": "DQN (Nature)", "dqn_adam": "DQN (Adam)", "rem": "REM"}
LOG = RESULTS / "atari/log.json"


def tenths_of_the_log():
    figure = Figure(figsize=(7.2, 2.4), layout="constrained")
    axes = figure.add_subplot()
    axes.bar(
        range(1, 11), json.loads(LOG.read_text())["return_per_tenth"], width=0.72, color=drawing.COLOURS[0]
    )
    drawing.dress(axes, xlabel="tenth of the logged experience", ylabel="mean return", ticks=10)
    return figure


def offline():
    rows = {label: read(f"atari/{name}.csv") for name, label in AGENTS.items()}
    return one_game("Pong", rows, "return", LOG, "gradient updates")


TABLES: dict = {}
FIGURES = {"log.png": tenths_of_the_log, "offline.png": offline}
