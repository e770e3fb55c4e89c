"""Heads or networks: tables and differences."""

from collections.abc import Iterator
from itertools import combinations

from results.library.scores import GAMES, HEADS, LAST, alone, cut, differences, first, scores, without
from results.library.study import Study, tables_of


def compared() -> Iterator[list]:
    whole = {agent: [runs] for agent, runs in scores("multi-network", "scores-2x.csv").items()}
    second = {
        agent: [{game: curves[:, 1::2] for game, curves in runs.items()}] for agent, (runs,) in whole.items()
    }
    beside = {"REM": "REM, 200 heads", "Ensemble-DQN": "Ensemble-DQN, 200 heads"}
    beside |= {agent: agent for agent in ("QR-DQN", "C51", "DQN (Adam)")}
    second |= {name: [first(10, scores("asymptotic")[agent])] for agent, name in beside.items()}
    pairs = list(combinations(whole, 2))
    reading = "2X, every second evaluation"
    yield from alone(reading, second)
    yield from differences(reading, second, [*pairs, *((one, "REM, 200 heads") for one in whole)])
    yield from differences("1X", cut(10, whole), pairs)
    for game in GAMES:
        yield from differences(f"2X, without {game}", without(game, whole), pairs, [LAST])


TABLES = {
    "differences.csv": lambda: [HEADS, *compared()],
    **tables_of("multi-network", "2x-", "scores-2x.csv", evaluations=20),
    **tables_of("multi-network", "2.5x-", "scores-2.5x.csv", evaluations=25),
}
FIGURES = {
    "2x-intervals.png": lambda: Study("multi-network", "scores-2x.csv").intervals(),
    "2.5x-intervals.png": lambda: Study("multi-network", "scores-2.5x.csv").intervals(),
    "iqm.png": lambda: Study("multi-network", "scores-2x.csv").iqm(),
    "medians.png": lambda: Study("multi-network", "scores-2.5x.csv").medians(),
    "curves.png": lambda: Study("multi-network", "scores-2.5x.csv").curves(),
}
