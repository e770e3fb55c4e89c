"""Proposition 1 and Lemma 1 of Agarwal et al. 2020 as an experiment that takes seconds.

The MDP is small and deterministic, the network can represent its Q*, and every minibatch has every
transition. Under mixtures of full support the heads of REM must become one function, that function must be
Q*, and the loss must no longer depend on the mixture. Heads that are trained separately agree only as far as
each has reached Q*.
"""

from collections.abc import Iterator
from dataclasses import dataclass
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
from optimist.studies.sheet import Cell, Sheet, as_csv
from optimist.training.learner import Learner, advance

STATES, GAMMA = 6, 0.9
SPEC = Spec((STATES,), "float32", actions=2)


class Reading(NamedTuple):
    """Measurements of the heads at one step."""

    agent: str
    heads: int
    step: int
    disagreement: float  # standard deviation over heads, averaged over states and actions
    distance: float  # largest error of the heads' mean
    head_distance: float  # largest error of a single head
    spread: float  # standard deviation of the loss over random mixtures


@dataclass(frozen=True)
class Proposition:
    """How long each ensemble is trained and how often it is measured."""

    steps: Annotated[int, "gradient steps of each ensemble"] = 20_000
    readings: Annotated[int, "times at which the heads are compared"] = 40


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


def best_values(mdp: Transition) -> np.ndarray:
    """Q* by value iteration, (S, A)."""
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


def run(proposition: Proposition) -> Iterator[Reading]:
    """Train every ensemble and read its heads as it goes."""
    mdp = jax.tree.map(jnp.asarray, ring())
    every = proposition.steps // proposition.readings
    for label, agent in ensembles().items():
        learner = Learner(agent, SPEC)
        state = learner.init((0,))
        for step in range(0, proposition.steps + 1, every):
            yield _reading(label, agent, step, jax.tree.map(lambda leaf: leaf[0], state.params))
            state, _ = advance(learner, state, whole_mdp, mdp, jnp.zeros((every, 1)))


def _reading(label: str, agent: TableAgent, step: int, params: dict) -> Reading:
    mdp = ring()
    table = agent.table(SPEC)
    heads = np.asarray(jax.vmap(lambda s: table(params["q"], s).columns())(jnp.eye(STATES)), np.float64)
    away = np.abs(heads - best_values(mdp)[..., None])
    mean_away = np.abs(heads.mean(axis=-1) - best_values(mdp))
    losses = [_loss(heads, alpha, mdp) for alpha in _random_mixtures(agent.columns)]
    figures = (heads.std(axis=-1).mean(), mean_away.max(), away.max(), np.std(losses))
    return Reading(label, agent.columns, step, *map(float, figures))


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


def sheet(readings: list[Reading]) -> Sheet:
    """The last reading of every ensemble."""
    heads = ("", "heads disagree by", "their mean is off by", "a head is off by", "loss varies by")
    rows = []
    for each in {reading.agent: reading for reading in readings}.values():
        found = (each.disagreement, each.distance, each.head_distance, each.spread)
        rows.append([each.agent, *(Cell(f"{value:.1e}", value) for value in found)])
    return Sheet("after the last step", heads, rows)


def write_results(out: Path, readings: list[Reading]) -> list[Path]:
    """The readings as CSV and the figure as PNG."""
    from optimist.studies.report.figures import save_png
    from optimist.studies.report.paper_figures import head_agreement

    make_folder(out)
    write_whole(out / "readings.csv", as_csv(Sheet("", Reading._fields, readings)).encode())
    widths = {heads: concentration(heads) for heads in (2, 4, 8, 16, 32, 64, 128, 200)}
    save_png(head_agreement(readings, widths), out / "heads.png")
    return [out / "heads.png", out / "readings.csv"]
