"""Why does FQE choose too early? What it learns of single policies, update by update, and what it follows.

    optimist study run asymptotic --scale tiny
    python docs/results/selection/too_early.py studies/asymptotic-tiny/runs/minatar-breakout/all/dqn-adam
    python docs/results/selection/too_early.py > docs/results/selection/correlations.csv  # from policies.csv

The first command of Python writes too_early.csv: it plays the kept policies of STEPS of a run's first seed,
and fits FQE to them as `optimist select` does, with targets that move by RATES at each update (`optimist
select` has 0.01). A row has the estimate after so many updates, beside the mean discounted return of real
episodes: that is what FQE estimates at the start of an episode.
"""

import csv
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from command import call, print_table

HERE = Path(__file__).parent
EPISODES = 100
STEPS = (500, 2_000, 3_500, 4_500)
RATES = {0.1: 10_000, 0.01: 11_000}  # how far the targets move, and updates
EVERY = 1_000  # updates between two rows


def chosen_of(folder: Path):
    """The run, and the policies of STEPS of its first seed."""
    from optimist.choosing.candidates import candidates_of, read_sources

    (source,) = read_sources([folder])
    first = source.run.seeds[0]
    return source, [each for each in candidates_of([source]) if each.seed == first and each.step in STEPS]


def played(source, candidates) -> list[tuple[float, float, float]]:
    """Of each policy the mean return, the mean discounted return, and the standard error of the latter."""
    import jax
    import jax.numpy as jnp

    from optimist import envs
    from optimist.training.play.acting import Player

    gamma, row = float(source.training.get("gamma", 0.99)), source.run.seeds.index(candidates[0].seed)
    each = [jax.tree.map(lambda leaf: leaf[row], source.params(mine.step)) for mine in candidates]
    params = jax.tree.map(lambda *leaf: jnp.stack(leaf), *each)
    play = envs.make(source.run.playable(""), lanes=len(each) * EPISODES, seed=10_000)
    player, key = Player(source.run.learner, play.lanes, len(each)), jax.random.PRNGKey(10_000)
    frames, began, turn = play.reset(), np.ones(play.lanes, bool), 0
    over, plain, discounted = (np.zeros(play.lanes) for _ in range(3))
    while not over.all():
        actions = np.asarray(player(params, frames, began, 0.001, key, turn)).reshape(play.lanes)
        taken = play.step(actions)
        plain += np.where(over, 0, taken.reward)
        discounted += np.where(over, 0, gamma**turn * taken.reward)
        began = taken.terminal | taken.truncated
        over, frames, turn = np.maximum(over, began), taken.observation, turn + 1
    play.close()
    plain, discounted = (found.reshape(len(each), EPISODES) for found in (plain, discounted))
    errors = discounted.std(axis=1, ddof=1) / EPISODES**0.5
    return list(zip(plain.mean(axis=1), discounted.mean(axis=1), errors, strict=True))


def trace(folder: Path, write) -> None:
    """Write a row for each policy and every EVERY updates, as the fit goes on."""
    import jax

    from optimist.choosing import fitted_q, regression
    from optimist.choosing.analysis import Analysis
    from optimist.choosing.evidence import gather

    source, candidates = chosen_of(folder)
    truth, evidence, advance = played(source, candidates), gather([source], candidates), regression._advance
    estimators = Analysis(evidence, [source], candidates, 10_000)
    support = [float(held.mean()) for held in estimators.supported.held]  # clones the behaviour
    held, starts, returns = estimators._held_steps, evidence.starts(0), np.concatenate(evidence.returns)
    for rate, updates in RATES.items():
        regression.TARGET_RATE, done = rate, [0]
        advance.clear_cache()  # it was compiled with the rate before

        def values(problem, params, place) -> float:
            """The value of a policy at the starts of the held-out episodes."""
            mine = jax.tree.map(lambda leaf: leaf[0, place], params)
            asked = (problem.critic, float(returns.std()), mine, held, 0, estimators.held[place])
            return float(fitted_q.values_on_log(*asked)[0][starts, 0].mean())

        def traced(problem, fit, *more, rate=rate, done=done, values=values):
            """A chunk of updates of FQE."""
            fit, done[0] = advance(problem, fit, *more), done[0] + regression.CHUNK
            for place, candidate in enumerate(candidates if done[0] % EVERY == 0 else ()):
                plain, discounted, error = truth[place]
                known = (values(problem, fit.params, place), discounted, error, plain, support[place])
                write([candidate.step, rate, done[0], *(f"{each:.4f}" for each in (*known, returns.mean()))])
            return fit

        regression._advance, estimators._updates = traced, updates
        vars(estimators).pop("values", None)
        estimators.values  # noqa: B018 (fits FQE)


def lines():
    """What FQE follows within a run, by the policies of the study: mean rank correlations over the runs."""
    sys.path.insert(0, str(HERE))
    import regret

    runs, _ = regret.table()
    pairs = [("fqe", "truth"), ("fqe", "support"), ("truth", "support")]
    pairs += [("fqe", "step"), ("truth", "step"), ("support", "step")]
    found = {pair: [] for pair in pairs}
    for run in runs.values():
        for seed in range(len(run["truth"])) if np.isfinite(run["fqe"]).all() else ():
            for one, other in pairs:
                found[one, other].append(regret.correlation(run[one][seed], run[other][seed]))
    for (one, other), values in found.items():
        draws = np.random.default_rng(0).choice(values, (20_000, len(values))).mean(axis=1)
        low, high = np.quantile(draws, [0.025, 0.975])
        yield [one, other, len(values), *(f"{number:.4f}" for number in (np.mean(values), low, high))]


HEADS = ("one", "other", "runs", "mean", "low", "high")
TRACED = ("step", "rate", "updates", "fqe", "discounted", "error", "undiscounted", "support", "logged")


def write_traces(run: Path) -> None:
    with open(HERE / "too_early.csv", "w", buffering=1, newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(TRACED)
        trace(run, out.writerow)


if __name__ == "__main__":
    call(__doc__, lambda: print_table(HEADS, lines()), write_traces)
