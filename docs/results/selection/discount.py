"""Does FQE choose too early because it discounts? The fresh episodes of Seaquest, summed as FQE sums them.

    python docs/results/selection/discount.py > docs/results/selection/discount.csv

Three sums of the same 500 episodes are the truth in turn: the `score`, the sum of rewards as training
`clipped` them, and their `discounted` sum, which FQE estimates. For each: how late the best policy of a run
is, how late a rule's first choice is, the rule's rank correlation, and the choice's gain: its place between
the mean of a run's policies (0) and the best of them (1). If the discount were the reason, the best policies
would be as early as FQE's choices once the truth is discounted, and the gain would be near 1. Bounds are 95%
bootstrap intervals over logs, drawn with the same logs for all agents.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call, print_table
from regret import AGENTS, correlation, interval, ranking, table

GAME = "minatar_jax/seaquest"
TRUTHS = {"score": "truth", "clipped": "clipped", "discounted": "discounted"}  # and their columns
RULES = ("fqe", "cautious")
EARLY = 100_000  # updates
HEADS = ("truth", "agents", "rule", "measure", "mean", "low", "high")


def runs_of(agent, runs):
    """The columns of each run of an agent, one log after the other."""
    mine = runs[GAME, agent]
    return [{name: column[seed] for name, column in mine.items()} for seed in range(len(mine["truth"]))]


def measures(run, truth):
    """{(rule or "the best", measure): value} of one run."""
    values, steps = run[TRUTHS[truth]], run["step"]
    best = values.argmax()
    found = {("the best", "step"): steps[best], ("the best", "early"): float(steps[best] <= EARLY)}
    gain = (values - values.mean()) / (values[best] - values.mean())
    found["last", "gain"] = gain[-1]
    for rule in RULES:
        first = ranking(rule, run)[0]
        found[rule, "step"], found[rule, "early"] = steps[first], float(steps[first] <= EARLY)
        found[rule, "gain"] = gain[first]
        found[rule, "rank correlation"] = correlation(run[rule], values)
        found[rule, "estimate minus truth"] = (run[rule] - values).mean()
    return found


def rows():
    """(truth, agents, rule, measure, mean, low, high)."""
    runs, _ = table()
    each = {
        truth: {agent: [measures(run, truth) for run in runs_of(agent, runs)] for agent in AGENTS}
        for truth in TRUTHS
    }

    def gathered(truth, agents, key):
        return np.array([[[one[key] for one in each[truth][agent]] for agent in agents]])

    for who, agents in {"each agent": AGENTS, **{agent: (agent,) for agent in AGENTS}}.items():
        for key in each["score"][AGENTS[0]][0]:
            for truth in TRUTHS:
                yield truth, who, *key, *interval(gathered(truth, agents, key))
            apart = gathered("discounted", agents, key) - gathered("score", agents, key)
            yield "discounted minus score", who, *key, *interval(apart)
            if key[0] in RULES and (best := ("the best", key[1])) in each["score"][AGENTS[0]][0]:
                for truth in TRUTHS:
                    apart = gathered(truth, agents, key) - gathered(truth, agents, best)
                    yield truth, who, f"{key[0]} minus the best", key[1], *interval(apart)


def lines():
    for *words, mean, low, high in rows():
        yield [*words, *(f"{value:.4f}" for value in (mean, low, high))]


if __name__ == "__main__":
    call(__doc__, lambda: print_table(HEADS, lines()))
