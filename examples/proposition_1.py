"""Proposition 1 and Lemma 1 of Agarwal et al. 2020 as an experiment: python proposition_1.py [STEPS] [FOLDER]

The MDP is small and deterministic, the network can represent its Q*, and every minibatch has every
transition. Under mixtures of full support the heads of REM must become one function, that function must be
Q*, and the loss must no longer depend on the mixture. Heads that are trained separately agree only as far as
each has reached Q*. The published figures are of 100,000 steps.
"""

import csv
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from optimist.agents import TableAgent
from optimist.agents.ensemble_dqn import EnsembleDqn
from optimist.agents.rem import Rem
from optimist.data.transition import Spec, Transition
from optimist.equations.mixtures import Mixture
from optimist.equations.optimizers import Adam
from optimist.training.learner import Learner, advance

STATES, GAMMA = 6, 0.9
RUNS, READINGS = 5, 100  # of each ensemble, which begin with other heads; and of each run
AGREED = 1e-3  # heads that disagree by less are one function; they begin with about 0.3
SPEC = Spec((STATES,), "float32", actions=2)


class Reading(NamedTuple):
    """Measurements of the heads of one run at one step."""

    agent: str
    heads: int
    seed: int
    step: int
    disagreement: float  # standard deviation over heads, averaged over states and actions
    distance: float  # largest error of the heads' mean
    head_distance: float  # largest error of a single head
    spread: float  # standard deviation of the loss over random mixtures


@cache
def ring() -> Transition:
    """Every transition of a ring of states: one action moves on, one stays; rewards are random and fixed."""
    state, action = np.divmod(np.arange(2 * STATES), 2)
    reward = np.random.default_rng(0).normal(size=2 * STATES).astype(np.float32)
    one_hot = np.eye(STATES, dtype=np.float32)
    return Transition(
        observation=one_hot[state],
        action=action.astype(np.int32),
        reward=reward,
        discount=np.full(2 * STATES, GAMMA, np.float32),
        next_observation=one_hot[(state + 1 - action) % STATES],
    )


@cache
def best_values() -> np.ndarray:
    """Q* of the ring by value iteration, (S, A)."""
    mdp = ring()
    following, values = mdp.next_observation.argmax(axis=1), np.zeros((STATES, 2))
    for _ in range(1000):
        values = (mdp.reward + GAMMA * values[following].max(axis=1)).reshape(STATES, 2)
    return values


def ensembles() -> dict[str, TableAgent]:
    """REM with several mixtures and numbers of heads, and Ensemble-DQN."""
    uniform = {f"REM, uniform, K={k}": Rem(columns=k, **learning(k)) for k in (2, 8, 32, 200)}
    sparse = {"Dirichlet(0.1)": Mixture("dirichlet", 0.1), "one-hot": Mixture("one_hot")}
    return {
        **uniform,
        **{f"REM, {n}, K=8": Rem(columns=8, mixture=m, **learning(1)) for n, m in sparse.items()},
        "REM, mean, K=8": Rem(columns=8, mixture=Mixture("mean"), **learning(8)),
        "Ensemble-DQN, K=8": EnsembleDqn(columns=8, **learning(8)),
    }


def learning(sharing: int) -> dict[str, Any]:
    """Adam with an epsilon as large as a head's gradients, so that it is plain gradient descent near the end.

    At the optimum the loss of every mixture is zero and gradients have no noise; Adam's usual steps of
    constant size would add noise. A head's gradient is inversely proportional to the number of heads that
    share it."""
    return {"optimizer": Adam(0.02, epsilon=0.008 / sharing), "target_period": 50, "network": "linear"}


def whole_mdp(resident: Transition, item) -> Transition:
    return resident


