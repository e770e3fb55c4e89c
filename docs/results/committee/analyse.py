"""The tables of the committee, from the rows that `run.py` left.

    python docs/results/committee/analyse.py evaluations.csv.gz > tables.md

A case is an agent on a log. Everything that could be shipped has a ratio: the mean score of the seeds or
teams over the mean score of the oracle's picks, one for each of the first five seeds; regret is 1 minus it.
95% intervals: bootstrap over pairs (game, log) with all their cases. Cases whose oracle has no point are left
out, and counted.
"""

import csv
import gzip
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

PRIMARY, TEAM, DRAWS = ("dqn", "rem", "c51"), 5, 10_000
ONE, ORACLE = "the last, one seed", "oracle: best of each run"
Cases = dict[tuple[str, str, int], dict[str, float]]  # (agent, game, log): ratios


def rows_of(file: Path) -> dict[tuple[str, str, str, int], list[dict]]:
    """The rows of each (stage, agent, game, log). 5X has the kept policies of 1X that are on its grid too."""
    found = defaultdict(list)
    with gzip.open(file, "rt") as stream:
        for row in csv.DictReader(stream):
            for name in ("log", "average", "step"):
                row[name] = int(row[name])
            for name in ("first", "second"):
                row[name] = float(row[name])
            row["seeds"] = tuple(map(int, row["seeds"].split("-")))
            found[row["stage"], row["agent"], row["game"], row["log"]].append(row)
    for (stage, *case), rows in found.items():
        if stage == "5X":
            steps = sorted({row["step"] for row in rows if row["kind"] == "policy"})
            every = steps[1] - steps[0]
            rows += [
                row for row in found["1X", *case] if row["kind"] == "policy" and row["step"] % every == 0
            ]
    return found


def mean(rows: Iterable[dict]) -> float:
    return float(np.mean([(row["first"], row["second"]) for row in rows]))


def pick(rows: list[dict]) -> float:
    """The score of the best policy: half of the episodes choose, the other half score, in both directions."""
    halves = np.array([(row["first"], row["second"]) for row in rows])
    return float(halves[halves[:, 0].argmax(), 1] + halves[halves[:, 1].argmax(), 0]) / 2


def scores(rows: list[dict]) -> dict[str, float]:
    """The mean score of each way to ship a policy."""
    last = max(row["step"] for row in rows)
    single = [row for row in rows if row["kind"] == "policy"]
    kept = [row for row in single if row["seeds"][0] < TEAM]
    ways = defaultdict(list)
    ways["a kept policy at random"] = kept
    ways[ONE] = [row for row in single if row["step"] == last]
    for row in rows:
        size, average = len(row["seeds"]), row["average"]
        ending = f", weights of the last {average}" if average > 1 else ""
        if row["kind"] == "weights":
            ways[f"one seed{ending}"].append(row)
        if row["kind"] == "steps":
            ways[f"one seed, values of the last {average}"].append(row)
        if row["kind"] == "values":
            ways[f"values of {size} seeds{ending}"].append(row)
    found = {way: mean(some) for way, some in ways.items()}
    own = [pick([row for row in kept if row["seeds"][0] == seed]) for seed in {r["seeds"][0] for r in kept}]
    return {**found, ORACLE: float(np.mean(own)), "oracle: best of all runs": pick(kept)}


def interval(values: dict[tuple[str, int], list[float]], statistic=np.mean) -> str:
    """The statistic over all values, and its interval; the values of a pair (game, log) stay together."""
    groups = list(values.values())
    draws = np.random.default_rng(0).integers(len(groups), size=(DRAWS, len(groups)))
    if statistic is np.mean:
        sums, counts = (np.array([f(each) for each in groups]) for f in (sum, len))
        drawn = sums[draws].sum(axis=1) / counts[draws].sum(axis=1)
    else:
        drawn = [statistic(np.concatenate([groups[place] for place in draw])) for draw in draws[:1000]]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return f"{statistic(np.concatenate(groups)):.2f} [{low:.2f}, {high:.2f}]"


