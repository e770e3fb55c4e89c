"""Proposition 1 and Lemma 1 of Agarwal et al. 2020 as an experiment that takes a minute.

The MDP is small and deterministic, the network can represent its Q*, and every minibatch has every
transition. Under mixtures of full support the heads of REM must become one function, that function must be
Q*, and the loss must no longer depend on the mixture. Heads that are trained separately agree only as far as
each has reached Q*.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from optimist.agents._table_agent import TableAgent
from optimist.agents.ensemble_dqn import EnsembleDqn
from optimist.agents.rem import Rem
from optimist.data.disk.files import make_folder, write_whole
from optimist.data.transition import Spec, Transition
from optimist.equations.mixtures import Mixture
from optimist.equations.optimizers import Adam
from optimist.errors import UsageError
from optimist.studies.sheet import Cell, Sheet, as_csv
from optimist.training.learner import Learner, advance

STATES, GAMMA = 6, 0.9
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

    @property
    def figures(self) -> tuple[float, ...]:
        return self.disagreement, self.distance, self.head_distance, self.spread


@dataclass(frozen=True)
class Proposition:
    """How long each ensemble is trained and how often it is measured."""

    steps: Annotated[int, "gradient steps of each ensemble"] = 100_000
    readings: Annotated[int, "times at which the heads are compared"] = 100
    runs: Annotated[int, "runs of each ensemble, which begin with other heads"] = 5

    def __post_init__(self):
        if min(self.readings, self.runs) < 1 or self.steps < self.readings:
            raise UsageError(
                f"{self.steps} steps, {self.readings} readings, {self.runs} runs: give at least one of each, "
                "and at least as many steps as readings"
            )


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
    uniform = {f"REM, uniform, K={k}": Rem(columns=k, **_learning(k)) for k in (2, 8, 32, 200)}
    sparse = {"Dirichlet(0.1)": Mixture("dirichlet", 0.1), "one-hot": Mixture("one_hot")}
    return {
        **uniform,
        **{f"REM, {n}, K=8": Rem(columns=8, mixture=m, **_learning(1)) for n, m in sparse.items()},
        "REM, mean, K=8": Rem(columns=8, mixture=Mixture("mean"), **_learning(8)),
        "Ensemble-DQN, K=8": EnsembleDqn(columns=8, **_learning(8)),
    }


def _learning(sharing: int) -> dict[str, Any]:
    """Adam with an epsilon as large as a head's gradients, so that it is plain gradient descent near the end.

    At the optimum the loss of every mixture is zero and gradients have no noise; Adam's usual steps of
    constant size would add noise. A head's gradient is inversely proportional to the number of heads that
    share it."""
    return {"optimizer": Adam(0.02, epsilon=0.008 / sharing), "target_period": 50, "network": "linear"}


def whole_mdp(resident: Transition, item) -> Transition:
    return resident


def run(proposition: Proposition, agents: Mapping[str, TableAgent] | None = None) -> Iterator[Reading]:
    """Train every ensemble and read its heads as it goes."""
    mdp = jax.tree.map(jnp.asarray, ring())
    every, seeds = proposition.steps // proposition.readings, tuple(range(proposition.runs))
    for label, agent in (agents or ensembles()).items():
        learner = Learner(agent, SPEC)
        state = learner.init(seeds)
        for step in range(0, proposition.steps + 1, every):
            heads = _heads(agent, state.params)
            yield from (_reading(label, seed, step, each) for seed, each in zip(seeds, heads, strict=True))
            state, _ = advance(learner, state, whole_mdp, mdp, jnp.zeros((every, len(seeds))))


def _heads(agent: TableAgent, params: dict) -> np.ndarray:
    """The value of every state and action by every head of every run, (runs, S, A, K)."""
    table = agent.table(SPEC)
    columns = jax.vmap(lambda q: jax.vmap(lambda state: table(q, state).columns())(jnp.eye(STATES)))
    return np.asarray(columns(params["q"]), np.float64)


def _reading(label: str, seed: int, step: int, heads: np.ndarray) -> Reading:
    away = np.abs(heads - best_values()[..., None])
    mean_away = np.abs(heads.mean(axis=-1) - best_values())
    losses = [_loss(heads, alpha, ring()) for alpha in _random_mixtures(heads.shape[-1])]
    figures = (heads.std(axis=-1).mean(), mean_away.max(), away.max(), np.std(losses))
    return Reading(label, heads.shape[-1], seed, step, *map(float, figures))


def _random_mixtures(heads: int, count: int = 100) -> np.ndarray:
    return np.random.default_rng(1).dirichlet(np.ones(heads), size=count)


def _loss(heads: np.ndarray, alpha: np.ndarray, mdp: Transition) -> float:
    """L(alpha, theta) of the appendix: the mean squared Bellman error of one mixture of the heads."""
    mixed = heads @ alpha
    target = mdp.reward + GAMMA * mixed[mdp.next_observation.argmax(axis=1)].max(axis=1)
    return float(np.mean((target - mixed.reshape(-1)) ** 2))


def concentration(heads: int, draws: int = 2000) -> float:
    """The standard deviation of one uniform mixture weight, in units of its mean 1/K."""
    weights = np.random.default_rng(2).random((draws, heads))
    return float((weights / weights.sum(axis=1, keepdims=True))[:, 0].std() * heads)


def worst(readings: Iterable[Reading]) -> list[Reading]:
    """Of each ensemble and step the largest figure of its runs, as a reading; its seed is that of no run."""
    groups: dict[tuple, list[Reading]] = {}
    for each in readings:
        groups.setdefault((each.agent, each.heads, each.step), []).append(each)
    largest = {place: np.max([each.figures for each in some], axis=0) for place, some in groups.items()}
    return [
        Reading(agent, heads, -1, step, *found.tolist()) for (agent, heads, step), found in largest.items()
    ]


def sheet(readings: list[Reading]) -> Sheet:
    """The last reading of every ensemble."""
    heads = (
        "",
        "heads disagree by",
        "their mean is off by",
        "a head is off by",
        "loss varies by",
        "agree at",
    )
    rows = []
    for label, curve in groupby(worst(readings), key=lambda each: each.agent):
        each = list(curve)
        cells = [Cell(f"{value:.1e}", value) for value in each[-1].figures]
        apart = [reading.step for reading in each if reading.disagreement >= AGREED]
        at = next((reading.step for reading in each if reading.step > max(apart, default=-1)), None)
        rows.append([label, *cells, Cell("never" if at is None else f"{at:,}", at)])
    runs = len({reading.seed for reading in readings})
    notes = [
        f"the largest figure of {runs} runs; agree at: the step from which the heads of every run disagree "
        f"by less than {AGREED:g}"
    ]
    return Sheet("after the last step", heads, rows, notes)


def write_results(out: Path, readings: list[Reading]) -> list[Path]:
    """The readings as CSV and the figure as PNG."""
    from optimist.studies.report.figures import save_png
    from optimist.studies.report.paper_figures import head_agreement

    make_folder(out)
    write_whole(out / "readings.csv", as_csv(Sheet("", Reading._fields, readings)).encode())
    widths = {heads: concentration(heads) for heads in (2, 4, 8, 16, 32, 64, 128, 200)}
    save_png(head_agreement(worst(readings), widths), out / "heads.png")
    return [out / "heads.png", out / "readings.csv"]
