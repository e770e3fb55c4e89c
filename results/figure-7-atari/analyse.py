"""Figure 7 on Atari: the table and the figure.

The agents of a game are read at the evaluations that all of its runs have. In percent, 0 is random play and
100 the best evaluation of the players (of their mean, if a game has several logs). `error` is the standard
error of the episodes of an evaluation: it says how well a policy was measured, and nothing about other logs.
`deviation` is over logs.
"""

import json
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from results.library.scores import CROSS, LAST, MEASURES, RESULTS, best_place, read

from optimist import envs
from optimist.studies.report.figures.curves import curve_grid
from optimist.studies.scores.normalisation import random_with_sticky_actions

HERE = "figure-7-atari"
HEADS = ["game", "logs", "who", "reading", "at", "score", "error", "deviation", "percent"]
PLAYER, BEST = "the player", "best"
EXPLORING = {"best": "best_policy_return", "mean": "return_mean"}  # in the card of a log


class Curves:
    """The returns of the episodes of each seed at each step."""

    def __init__(self) -> None:
        self.seeds: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))

    @property
    def steps(self) -> set[int]:
        """Those at which all seeds were evaluated."""
        return set.intersection(*map(set, self.seeds.values()))

    def scores(self, steps: list[int]) -> np.ndarray:
        """(seeds, evaluations)"""
        return np.array([[np.mean(self.seeds[seed][at]) for at in steps] for seed in sorted(self.seeds)])

    def error(self, step: int) -> float:
        """The standard error of the mean over seeds that comes from their episodes alone."""
        squares = [np.var(seed[step], ddof=1) / len(seed[step]) for seed in self.seeds.values()]
        return float(np.sqrt(sum(squares)) / len(squares))

    def means(self) -> dict[int, dict[int, float]]:
        """{seed: {step: score}}"""
        return {
            seed: {step: float(np.mean(curve[step])) for step in sorted(curve)}
            for seed, curve in self.seeds.items()
        }


class Game:
    """Everything that was measured in one game."""

    def __init__(self, name: str, agents: dict[str, Curves], player: Curves, cards: list[dict]):
        self.name, self.agents, self.player, self.cards = name, agents, player, cards
        self.title = envs.base_name(name).removeprefix("atari/")
        self.random = random_with_sticky_actions()[self.title]
        self.best_evaluation = player.scores(sorted(player.steps)).mean(axis=0).max()

    def exploring(self, name: str) -> np.ndarray:
        """What the cards of the logs say about the players' play; logs of one stretch share a card."""
        return np.array([card[EXPLORING[name]] for card in self.cards], float)

    def rows(self) -> Iterator[list]:
        for reading in (BEST, LAST):
            yield self.read(PLAYER, self.player, reading, sorted(self.player.steps))
        for reading in EXPLORING:
            yield self.row(PLAYER, f"exploring, {reading}", "", self.exploring(reading), "")
        steps = sorted(set.intersection(*(curves.steps for curves in self.agents.values())))
        for agent, curves in self.agents.items():
            for reading in MEASURES:
                if reading != CROSS or len(curves.seeds) > 1:  # another seed has to choose
                    yield self.read(agent, curves, reading, steps)
            for step in steps:
                yield self.read(agent, curves, LAST, [step], name="at")

    def read(self, who: str, curves: Curves, reading: str, steps: list[int], name: str = "") -> list:
        scores = curves.scores(steps)
        at = {BEST: steps[best_place(scores)], LAST: steps[-1]}.get(reading, "")
        error = f"{curves.error(at):.2f}" if at else ""
        return self.row(who, name or reading, at, MEASURES[reading](scores), error)

    def row(self, who: str, reading: str, at, values: np.ndarray, error: str) -> list:
        deviation = f"{values.std(ddof=1):.2f}" if len(values) > 1 else ""
        percent = 100 * (values.mean() - self.random) / (self.best_evaluation - self.random)
        score, logs = f"{values.mean():.2f}", len(self.player.seeds)
        return [self.name, logs, who, reading, at, score, error, deviation, f"{percent:.0f}"]


def episodes(path: str) -> dict[str, dict[str, Curves]]:
    """{game: {agent: curves}}; a file without agents is about the players."""
    found: dict = defaultdict(lambda: defaultdict(Curves))
    for row in read(path):
        curves = found[row["game"]][row.get("agent", PLAYER)]
        curves.seeds[int(row["seed"])][int(row["step"])].append(float(row["return"]))
    return found


def games(folder: str = HERE) -> list[Game]:
    agents, players = episodes(f"{folder}/episodes.csv"), episodes(f"{folder}/player-episodes.csv")
    cards = json.loads((RESULTS / folder / "logs.json").read_text())
    return [
        Game(name, agents[name], players[name][PLAYER], list(cards[name].values())) for name in sorted(agents)
    ]


def draw():
    panels, levels = {}, {}
    for game in games():
        panels[game.title] = {agent: curves.means() for agent, curves in game.agents.items()}
        levels[game.title] = {
            "the player's best evaluation": game.best_evaluation,
            "its best play while it explored": game.exploring("best").mean(),
        }
    return curve_grid(panels, levels, window=1, columns=min(3, len(panels)), xlabel="gradient updates")


TABLES = {"table.csv": lambda: [HEADS, *(row for game in games() for row in game.rows())]}
FIGURES = {"curves.png": draw}
