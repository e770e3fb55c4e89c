"""Every agent from one log, and online: the figures."""

from results.library.drawing import one_game
from results.library.scores import RESULTS, read

OFFLINE = {  # six of the agents
    "dqn-nature": "DQN (Nature)",
    "qr_dqn": "QR-DQN",
    "rem": "REM",
    "c51": "C51",
    "ensemble_dqn": "Ensemble-DQN",
    "behaviour_cloning": "cloning",
}
ONLINE = {
    "dqn": "DQN (Nature)",
    "c51": "C51",
    "qr_dqn": "QR-DQN",
    "bootstrapped_dqn": "Bootstrapped-DQN",
    "rem": "REM",
}


def rows_of(path: str, names: dict[str, str]) -> dict[str, list[dict]]:
    return {label: [row for row in read(path) if row["agent"] == name] for name, label in names.items()}


def offline():
    log, rows = RESULTS / "agents/log.json", rows_of("agents/offline.csv", OFFLINE)
    return one_game("offline", rows, "average_return", log, "gradient updates")


def online():
    return one_game("online", rows_of("agents/online.csv", ONLINE), "recent_return", None, "steps played")


TABLES: dict = {}
FIGURES = {"offline.png": offline, "online.png": online}
