"""Ten agents at 1X and 5X: tables, differences, and how much four agents move when they run twice.

Repetition: IQM is the mean of the middle half of all runs. Pooled: the mean of both repetitions for each game
and log. The share of the log is the correlation of the two repetitions within games, over the games whose
logs are equal in both.
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from results.library.scores import (
    CROSS,
    DRAWS,
    GAMES,
    HEADS,
    LAST,
    READINGS,
    TWICE,
    Sides,
    alone,
    bounds,
    cut,
    differences,
    first,
    interval,
    over_training,
    players,
    pooled,
    row,
    scores,
    tables,
    without,
)
from results.library.study import Study, tables_of

from optimist.studies.scores.statistics import iqm, stratified_bootstrap

AT_ONE = (CROSS, LAST, "mean of last 3")
LEADS = [  # compared without each game, too: a lead may be that of one
    ("C51", "DQN (Nature)"),
    ("QR-DQN, pooled", "C51"),
    ("Ensemble-DQN", "DQN (Adam), pooled"),
    ("Averaged Ensemble-DQN", "DQN (Adam), pooled"),
    ("Averaged Ensemble-DQN", "Ensemble-DQN"),
    ("REM, pooled", "Minimum target"),
]


def gains_compared(sides: Sides) -> Iterator[list]:
    """By how much one agent gains more than another from 1X to 5X; all of them ran twice."""
    for one, other in combinations(sides, 2):
        parts = [
            tables(CROSS, *(first(evaluations, runs) for runs in sides[name]))
            for name in (one, other)
            for evaluations in (READINGS["5X"], READINGS["1X"])
        ]

        def apart(*drawn: np.ndarray) -> np.ndarray:
            late, early, late_other, early_other = (
                iqm(np.mean(drawn[start : start + 2], axis=0)) for start in (0, 2, 4, 6)
            )
            return (late - early) - (late_other - early_other)

        sure = stratified_bootstrap(
            apart, *(each for part in parts for each in part), repetitions=DRAWS, paired=True
        )
        numbers = (f"{number:.4f}" for number in (sure.estimate, sure.low, sure.high))
        yield ["5X minus 1X", CROSS, one, other, *numbers]


def compared() -> Iterator[list]:
    once = {agent: [runs] for agent, runs in scores("asymptotic").items()}
    sides = {**once, **pooled()}
    yield from over_training(sides)
    yield from gains_compared(pooled())
    others = [agent for agent in once if agent not in TWICE]
    pairs = [*combinations(pooled(), 2), *((two, one) for two in pooled() for one in others)]
    for reading, evaluations in READINGS.items():
        read = cut(evaluations, sides)
        yield from differences(reading, read, pairs)
        yield from over_the_players(reading, read)
        for game in GAMES:
            words, some = f"{reading}, without {game}", without(game, read)
            yield from differences(words, some, LEADS, AT_ONE)
            yield from over_the_players(words, some)
        three = without("asterix", without("seaquest", read))
        words = f"{reading}, without asterix and seaquest"
        yield from differences(words, three, [("REM, pooled", "Minimum target")], AT_ONE)
    yield from alone("5X, without Seaquest", without("seaquest", once), [LAST])


def over_the_players(reading: str, sides: Sides) -> Iterator[list]:
    """Agents minus the player of the same log, at its cross-chosen best. In Breakout players 0 and 1 of
    `asymptotic` are others than those whose evaluations are published; there these two logs are not pairs."""
    games = next(iter(sides.values()))[0]
    minus = players("dataset-quality/players.csv", games, bounds("epsilon-and-heads"))
    yield row(reading, CROSS, "the players", "", one=minus)
    for name in ("DQN (Nature)", "QR-DQN", "QR-DQN, pooled", "REM, pooled"):
        for measure in AT_ONE:
            yield row(reading, measure, name, "its player", one=tables(measure, *sides[name]), minus=minus)


FOLDERS = "epsilon-and-heads", "asymptotic"
REPEATED = ("REM", "DQN (Adam)"), ("REM", "QR-DQN"), ("QR-DQN", "DQN (Adam)")
OTHER_LOGS = "minatar_jax/breakout"  # two of its five players differ between the repetitions
COLUMNS = [f"{which}{end}" for which in ("first", "second", "pooled") for end in ("", "_low", "_high")]
REPETITION_HEADS = ["reading", "score", "agent", "minus", *COLUMNS, "share_of_log"]


def share_of_log(one, other):
    """The correlation of two (seeds, games) tables within games, each game scaled to the same spread."""
    one, other = one - one.mean(0), other - other.mean(0)
    spread = np.sqrt((one**2 + other**2).sum(0))
    one, other = one / spread, other / spread
    return 2 * (one * other).sum() / (one**2 + other**2).sum()


def repetition():
    games = list(scores(FOLDERS[0])["REM"])
    equal = [number for number, game in enumerate(games) if game != OTHER_LOGS]
    for reading, evaluations in (("1X", 5), ("5X", 25)):
        for measure in CROSS, LAST, "mean of all":
            found = {
                agent: tables(measure, *(first(evaluations, scores(folder)[agent]) for folder in FOLDERS))
                for agent in TWICE
            }
            for agent, both in found.items():
                numbers = [number for some in (both[:1], both[1:], both) for number in interval(some)]
                share = share_of_log(*(np.asarray(each)[:, equal] for each in both))
                yield [reading, measure, agent, "", *(f"{each:.4f}" for each in numbers), f"{share:.2f}"]
            for agent, other in REPEATED:
                parts = slice(0, 1), slice(1, 2), slice(0, 2)
                pairs = (interval(found[agent][part], found[other][part]) for part in parts)
                numbers = [f"{number:.4f}" for each in pairs for number in each]
                yield [reading, measure, agent, other, *numbers, ""]


TABLES = {
    "differences.csv": lambda: [HEADS, *compared()],
    "repetition.csv": lambda: [REPETITION_HEADS, *repetition()],
    **tables_of("asymptotic", "1x-", evaluations=5),
    **tables_of("asymptotic", "5x-", evaluations=25),
}
FIGURES = {
    "intervals.png": lambda: Study("asymptotic").intervals(),
    "iqm.png": lambda: Study("asymptotic").iqm(),
    "medians.png": lambda: Study("asymptotic").medians(),
    "curves.png": lambda: Study("asymptotic").curves(),
}
