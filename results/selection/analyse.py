"""What each rule loses against the best kept policy, from the policies' scores and their fresh episodes.

Regret is the share that the choice loses of
what the best policy has above random play; the truth is the mean of 500 fresh episodes. A choice is made
within a run (25 policies of one agent and log) or among all agents on a log (100 policies). Bounds are 95%
bootstrap intervals over logs, drawn game by game, with the same logs for all rules and agents: so a
difference is paired.
"""

import math

import numpy as np
from matplotlib.figure import Figure
from results.library.scores import RESULTS, read

AGENTS = ("REM", "QR-DQN", "DQN (Adam)", "CQL")
ALL = "all agents"
EVERY_GAME = "five games"
LESS_IS_BETTER = ("sbv", "bvft", "drift")  # by the size of the score
RULES = ("cautious", "supported", "fqe", "support", "sbv", "bvft", "drift")
LAST, ANY, HALVED = "last", "a random one", "cautious, then 20 episodes"
ANY_HALVED = "random four, then 20 episodes"
GAMES_STEP, SEEDS_STEP = "same step, other games", "same step, other logs"
PLAYED = {f"best of {count} played": count for count in (3, 5, 25)}
NO_PLAY = (*RULES, LAST, ANY, GAMES_STEP)
WITH_PLAY = (SEEDS_STEP, *PLAYED, ANY_HALVED, HALVED)
REPEATS, DRAWS, SEED = 200, 20_000, 12345


def table():
    """{(game, agent): column: (seeds, steps)}, and the return of random play in each game."""
    random = {row["game"]: float(row["random"]) for row in read("selection/normaliser.csv")}
    rows = read("selection/policies.csv")
    returns = np.load(RESULTS / "selection/evaluations.npz")["returns"]
    found = {}
    for number, row in enumerate(rows):
        mine = found.setdefault((row["game"], row["agent"]), {}).setdefault(int(row["seed"]), [])
        mine.append((int(row["step"]), number))
    columns = [name for name in rows[0] if name not in ("game", "agent", "seed")]
    out = {}
    for key, seeds in found.items():
        order = np.array([[number for _, number in sorted(seeds[seed])] for seed in sorted(seeds)])
        values = {
            name: np.array([[float(rows[n][name] or "nan") for n in line] for line in order])
            for name in columns
        }
        out[key] = {**values, "returns": returns[order].astype(float)}
    return out, random


def wanted(rule, scores):
    return -np.abs(scores[rule]) if rule in LESS_IS_BETTER else scores[rule]


def ranking(rule, scores):
    """The places of the policies, the best first; of equal scores the one with more support."""
    return np.lexsort((-scores["support"], -wanted(rule, scores)))


def ranks(values):
    return np.array([(values < each).sum() + (values == each).sum() / 2 for each in values])


def correlation(one, other):
    """Spearman's; NaN if either is constant."""
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return np.nan
    return np.corrcoef(ranks(one), ranks(other))[0, 1]


def regret(truth, picks, random):
    best = truth.max()
    return (best - truth[picks].max()) / (best - random)


def halved_regret(order, scores, random):
    """The mean regret of the ranking after 20 real episodes, played as `optimist select --episodes 20` played
    them: two by each of the first four policies, then five by each of the better two. Without an `order` the
    four are random."""
    lost, generator = [], np.random.default_rng(SEED)
    for _ in range(REPEATS):
        some = generator.choice(len(scores["truth"]), 4, replace=False) if order is None else order[:4]
        head, seen = list(some), {place: np.empty(0) for place in some}
        for field, episodes in ((4, 2), (2, 5)):
            for place in head[:field]:
                drawn = generator.choice(scores["returns"][place], episodes, replace=False)
                seen[place] = np.append(seen[place], drawn)
            head[:field] = sorted(head[:field], key=lambda place: -seen[place].mean())
        lost.append(regret(scores["truth"], head[:1], random))
    return float(np.mean(lost))


def best_of_three(regrets):
    """The mean of the smallest of three different ones, over all triples."""
    worst_first = np.sort(regrets)[::-1]
    worse = np.arange(len(regrets))  # triples whose best is number i: two of the i worse ones
    return float((worst_first * worse * (worse - 1) / 2).sum() / math.comb(len(regrets), 3))


