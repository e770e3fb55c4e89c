"""Does FQE choose too early because it discounts? The fresh episodes of Seaquest, summed as FQE sums them.

    python docs/results/selection/discount.py > docs/results/selection/discount.csv

Three sums of the same 500 episodes are the truth in turn: the `score`, the sum of rewards as training
`clipped` them, and their `discounted` sum, which FQE estimates. For each: how late the best policy of a run
is, how late a rule's first choice is, the rule's regret and its rank correlation. If the discount were the
reason, the best policies would be as early as FQE's choices once the truth is discounted, and FQE's regret
would be small. Bounds are 95% bootstrap intervals over logs, drawn with the same logs for all agents.
"""

import csv
import sys
from pathlib import Path

import numpy as np
from regret import AGENTS, correlation, interval, ranking, table

HERE = Path(__file__).parent
GAME = "minatar_jax/seaquest"
TRUTHS = {"score": "truth", "clipped": "clipped", "discounted": "discounted"}  # and their columns
RULES = ("fqe", "cautious")
EARLY = 100_000  # updates


def runs_of(agent, runs):
    """The columns of each run of an agent, one log after the other."""
    mine = runs[GAME, agent]
    return [{name: column[seed] for name, column in mine.items()} for seed in range(len(mine["truth"]))]


def measures(run, truth, random):
    """{(rule or "the best", measure): value} of one run."""
    values, steps = run[TRUTHS[truth]], run["step"]
    best = values.argmax()
    found = {("the best", "step"): steps[best], ("the best", "early"): float(steps[best] <= EARLY)}
    lost = (values[best] - values) / (values[best] - random[truth])
    found["a random one", "regret at 1"] = lost.mean()
    for rule in RULES:
        first = ranking(rule, run)[0]
        found[rule, "step"], found[rule, "early"] = steps[first], float(steps[first] <= EARLY)
        found[rule, "regret at 1"] = lost[first]
        found[rule, "rank correlation"] = correlation(run[rule], values)
        found[rule, "estimate minus truth"] = (run[rule] - values).mean()
    return found


def rows():
    """(truth, agents, rule, measure, mean, low, high)."""
    runs, _ = table()
    with open(HERE / "random.csv") as file:
        (random,) = [row for row in csv.DictReader(file) if row["game"] == GAME]
    random = {truth: float(random[truth]) for truth in TRUTHS}
    for truth in TRUTHS:
        each = {agent: [measures(run, truth, random) for run in runs_of(agent, runs)] for agent in AGENTS}
        for who, agents in {"each agent": AGENTS, **{agent: (agent,) for agent in AGENTS}}.items():
            for key in each[AGENTS[0]][0]:
                values = np.array([[[one[key] for one in each[agent]] for agent in agents]])
                yield truth, who, *key, *interval(values)
    apart = [correlation(run["truth"], run["discounted"]) for agent in AGENTS for run in runs_of(agent, runs)]
    yield (
        "score",
        "each agent",
        "discounted",
        "rank correlation",
        np.mean(apart),
        np.min(apart),
        np.max(apart),
    )


if __name__ == "__main__":
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(("truth", "agents", "rule", "measure", "mean", "low", "high"))
    for *words, mean, low, high in rows():
        out.writerow((*words, *(f"{value:.4f}" for value in (mean, low, high))))