def grouped(cases: Cases, value) -> dict[tuple[str, int], list[float]]:
    found = defaultdict(list)
    for (_, game, log), ratios in sorted(cases.items()):
        found[game, log].append(value(ratios))
    return found


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(list(heads)))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def minus(way: str, other: str, ratios: dict[str, float]) -> float:
    return ratios[way] - ratios[other]


def of_ways(cases: Cases) -> None:
    """Every way to ship a policy that all these cases have."""
    ways = [way for way in next(iter(cases.values())) if all(way in ratios for ratios in cases.values())]
    lines = []
    for way in ways:
        values = grouped(cases, lambda ratios, way=way: ratios[way])
        lines.append(
            (
                way,
                interval(values),
                interval(values, np.median),
                interval(grouped(cases, partial(minus, way, ONE))),
            )
        )
    table(("shipped", "mean ratio", "median", "mean minus the last"), lines)


def compared(raw: dict, stage: str) -> None:
    """Uses of a multiple of one network on the same logs; 1 is the oracle's pick of one DQN."""
    ways = (
        *(("dqn", ONE), ("rem", ONE), ("networks_4", ONE), ("dqn", "values of 4 seeds")),
        *((agent, "values of 5 seeds") for agent in ("dqn", "rem", "c51", "networks_4", "cloning")),
        ("cloning", ONE),
    )
    logs = [key[2:] for key in raw if key[:2] == (stage, "dqn")]
    units = {log: raw[stage, "dqn", *log][ORACLE] for log in logs}
    lines = []
    for agent, way in ways:
        found = {log: raw.get((stage, agent, *log), {}).get(way) for log in logs}
        some = {log: score for log, score in found.items() if score is not None and units[log] > 0}
        if some:
            others = {log: raw[stage, "dqn", *log].get("values of 4 seeds") for log in some}
            ratios = {log: [some[log] / units[log]] for log in some}
            less = {log: [(some[log] - others[log]) / units[log]] for log in some if others[log] is not None}
            lines.append((agent, way, len(some), interval(ratios), interval(less) if less else ""))
    table(("agent", "shipped", "logs", "ratio to one DQN's oracle", "minus four DQNs at play"), lines)


def points(raw: dict, stage: str) -> None:
    """The means over the logs of each game, in points."""
    games = sorted({key[2] for key in raw if key[0] == stage})
    ways = (ONE, "values of 5 seeds", ORACLE)
    lines = []
    for agent in dict.fromkeys(key[1] for key in raw if key[0] == stage):
        for way in ways:
            of_game = [
                [s[way] for key, s in raw.items() if key[:3] == (stage, agent, game) and way in s]
                for game in games
            ]
            lines.append(
                (agent, way, *(f"{np.mean(each):.1f} ({len(each)})" if each else "" for each in of_game))
            )
    table(("agent", "shipped", *(f"{game} (logs)" for game in games)), lines)


def main(file: Path) -> None:
    rows = rows_of(file)
    raw = {
        key: scores([row for row in some if row["kind"] != "estimate"])
        for key, some in rows.items()
        if key[0] in ("1X", "5X", "long")
    }
    for stage in dict.fromkeys(key[0] for key in raw):
        print(f"## {stage}\n")
        for agents in (
            PRIMARY,
            *((agent,) for agent in dict.fromkeys(key[1] for key in raw if key[0] == stage)),
        ):
            mine = {key[1:]: each for key, each in raw.items() if key[0] == stage and key[1] in agents}
            cases = {
                key: {way: score / each[ORACLE] for way, score in each.items()}
                for key, each in mine.items()
                if each[ORACLE] > 0
            }
            if cases:
                print(f"**{', '.join(agents)}: {len(cases)} cases of {len(mine)}**\n")
                of_ways(cases)
        compared(raw, stage)
        points(raw, stage)
    estimates = [(key[1], row) for key, some in rows.items() for row in some if row["kind"] == "estimate"]
    for agent in dict.fromkeys(agent for agent, _ in estimates):
        mine = [row["first"] > 2 * row["second"] for name, row in estimates if name == agent]
        print(f"{agent}: {sum(mine)} of {len(mine)} seeds have values above twice the log's largest return")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