def readings_of(agents: Mapping[str, TableAgent], steps: int, count: int, runs: int) -> Iterator[Reading]:
    """Train every ensemble and read its heads as it goes."""
    mdp = jax.tree.map(jnp.asarray, ring())
    every, seeds = max(1, steps // count), tuple(range(runs))
    for label, agent in agents.items():
        learner = Learner(agent, SPEC)
        state = learner.init(seeds)
        for step in range(0, steps + 1, every):
            heads = heads_of(agent, state.params)
            yield from (reading(label, seed, step, each) for seed, each in zip(seeds, heads, strict=True))
            state, _ = advance(learner, state, whole_mdp, mdp, jnp.zeros((every, runs)))


def heads_of(agent: TableAgent, params: dict) -> np.ndarray:
    """The value of every state and action by every head of every run, (runs, S, A, K)."""
    table = agent.table(SPEC)
    columns = jax.vmap(lambda q: jax.vmap(lambda state: table(q, state).columns())(jnp.eye(STATES)))
    return np.asarray(columns(params["q"]), np.float64)


def reading(label: str, seed: int, step: int, heads: np.ndarray) -> Reading:
    away = np.abs(heads - best_values()[..., None])
    mean_away = np.abs(heads.mean(axis=-1) - best_values())
    mixtures = np.random.default_rng(1).dirichlet(np.ones(heads.shape[-1]), size=100)
    losses = [loss(heads, alpha, ring()) for alpha in mixtures]
    figures = (heads.std(axis=-1).mean(), mean_away.max(), away.max(), np.std(losses))
    return Reading(label, heads.shape[-1], seed, step, *map(float, figures))


def loss(heads: np.ndarray, alpha: np.ndarray, mdp: Transition) -> float:
    """L(alpha, theta) of the appendix: the mean squared Bellman error of one mixture of the heads."""
    mixed = heads @ alpha
    target = mdp.reward + GAMMA * mixed[mdp.next_observation.argmax(axis=1)].max(axis=1)
    return float(np.mean((target - mixed.reshape(-1)) ** 2))


def concentration(heads: int, draws: int = 2000) -> float:
    """The standard deviation of one uniform mixture weight, in units of its mean 1/K."""
    weights = np.random.default_rng(2).random((draws, heads))
    return float((weights / weights.sum(axis=1, keepdims=True))[:, 0].std() * heads)


def worst(readings: list[Reading]) -> list[Reading]:
    """Of each ensemble and step the largest figure of its runs, as a reading; its seed is that of no run."""
    groups: dict[tuple, list[tuple]] = {}
    for each in readings:
        groups.setdefault((each.agent, each.heads, -1, each.step), []).append(each[4:])
    return [Reading(*place, *np.max(some, axis=0).tolist()) for place, some in groups.items()]


def agreed_at(curve: list[Reading]) -> int | None:
    """The step from which the heads of every run disagree by little; None if they do at the end."""
    apart = [each.step for each in curve if each.disagreement >= AGREED]
    return next((each.step for each in curve if each.step > max(apart, default=-1)), None)


def print_table(readings: list[Reading]) -> None:
    """The last reading of every ensemble, the largest of its runs."""
    heads = ("heads disagree by", "their mean is off by", "a head is off by", "loss varies by", "agree at")
    print(" " * 22, *(f"{head:>20}" for head in heads))
    for label, curve in groupby(worst(readings), key=lambda each: each.agent):
        each = list(curve)
        step = agreed_at(each)
        print(f"{label:22}", *(f"{value:20.1e}" for value in each[-1][4:]), f"{step or 'never':>20}")


def drawn(readings: list[Reading]) -> Figure:
    """How far heads disagree, how far they are from Q*, and how mixtures concentrate."""
    figure = Figure(figsize=(12.5, 4.8), layout="constrained")
    agree, truth, narrow = figure.subplots(1, 3)
    for label, curve in groupby(readings, key=lambda each: each.agent):
        mine = [each for each in curve if each.step]
        steps = [each.step for each in mine]
        agree.plot(steps, [each.disagreement for each in mine], label=label)
        truth.plot(steps, [each.distance for each in mine])
    for axes, title in ((agree, "disagreement of the heads"), (truth, "largest error of their mean")):
        axes.set(yscale="log", title=title, xlabel="gradient updates")
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    widths = {heads: concentration(heads) for heads in (2, 4, 8, 16, 32, 64, 128, 200)}
    narrow.plot(list(widths), list(widths.values()), marker="o")
    narrow.axhline(1 / 3**0.5, color="grey", linestyle=":")
    narrow.set(xscale="log", ylim=(0, 0.8), xlabel="heads K", title="deviation of a uniform weight, x K")
    return figure


def main(steps: int = 10_000, folder: str = "proposition-1") -> None:
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    readings = list(readings_of(ensembles(), steps, READINGS, RUNS))
    with (out / "readings.csv").open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([Reading._fields, *readings])
    drawn(worst(readings)).savefig(out / "heads.png", dpi=144)
    print_table(readings)
    print(f"wrote {out / 'heads.png'} and {out / 'readings.csv'}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
