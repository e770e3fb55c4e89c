"""Intervals that combine readings or studies: gains, falls, pooled repetitions, every second evaluation.

Each function gives the rows of one CSV file, and `recompute.py` writes them.
"""

import csv
import json
from collections.abc import Iterable, Iterator
from itertools import combinations, permutations

import numpy as np
from resampling import (
    CROSS,
    DRAWS,
    LAST,
    MEASURES,
    RESULTS,
    Runs,
    bounds,
    first,
    players,
    points,
    row,
    scores,
    student,
    tables,
)

from optimist.studies.scores.statistics import (
    SHARE,
    iqm,
    mean,
    probability_of_improvement,
    stratified_bootstrap,
)

TWICE = ("DQN (Adam)", "QR-DQN", "REM", "Cloning")  # agents that ran twice on the same logs
READINGS = {"1X": 5, "5X": 25}  # evaluations
GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
AT_ONE = (CROSS, LAST, "mean of last 3")
LEADS = [  # compared without each game, too: a lead may be that of one
    ("C51", "DQN (Nature)"),
    ("QR-DQN, pooled", "C51"),
    ("Ensemble-DQN", "DQN (Adam), pooled"),
    ("Averaged Ensemble-DQN", "DQN (Adam), pooled"),
    ("Averaged Ensemble-DQN", "Ensemble-DQN"),
    ("REM, pooled", "Minimum target"),
]

Sides = dict[str, list[Runs]]  # the repetitions of each agent


def pooled() -> Sides:
    return {
        f"{agent}, pooled": [scores("epsilon-and-heads")[agent], scores("asymptotic")[agent]]
        for agent in TWICE
    }


def cut(evaluations: int, sides: Sides) -> Sides:
    return {name: [first(evaluations, runs) for runs in each] for name, each in sides.items()}


def over_training(sides: Sides) -> Iterator[list]:
    """What each agent gains from 1X to 5X, and what it has lost at the end."""
    early, late = (cut(evaluations, sides) for evaluations in READINGS.values())
    for name in sides:
        for measure in MEASURES:
            gain = {"one": tables(measure, *late[name]), "minus": tables(measure, *early[name])}
            yield row("5X minus 1X", measure, name, "", **gain)
        fall = {"one": tables(LAST, *late[name]), "minus": tables(CROSS, *late[name])}
        yield row("5X", f"{LAST} minus {CROSS}", name, "", **fall)


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


def alone(reading: str, sides: Sides, measures: Iterable[str] = MEASURES) -> Iterator[list]:
    for name, each in sides.items():
        for measure in measures:
            yield row(reading, measure, name, "", one=tables(measure, *each))


def differences(
    reading: str, sides: Sides, pairs: Iterable[tuple[str, str]], measures: Iterable[str] = MEASURES
) -> Iterator[list]:
    for one, other in pairs:
        for measure in measures:
            mine, theirs = (tables(measure, *sides[name]) for name in (one, other))
            yield row(reading, measure, one, other, one=mine, minus=theirs)


def without(game: str, sides: Sides) -> Sides:
    return {
        name: [{key: curves for key, curves in runs.items() if game not in key} for runs in each]
        for name, each in sides.items()
    }


def asymptotic() -> Iterator[list]:
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


def epsilon_and_heads() -> Iterator[list]:
    once = {agent: [runs] for agent, runs in scores("epsilon-and-heads").items()}
    yield from over_training(once)
    second = {f"{agent}, second": [scores("asymptotic")[agent]] for agent in TWICE}
    others = [agent for agent in once if agent not in TWICE]
    pairs = [(one, two) for two in (*pooled(), *second) for one in others]
    yield from differences("5X", {**once, **pooled(), **second}, pairs)


def multi_network() -> Iterator[list]:
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


def online() -> Iterator[list]:
    """The probability that a run of one agent beats a run of the other, and the IQMs without Freeway."""
    found = scores("online")
    for measure in ("best", CROSS, LAST, "mean of last 3"):
        for one, other in permutations(found, 2):
            both = (tables(measure, found[agent])[0] for agent in (one, other))
            sure = stratified_bootstrap(probability_of_improvement, *both, repetitions=DRAWS, limits=SHARE)
            numbers = (f"{number:.4f}" for number in (sure.estimate, sure.low, sure.high))
            yield ["P", measure, one, other, *numbers]
    sides = without("freeway", {agent: [runs] for agent, runs in found.items()})
    yield from alone("without Freeway", sides, ["mean of last 3"])


def final_buffer() -> Iterator[list]:
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


def read(path: str) -> list[dict[str, str]]:
    with open(RESULTS / path) as file:
        return list(csv.DictReader(file))


def of_seeds(reading: str, one: str, other: str, apart: np.ndarray, score: str = LAST) -> list:
    """The mean of the differences of five seeds, with the bounds of Student's t."""
    return [reading, score, one, other, *(f"{number:.2f}" for number in student(apart))]


def growing_the_log() -> Iterator[list]:
    rows = read("growing-the-log/returns.csv")
    own, chance = "its own policy", "random play"

    def returns(way: str, rounds: int) -> np.ndarray:
        mine = [each for each in rows if (each["grown_by"], int(each["round"])) == (way, rounds)]
        return np.array([float(each["return"]) for each in mine])

    for rounds in (1, 2, 3):
        yield of_seeds(f"{rounds} rounds", own, chance, returns(own, rounds) - returns(chance, rounds))
    for way in own, chance:
        yield of_seeds("3 rounds minus none", way, "", returns(way, 3) - returns(way, 0))
    online = read("growing-the-log/online.csv")
    gains = np.array([float(each["after"]) - float(each["before"]) for each in online])
    yield of_seeds("a round online", "after", "before", gains.reshape(5, -1).mean(axis=1))


def ten_times_the_log() -> Iterator[list]:
    """Whole logs minus their first tenths, and agents on whole logs, in points; the bounds are Student's."""
    whole, evaluations = points("ten-times-the-log/scores.csv"), 25
    for agent in ("QR-DQN", "DQN (Adam)", "REM"):
        for game, curves in whole[agent].items():
            # Breakout's first tenths: see ten-times-the-log/decay.py
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


def vectors() -> Iterator[list]:
    """The recipe `small` on vectors: means over five logs, and differences to the recipe, in points; the
    bounds are Student's."""
    found, own = points("small-scale/vectors/scores.csv"), "0.001/32"
    for game in next(iter(found.values())):
        for measure in (CROSS, LAST, "mean of last 3", "mean of all"):
            scored = {
                agent: np.asarray(tables(measure, {game: runs[game]})[0])[:, 0]
                for agent, runs in found.items()
            }
            for agent, values in scored.items():
                yield of_seeds(game, agent, "", values, measure)
                recipe = f"{agent.rpartition(', ')[0]}, {own}"
                if recipe in scored and agent != recipe:
                    yield of_seeds(game, agent, recipe, values - scored[recipe], measure)


def d3rlpy() -> Iterator[list]:
    rows = read("d3rlpy/returns.csv")

    def returns(game: str, agent: str, library: str) -> np.ndarray:
        """The mean return of each of five seeds."""
        names = (game, agent, library)
        mine = [each for each in rows if (each["game"], each["agent"], each["library"]) == names]
        return np.array([float(each["return"]) for each in mine]).reshape(5, -1).mean(axis=1)

    for game, agent in dict.fromkeys((each["game"], each["agent"]) for each in rows):
        ours, theirs = (returns(game, agent, library) for library in ("optimist", "d3rlpy"))
        yield of_seeds(game, agent, f"{agent} of d3rlpy", ours - theirs)
