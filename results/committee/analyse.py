"""The committee's figures, from the scores of everything that could be shipped.

A case is an agent on a log. Everything that could be shipped has a ratio: the mean score of its seeds or
teams over the mean score of the oracle's picks, one for each of the first five seeds; regret is 1 minus it.
95% intervals: bootstrap over pairs (game, log) with all their cases. Cases whose oracle has no point are
left out. The primary measure: dqn, rem, c51, values of 5 seeds, "regret minus that of the last of one seed".
Equal compute is measured in the picks of DQN's oracle, on logs that DQN learned from too.
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from results.library.scores import read

HEADS = ("stage", "agent", "game", "shipped", "measure", "cases", "estimate", "low", "high")
PRIMARY, TEAM, DRAWS = ("dqn", "rem", "c51"), 5, 10_000
LAST, ORACLE, FOUR, FIVE = (
    "the last of one seed",
    "oracle: best of each run",
    "values of 4 seeds",
    "values of 5 seeds",
)
AT_PLAY = [(agent, LAST) for agent in ("dqn", "rem", "networks_4", "cloning")] + [("dqn", FOUR)]
AT_PLAY += [(agent, FIVE) for agent in (*PRIMARY, "networks_4", "cloning")]


def cases_of(file: str) -> dict[tuple, list[dict]]:
    """The rows of each (stage, agent, game, log). 5X has the kept policies of 1X that are on its grid too."""
    found = defaultdict(list)
    for row in read(f"committee/{file}.csv"):
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


def row(*words: str, values: dict[tuple, float]) -> list:
    """The mean over all cases, and its interval; the cases of a pair (game, log) stay together."""
    groups = defaultdict(list)
    for (_, game, log), value in values.items():
        groups[game, log].append(value)
    sums, counts = (np.array([of(group) for group in groups.values()]) for of in (sum, len))
    draws = np.random.default_rng(0).integers(len(groups), size=(DRAWS, len(groups)))
    bounds = np.quantile(sums[draws].sum(axis=1) / counts[draws].sum(axis=1), (0.025, 0.975))
    return [*words, len(values), *(f"{each:.6f}" for each in (sums.sum() / counts.sum(), *bounds))]


def of_ways(stage: str, agents: tuple[str, ...], cases: dict[tuple, dict]) -> Iterator[list]:
    """Every way to ship a policy that all cases of these agents have."""
    ratios = {
        key: {way: score / each[ORACLE] for way, score in each.items()}
        for key, each in cases.items()
        if key[0] in agents and each[ORACLE]
    }
    every, who = list(ratios.values()), ", ".join(agents)
    for way in [way for way in every[0] if all(way in each for each in every)] if every else []:
        words = stage, who, "", way
        yield row(*words, "ratio", values={key: each[way] for key, each in ratios.items()})
        yield [*words, "median ratio", len(every), f"{np.median([each[way] for each in every]):.6f}", "", ""]
        below = sum(each[way] < each[LAST] for each in every)
        yield [*words, f"cases below {LAST}", len(every), below, "", ""]
        for other in (LAST, FIVE):
            less = {key: each[other] - each[way] for key, each in ratios.items()}
            yield row(*words, f"regret minus that of {other}", values=less)
    for game in sorted({game for _, game, _ in ratios}) if agents == PRIMARY else []:
        for name, inside in ((game, True), (f"without {game}", False)):
            less = {
                key: each[LAST] - each[FIVE] for key, each in ratios.items() if (key[1] == game) == inside
            }
            yield row(stage, who, name, FIVE, f"regret minus that of {LAST}", values=less)


def at_play(stage: str, cases: dict[tuple, dict], players: dict[tuple, str]) -> Iterator[list]:
    """Uses of several networks beside four DQNs at play."""
    for agent, way in AT_PLAY:
        units = {}  # one agent's and four DQNs' scores
        for key, each in cases.items():
            other = ("dqn", *key[1:])
            dqn = cases.get(other, {})
            if key[0] == agent and way in each and dqn.get(ORACLE) and players[key] == players[other]:
                units[key] = each[way] / dqn[ORACLE], dqn[FOUR] / dqn[ORACLE]
        if units:
            words = stage, agent, "", way
            yield row(
                *words,
                "score in picks of DQN's oracle",
                values={key: mine for key, (mine, _) in units.items()},
            )
            yield row(
                *words, "four DQNs on these logs", values={key: four for key, (_, four) in units.items()}
            )
            less = {key: mine - four for key, (mine, four) in units.items()}
            yield row(*words, "score minus that of four DQNs", values=less)


def points(stage: str, cases: dict[tuple, dict]) -> Iterator[list]:
    """The means over the logs of each game, in points."""
    for agent, game in dict.fromkeys((agent, game) for agent, game, _ in cases):
        some = [each for key, each in cases.items() if key[:2] == (agent, game)]
        for way in (LAST, FIVE, ORACLE):
            mean = np.mean([each[way] for each in some])
            yield [stage, agent, game, way, "points", len(some), f"{mean:.6f}", "", ""]


def summary() -> Iterator[list]:
    """Of the third machine: the primary agents together, and the uses of several networks."""
    found = cases_of("again")
    for stage in ("1X", "5X", "long"):
        cases = {
            key[1:]: scores([r for r in some if r["kind"] != "estimate"])
            for key, some in found.items()
            if key[0] == stage
        }
        yield from of_ways(stage, PRIMARY, cases)
        yield from at_play(stage, cases, dict.fromkeys(cases, ""))
        yield from points(stage, cases)


def lines() -> Iterator[list]:
    found = cases_of("evaluations")
    for stage in ("1X", "5X", "long"):
        rows = {key[1:]: some for key, some in found.items() if key[0] == stage}
        cases = {key: scores([r for r in some if r["kind"] != "estimate"]) for key, some in rows.items()}
        agents = list(dict.fromkeys(agent for agent, *_ in cases))
        for some in [PRIMARY, *((agent,) for agent in agents)]:
            yield from of_ways(stage, some, cases)
        yield from at_play(stage, cases, {key: some[0].get("players") for key, some in rows.items()})
        yield from points(stage, cases)
        for agent in agents:
            mine = [r for key, some in rows.items() if key[0] == agent for r in some]
            large = [r["first"] > 2 * r["second"] for r in mine if r["kind"] == "estimate"]
            if large:
                words = stage, agent, "", "", "seeds with values above twice the log's largest return"
                yield [*words, len(large), sum(large), "", ""]


def others() -> Iterator[list]:
    """Of the fourth machine: other agents at 1X, and long logs of every game."""
    found = cases_of("others")
    for stage, groups in (
        ("1X", [("qr_dqn",), ("cql",), ("discrete_iql",)]),
        ("long", [PRIMARY, ("cloning",)]),
    ):
        cases = {
            key[1:]: scores([r for r in some if r["kind"] != "estimate"])
            for key, some in found.items()
            if key[0] == stage
        }
        for agents in groups:
            yield from of_ways(stage, agents, cases)
        yield from points(stage, cases)


VALUES = ("dqn", "rem", "qr_dqn", "c51")  # agents whose target is a maximum: the primary measure on vectors


def on_vectors() -> Iterator[list]:
    """The committee of five beside its members on small problems; 0 is random play, 1 the best policy."""
    logs = defaultdict(dict)
    for each in read("committee/vectors.csv"):
        logs[each["agent"], each["problem"], each["kind"], each["log"]][each["who"]] = float(each["score"])
    every = [(agent,) for agent in dict.fromkeys(key[0] for key in logs)]
    planned, more = ("1", "2"), ("3", "4", "5")
    for which, some in (("planned", planned), ("more", more), ("all", planned + more)):
        for agents in (VALUES, *(every if which == "all" else ())):
            for kind in ("", *(("learner", "half random", "tenth random") if which == "all" else ())):
                cases = {
                    (agent, problem + kind_of, log): who
                    for (agent, problem, kind_of, log), who in logs.items()
                    if agent in agents and kind in ("", kind_of) and log in some
                }
                members = {key: [who[str(seed)] for seed in range(TEAM)] for key, who in cases.items()}
                means = {key: float(np.mean(each)) for key, each in members.items()}
                five = {key: who["committee"] for key, who in cases.items()}
                measures = {
                    "mean of the seeds": means,
                    "worst seed": {key: min(each) for key, each in members.items()},
                    "committee of three": {key: who["three"] for key, who in cases.items()},
                    "committee of five": five,
                    "five minus the mean of the seeds": {key: five[key] - means[key] for key in five},
                }
                words = which, ", ".join(agents), kind
                for measure, values in measures.items():
                    yield row(*words, measure, values=values)
                below = sum(five[key] < means[key] - 0.05 for key in five)
                yield [*words, "cases of five more than 0.05 below the mean", len(five), below, "", ""]
                low = sum(value < 0.8 for value in five.values())
                yield [*words, "cases of five below 0.8", len(five), low, "", ""]


TABLES = {
    "committee.csv": lambda: [HEADS, *lines()],
    "repeated.csv": lambda: [HEADS, *summary()],
    "other-agents.csv": lambda: [HEADS, *others()],
    "on-vectors.csv": lambda: [["logs", "agents", "kind", *HEADS[4:]], *on_vectors()],
}