def one_field(scores, random):
    """{rule: (regret at 1, regret at 3, rank correlation)} among some policies of a log."""
    truth, found = scores["truth"], {}
    for rule in RULES:
        if np.isfinite(scores[rule]).all():
            order = ranking(rule, scores)
            first, three = regret(truth, order[:1], random), regret(truth, order[:3], random)
            found[rule] = first, three, correlation(wanted(rule, scores), truth)
    each = np.array([regret(truth, [place], random) for place in range(len(truth))])
    found[ANY] = float(each.mean()), best_of_three(each), np.nan
    found[ANY_HALVED] = halved_regret(None, scores, random), np.nan, np.nan
    if "cautious" in found:
        found[HALVED] = halved_regret(ranking("cautious", scores), scores, random), np.nan, np.nan
    return found


def fields():
    """{(game, agent, seed): {rule: (regret at 1, regret at 3, rank correlation)}}, with ALL as an agent."""
    runs, random = table()
    found = {}
    lost = {  # the regret of every step of every run, (seeds, steps)
        key: (each["truth"].max(1, keepdims=True) - each["truth"])
        / (each["truth"].max(1, keepdims=True) - random[key[0]])
        for key, each in runs.items()
    }
    for (game, agent), run in runs.items():
        elsewhere = np.mean([lost[key].mean(0) for key in runs if key[0] != game], axis=0).argmin()
        for seed in range(len(run["truth"])):
            mine = {name: column[seed] for name, column in run.items()}
            rules = one_field(mine, random[game])
            truth, nan = mine["truth"], np.nan
            rules[LAST] = regret(truth, [-1], random[game]), nan, nan
            rules[GAMES_STEP] = regret(truth, [elsewhere], random[game]), nan, nan
            others = np.delete(run["truth"], seed, 0).mean(0).argmax()
            rules[SEEDS_STEP] = regret(truth, [others], random[game]), nan, nan
            for name, count in PLAYED.items():
                spaced = np.linspace(0, len(truth) - 1, count + 1).round()[1:].astype(int)
                spaced = np.arange(len(truth)) if count == len(truth) else spaced
                best = spaced[mine["evaluation"][spaced].argmax()]
                rules[name] = regret(truth, [best], random[game]), nan, nan
            found[game, agent, seed] = rules
    for game in dict.fromkeys(game for game, _ in runs):
        for seed in range(len(run["truth"])):
            together = [runs[game, agent] for agent in AGENTS]
            mine = {name: np.concatenate([each[name][seed] for each in together]) for name in together[0]}
            found[game, ALL, seed] = one_field(mine, random[game])
    return found


def gathered(found, rule, agents, games, measure):
    """(games, agents, seeds) of one measure: 0 is regret at 1, 1 regret at 3, 2 rank correlation."""
    seeds = sorted({seed for *_, seed in found})
    return np.array(
        [[[found[g, a, s].get(rule, (np.nan,) * 3)[measure] for s in seeds] for a in agents] for g in games]
    )


def drawn_means(values):
    """The mean, and its bootstrap draws over the logs of each game; (games, agents, seeds)."""
    games, _, seeds = values.shape
    generator = np.random.default_rng(SEED)
    chosen = generator.integers(seeds, size=(DRAWS, games, seeds))
    weights = (chosen[..., None] == np.arange(seeds)).sum(
        2
    )  # how often each log was drawn, (draws, games, seeds)
    known = np.isfinite(values)
    totals = np.einsum("dgs,gas->d", weights, np.where(known, values, 0))
    return np.nanmean(values), totals / np.einsum("dgs,gas->d", weights, known.astype(float))


def interval(values):
    mean, draws = drawn_means(values)
    return (mean, *np.quantile(draws, [0.025, 0.975]))


HEADS = ("games", "agents", "rule", "measure", "mean", "low", "high")
MEASURES = ("regret at 1", "regret at 3", "rank correlation")


def rows(found):
    """(where, agent, rule, measure, mean, low, high): for all games and for each, all agents and each."""
    every = list(dict.fromkeys(game for game, *_ in found))
    games = {EVERY_GAME: every, **{game.split("/")[1]: [game] for game in every}}
    groups = {"each agent": AGENTS, **{agent: (agent,) for agent in AGENTS}, ALL: (ALL,)}
    for where, some in games.items():
        for who, agents in groups.items():
            for rule in (*NO_PLAY, *WITH_PLAY):
                for measure, name in enumerate(MEASURES):
                    values = gathered(found, rule, agents, some, measure)
                    if np.isfinite(values).any():
                        yield where, who, rule, name, *interval(values)
    for who, agents in groups.items():
        for rule in (*NO_PLAY, *WITH_PLAY):
            for other in ("cautious", LAST, ANY, ANY_HALVED):
                mine, theirs = (gathered(found, each, agents, every, 0) for each in (rule, other))
                if rule != other and np.isfinite(mine - theirs).all():
                    yield EVERY_GAME, who, f"{rule} minus {other}", MEASURES[0], *interval(mine - theirs)


