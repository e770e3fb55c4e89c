"""The tables of the committee, from the rows that `run.py` left.

    python docs/results/committee/analyse.py evaluations.csv.gz > tables.md

A case is an agent on a log. Everything that could be shipped has a ratio: the mean score of its seeds or
teams over the mean score of the oracle's picks, one for each of the first five seeds; regret is 1 minus it.
95% intervals: bootstrap over pairs (game, log) with all their cases. Cases whose oracle has no point are
left out. The primary measure is in the first table: values of 5 seeds, "regret minus the last's".
"""

import csv
import gzip
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call

PRIMARY, TEAM, DRAWS = ("dqn", "rem", "c51"), 5, 10_000
LAST, ORACLE, FOUR, FIVE = (
    "the last of one seed",
    "oracle: best of each run",
    "values of 4 seeds",
    "values of 5 seeds",
)
AT_PLAY = [(agent, LAST) for agent in ("dqn", "rem", "networks_4", "cloning")] + [("dqn", FOUR)]
AT_PLAY += [(agent, FIVE) for agent in (*PRIMARY, "networks_4", "cloning")]


def read(file: Path) -> dict[tuple, list[dict]]:
    """The rows of each (stage, agent, game, log). 5X has the kept policies of 1X that are on its grid too."""
    found = defaultdict(list)
    with gzip.open(file, "rt") as stream:
        for row in csv.DictReader(stream):
            row |= {name: float(row[name]) for name in ("average", "step", "first", "second")}
            row["seeds"] = [int(seed) for seed in row["seeds"].split("-")]
            found[row["stage"], row["agent"], row["game"], row["log"]].append(row)
    for (stage, *case), rows in found.items():
        if stage == "5X":
            first, second = sorted({row["step"] for row in rows if row["kind"] == "policy"})[:2]
            early = [row for row in found["1X", *case] if row["kind"] == "policy"]
            rows += [row for row in early if row["step"] % (second - first) == 0]
    return found


def pick(rows: list[dict]) -> float:
    """The score of the best policy: half of the episodes choose, the other half score, in both directions."""
    first, second = np.array([(row["first"], row["second"]) for row in rows]).T
    return float(second[first.argmax()] + first[second.argmax()]) / 2


def scores(rows: list[dict]) -> dict[str, float]:
    """The mean score of each way to ship a policy."""
    last, ways = max(row["step"] for row in rows), defaultdict(list)
    for row in rows:
        size, length = len(row["seeds"]), f"{row['average']:.0f}"
        ending = f", weights of the last {length}" if length != "1" else ""
        if row["kind"] == "policy" and row["seeds"][0] < TEAM:
            ways["a kept policy at random"].append(row)
        if row["kind"] == "policy" and row["step"] == last:
            ways[LAST].append(row)
        if row["kind"] == "weights":
            ways[f"one seed{ending}"].append(row)
        if row["kind"] == "steps":
            ways[f"one seed, values of the last {length}"].append(row)
        if row["kind"] == "values":
            ways[f"values of {size} seeds{ending}"].append(row)
    found = {
        way: float(np.mean([(row["first"], row["second"]) for row in some])) for way, some in ways.items()
    }
    kept, runs = ways["a kept policy at random"], defaultdict(list)
    for row in kept:
        runs[row["seeds"][0]].append(row)
    return {
        **found,
        ORACLE: float(np.mean([pick(run) for run in runs.values()])),
        "oracle: best of all": pick(kept),
    }


def interval(cases: Iterable[tuple], value: Callable[..., float]) -> str:
    """The mean over all cases, and its interval; the cases of a pair (game, log) stay together."""
    groups = defaultdict(list)
    for (_, game, log), *ratios in cases:
        groups[game, log].append(value(*ratios))
    sums, counts = (np.array([of(group) for group in groups.values()]) for of in (sum, len))
    draws = np.random.default_rng(0).integers(len(groups), size=(DRAWS, len(groups)))
    low, high = np.quantile(sums[draws].sum(axis=1) / counts[draws].sum(axis=1), (0.025, 0.975))
    return f"{sums.sum() / counts.sum():.2f} [{low:.2f}, {high:.2f}]"


def table(title: str, *rows: Iterable[object]) -> None:
    heads, *lines = (" | ".join(map(str, row)) for row in rows)
    print(
        f"**{title}**\n\n| {heads} |\n|{'---|' * len(list(rows[0]))}",
        *(f"| {line} |" for line in lines),
        "",
        sep="\n",
    )


def of_ways(title: str, cases: dict[tuple, dict]) -> None:
    """Every way to ship a policy that all these cases have."""
    every = {
        key: {way: s / each[ORACLE] for way, s in each.items()} for key, each in cases.items() if each[ORACLE]
    }
    rows = [("shipped", "mean ratio", "median", "regret minus the last's")]
    for way in [way for way in next(iter(every.values()), {}) if all(way in each for each in every.values())]:
        median = np.median([each[way] for each in every.values()])
        ratio = interval(every.items(), lambda each, way=way: each[way])
        rows.append(
            (
                way,
                ratio,
                f"{median:.2f}",
                interval(every.items(), lambda each, way=way: each[LAST] - each[way]),
            )
        )
    table(f"{title}: {len(every)} cases of {len(cases)}", *rows)


def at_play(stage: str, cases: dict[tuple, dict]) -> None:
    """Uses of several networks, on the logs that both sides have; 1 is the oracle's pick of one DQN."""
    rows = [("agent", "shipped", "logs", "score", "minus four DQNs at play")]
    for agent, way in AT_PLAY:
        pairs = [
            (key, cases.get(("dqn", *key[1:]), {}), each) for key, each in cases.items() if key[0] == agent
        ]
        pairs = [(key, dqn, each) for key, dqn, each in pairs if dqn.get(ORACLE) and way in each]
        both = [pair for pair in pairs if FOUR in pair[1]]
        if pairs:
            score = interval(pairs, lambda dqn, each, way=way: each[way] / dqn[ORACLE])
            less = both and interval(both, lambda dqn, each, way=way: (each[way] - dqn[FOUR]) / dqn[ORACLE])
            rows.append((agent, way, len(pairs), score, less or ""))
    table(f"{stage}: one unit for all agents", *rows)


def points(stage: str, cases: dict[tuple, dict]) -> None:
    """The means over the logs of each game, in points."""
    games = sorted({game for _, game, _ in cases})
    rows = [("agent", "shipped", *games)]
    for agent in dict.fromkeys(agent for agent, *_ in cases):
        for way in (LAST, FIVE, ORACLE):
            of_games = [
                [each[way] for key, each in cases.items() if key[:2] == (agent, g) and way in each]
                for g in games
            ]
            rows.append(
                (agent, way, *(f"{np.mean(some):.1f} ({len(some)})" if some else "" for some in of_games))
            )
    table(f"{stage}: points (logs)", *rows)


def main(file: Path) -> None:
    found = read(file)
    for stage in ("1X", "5X", "long"):
        rows = {key[1:]: some for key, some in found.items() if key[0] == stage}
        cases = {
            key: scores([row for row in some if row["kind"] != "estimate"]) for key, some in rows.items()
        }
        agents = list(dict.fromkeys(agent for agent, *_ in cases))
        for some in [PRIMARY, *((agent,) for agent in agents)] if cases else []:
            of_ways(
                f"{stage}: {', '.join(some)}", {key: each for key, each in cases.items() if key[0] in some}
            )
        if cases:
            at_play(stage, cases)
            points(stage, cases)
        for agent in agents:
            mine = [row for key, some in rows.items() if key[0] == agent for row in some]
            large = [row["first"] > 2 * row["second"] for row in mine if row["kind"] == "estimate"]
            print(
                f"{agent}: {sum(large)} of {len(large)} seeds: values above twice the log's largest return\n"
            )


if __name__ == "__main__":
    call(__doc__, main)