def lines():
    for *words, mean, low, high in rows(fields()):
        yield [*words, *(f"{value:.4f}" for value in (mean, low, high))]


def draw():
    known = {row[:4]: row[4:] for row in rows(fields())}
    names = [rule for rule in (*NO_PLAY, *WITH_PLAY) if rule != ANY][::-1]
    figure = Figure(figsize=(13, 4.6), layout="tight")
    axes = figure.subplots(1, 5, sharex=True, sharey=True)
    for axis, who in zip(axes, (*AGENTS, ALL), strict=True):
        for place, rule in enumerate(names):
            if (EVERY_GAME, who, rule, MEASURES[0]) in known:
                mean, low, high = known[EVERY_GAME, who, rule, MEASURES[0]]
                color = "C0" if rule in RULES else "C7" if rule in NO_PLAY else "C2"
                axis.barh(place, mean, color=color, alpha=0.85)
                axis.plot([low, high], [place, place], color="black", linewidth=1)
        axis.axvline(known[EVERY_GAME, who, ANY, MEASURES[0]][0], color="C3", linestyle=":", linewidth=1.2)
        axis.axvline(0.15, color="black", linestyle="--", linewidth=0.8)
        axis.set_title("among all agents" if who == ALL else who, fontsize=10)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axis.tick_params(labelsize=8)
    axes[0].set_yticks(range(len(names)), names)
    figure.supxlabel(
        "regret of the choice, five games, five logs each; dashed: the goal; dotted: a random policy;\n"
        "blue: by the log, grey: by neither, green: by playing in the game",
        fontsize=9,
    )
    return figure


# Does FQE choose too early because it discounts? Three sums of the same 500 episodes of Seaquest are
# the truth in turn: the `score`, the sum of rewards as training `clipped` them, and their `discounted` sum,
# which FQE estimates. If the discount were the reason, the best policies would be as early as FQE's choices
# once the truth is discounted. `gain`: the place of a choice between the mean of a run's policies (0) and
# the best (1).
GAME = "minatar_jax/seaquest"
TRUTHS = {"score": "truth", "clipped": "clipped", "discounted": "discounted"}  # and their columns
EARLY_RULES = ("fqe", "cautious")
EARLY = 100_000  # updates
DISCOUNT_HEADS = ("truth", "agents", "rule", "measure", "mean", "low", "high")


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
    for rule in EARLY_RULES:
        first = ranking(rule, run)[0]
        found[rule, "step"], found[rule, "early"] = steps[first], float(steps[first] <= EARLY)
        found[rule, "gain"] = gain[first]
        found[rule, "rank correlation"] = correlation(run[rule], values)
        found[rule, "estimate minus truth"] = (run[rule] - values).mean()
    return found


def discount_rows():
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
            if key[0] in EARLY_RULES and (best := ("the best", key[1])) in each["score"][AGENTS[0]][0]:
                for truth in TRUTHS:
                    apart = gathered(truth, agents, key) - gathered(truth, agents, best)
                    yield truth, who, f"{key[0]} minus the best", key[1], *interval(apart)


def discount_lines():
    for *words, mean, low, high in discount_rows():
        yield [*words, *(f"{value:.4f}" for value in (mean, low, high))]


def follows():
    """What FQE follows within a run, by the policies of the study: mean rank correlations over the runs."""
    runs, _ = table()
    pairs = [("fqe", "truth"), ("fqe", "support"), ("truth", "support")]
    pairs += [("fqe", "step"), ("truth", "step"), ("support", "step")]
    found = {pair: [] for pair in pairs}
    for run in runs.values():
        for seed in range(len(run["truth"])) if np.isfinite(run["fqe"]).all() else ():
            for one, other in pairs:
                found[one, other].append(correlation(run[one][seed], run[other][seed]))
    for (one, other), values in found.items():
        draws = np.random.default_rng(0).choice(values, (20_000, len(values))).mean(axis=1)
        low, high = np.quantile(draws, [0.025, 0.975])
        yield [one, other, len(values), *(f"{number:.4f}" for number in (np.mean(values), low, high))]


TABLES = {
    "regret.csv": lambda: [HEADS, *lines()],
    "discount.csv": lambda: [DISCOUNT_HEADS, *discount_lines()],
    "correlations.csv": lambda: [("one", "other", "runs", "mean", "low", "high"), *follows()],
}
FIGURES = {"regret.png": draw}
