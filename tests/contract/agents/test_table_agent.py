"""Table agents: each loss is its paper's equation, written with loops over actions and columns."""

import dataclasses
import functools
import math
import statistics
from dataclasses import dataclass
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from loss_loops import projection_by_loops, quantile_huber_by_loops
from optimist import agents
from optimist.agents._agent import Agent
from optimist.agents._table_agent import Reader, TableAgent
from optimist.data.transition import Transition
from optimist.equations.mixtures import Mixture
from optimist.errors import UsageError
from optimist.networks import SplitTable, Table
from small_agents import (
    TABLES,
    VECTORS,
    default,
    narrow,
    softmax,
    spec_for,
    transitions,
)


@functools.partial(jax.tree_util.register_dataclass, data_fields=["weight", "bias"], meta_fields=["networks"])
@dataclass(frozen=True)
class RandomTable:
    """A linear table over observations of size 6: as the agents see it, and as nested lists of numbers.

    Separate networks have features of their own: the first sees the observation, the second twice that, ...
    """

    weight: np.ndarray  # (6, A, K)
    bias: np.ndarray  # (A, K)
    networks: int = 1

    def __call__(self, observation, allowed=None):
        if self.networks == 1:
            return Table(observation, self.weight, self.bias)
        features = [observation * (n + 1) for n in range(self.networks)]
        weights, biases = (jnp.split(part, self.networks, axis=-1) for part in (self.weight, self.bias))
        return SplitTable(Table(*map(jnp.stack, (features, weights, biases))))

    def numbers(self, observation: list[float]) -> list[list[float]]:
        _, actions, columns = self.weight.shape
        table = [[float(self.bias[a, k]) for k in range(columns)] for a in range(actions)]
        for a in range(actions):
            for k in range(columns):
                network = k // (columns // self.networks)
                for f in range(6):
                    table[a][k] += (network + 1) * observation[f] * self.weight[f, a, k]
        return table


def random_tables(columns: int, networks: int = 1, scale: float = 1.0) -> tuple[RandomTable, RandomTable]:
    """The network's and its target's, for three actions."""
    rng = np.random.default_rng(columns)
    shapes = [(6, 3, columns), (3, columns)]
    drawn = [[np.float32(scale * rng.normal(size=shape)) for shape in shapes] for _ in range(2)]
    return RandomTable(*drawn[0], networks), RandomTable(*drawn[1], networks)


LOSS_KEY = jax.random.PRNGKey(3)
STEPS = transitions(VECTORS, count=12)


def losses_on(agent: TableAgent, q: RandomTable, q_target: RandomTable, steps: Transition = STEPS):
    """Of each step by itself."""
    return np.array(compiled_losses(agent, q, q_target, steps))


@functools.partial(jax.jit, static_argnames="agent")
def compiled_losses(agent, q, q_target, steps):
    return jax.vmap(lambda step: agent.loss(q, q_target, step, LOSS_KEY))(steps)


@functools.cache
def alphas_of(mixture: Mixture, heads: int) -> list[list[float]]:
    """The mixtures that a loss draws."""
    return mixture.draw(LOSS_KEY, heads).T.tolist()


def huber_by_definition(agent, error: float) -> float:
    limit = 1 if agent.huber_limit == "auto" else agent.huber_limit
    return 0.5 * error**2 if abs(error) <= limit else limit * (abs(error) - 0.5 * limit)


def mean(numbers) -> float:
    numbers = list(numbers)
    return sum(numbers) / len(numbers)


def target_by_hand(agent, step, value: float) -> float:
    """r + discount * value, no further from zero than the agent's limit."""
    target = step.reward + step.discount * value
    return target if agent.target_limit is None else max(-agent.target_limit, min(agent.target_limit, target))


def dqn_by_loops(agent, table, next_table, step) -> float:
    """Mnih et al. 2015, algorithm 1: the target is r + gamma max_a Q(s', a)."""
    best = max(row[0] for row in next_table)
    return huber_by_definition(agent, target_by_hand(agent, step, best) - table[step.action][0])


def test_an_agent_may_draw_for_each_step():
    """REM has one mixture for a minibatch; an agent of one's own may want one for each step."""

    class OwnMixtures(agents.Rem):
        draws_for_each_step = True

    rem, own = agents.Rem(columns=4), OwnMixtures(columns=4)
    params = rem.init(jax.random.PRNGKey(0), VECTORS)
    q = Reader(rem.table(VECTORS), params["q"])
    shared, found = (
        float(objective.loss(params, params, STEPS, LOSS_KEY))
        for agent in (rem, own)
        for objective in agent.objectives(VECTORS)
    )
    keys, each = jax.random.split(LOSS_KEY, len(STEPS.reward)), []
    for number, key in enumerate(keys):
        each.append(float(rem.loss(q, q, jax.tree.map(lambda leaf, at=number: leaf[at], STEPS), key)))
    np.testing.assert_allclose(found, mean(each), rtol=1e-5)
    assert found != pytest.approx(shared, rel=1e-3)


def rem_by_loops(agent, table, next_table, step) -> float:
    """Agarwal et al. 2020, eq. 7: one alpha mixes both networks, and the maximum is over mixed values.

    Several alphas are several losses, of which the minibatch takes the mean.
    """
    losses = []
    for alpha in alphas_of(agent.mixture, agent.columns):
        mixed = [sum(a * value for a, value in zip(alpha, row, strict=True)) for row in table]
        next_mixed = [sum(a * value for a, value in zip(alpha, row, strict=True)) for row in next_table]
        target = target_by_hand(agent, step, max(next_mixed))
        losses.append(huber_by_definition(agent, target - mixed[step.action]))
    return mean(losses)


def ensemble_by_loops(agent, table, next_table, step) -> float:
    """Agarwal et al. 2020, section 4.1: every head against the maximum of its own target head."""
    losses = []
    for k in range(agent.columns):
        best = max(row[k] for row in next_table)
        losses.append(huber_by_definition(agent, target_by_hand(agent, step, best) - table[step.action][k]))
    return mean(losses)


def averaged_by_loops(agent, table, next_table, step) -> float:
    """Anschel et al. 2017, algorithm 3: every head against the maximum of the averaged target."""
    target = target_by_hand(agent, step, max(mean(row) for row in next_table))
    return mean(huber_by_definition(agent, target - value) for value in table[step.action])


def minimum_by_loops(agent, table, next_table, step) -> float:
    """Agarwal et al. 2020, section 5.2: of each action the most pessimistic head, then the best action."""
    target = target_by_hand(agent, step, max(min(row) for row in next_table))
    return mean(huber_by_definition(agent, target - value) for value in table[step.action])


def qr_dqn_by_loops(agent, table, next_table, step) -> float:
    """Dabney et al. 2018, algorithm 1: the quantiles of the action with the best mean are the targets."""
    targets = [target_by_hand(agent, step, value) for value in max(next_table, key=sum)]
    loss = quantile_huber_by_loops(table[step.action], targets)
    return loss / agent.columns if agent.over_quantiles == "mean" else loss


def mixed_heads(agent, row: list[float], alpha: list[float], read=list) -> list[float]:
    """One action's columns as heads one after the other, each read by itself, then mixed place by place."""
    width = agent.columns // agent.heads
    heads = [read(row[head * width : (head + 1) * width]) for head in range(agent.heads)]
    return [sum(alpha[h] * heads[h][place] for h in range(agent.heads)) for place in range(width)]


def qr_rem_by_loops(agent, table, next_table, step) -> float:
    """QR-DQN's loss on heads of quantiles that one alpha has mixed."""
    (alpha,) = alphas_of(agent.mixture, agent.heads)
    mixed, next_mixed = ([mixed_heads(agent, row, alpha) for row in rows] for rows in (table, next_table))
    return qr_dqn_by_loops(agents.QrDqn(target_limit=agent.target_limit), mixed, next_mixed, step)


def categorical_by_loops(atoms, distribution, next_distributions, step) -> float:
    """Bellemare et al. 2017, algorithm 1: the best action's distribution, moved, projected and predicted."""
    best = max(next_distributions, key=lambda p: sum(z * chance for z, chance in zip(atoms, p, strict=True)))
    moved = [step.reward + step.discount * atom for atom in atoms]
    target = projection_by_loops(moved, best, atoms)
    return -sum(m * math.log(p) for m, p in zip(target, distribution, strict=True))


def even_atoms(low: float, high: float, count: int) -> list[float]:
    return [low + i * (high - low) / (count - 1) for i in range(count)]


def c51_by_loops(agent, table, next_table, step) -> float:
    atoms = even_atoms(agent.low, agent.high, agent.columns)
    return categorical_by_loops(atoms, softmax(table[step.action]), list(map(softmax, next_table)), step)


def hl_gauss_by_loops(agent, table, next_table, step) -> float:
    """Farebrother et al. 2024, eq. 3.4: the target is DQN's, and its bell curve is predicted bin by bin."""
    atoms = even_atoms(agent.low, agent.high, agent.columns)
    gap = atoms[1] - atoms[0]
    target = step.reward + step.discount * max(mean_of_atoms(agent, row) for row in next_table)
    curve = statistics.NormalDist(min(max(target, atoms[0]), atoms[-1]), agent.spread * gap)
    mass = [curve.cdf(atom + gap / 2) - curve.cdf(atom - gap / 2) for atom in atoms]
    predicted = softmax(table[step.action])
    return -sum(m / sum(mass) * math.log(p) for m, p in zip(mass, predicted, strict=True))


def c51_rem_by_loops(agent, table, next_table, step) -> float:
    """C51's loss on distributions that one alpha has mixed: probabilities are mixed, not logits."""
    (alpha,) = alphas_of(agent.mixture, agent.heads)
    mixed, next_mixed = (
        [mixed_heads(agent, row, alpha, read=softmax) for row in rows] for rows in (table, next_table)
    )
    atoms = even_atoms(-agent.limit, agent.limit, agent.columns // agent.heads)
    return categorical_by_loops(atoms, mixed[step.action], next_mixed, step)


def behaviour_cloning_by_loops(agent, table, next_table, step) -> float:
    """The negative log likelihood of the logged action under the softmax over actions (Pomerleau 1989)."""
    return -math.log(softmax([mean(row) for row in table])[step.action])


def conservative_by_loops(base_by_loops, values_of_row):
    """Kumar et al. 2020, eq. 4: the loss of the agent below, and log sum_a exp Q(s, a) - Q(s, logged)."""

    def by_loops(agent, table, next_table, step) -> float:
        values = [values_of_row(agent, row) for row in table]
        excess = math.log(sum(math.exp(value) for value in values)) - values[step.action]
        return base_by_loops(agent, table, next_table, step) + agent.conservatism * excess

    return by_loops


def mean_of_row(agent, row: list[float]) -> float:
    return mean(row)


def mean_of_atoms(agent, row: list[float]) -> float:
    atoms = even_atoms(agent.low, agent.high, agent.columns)
    return sum(z * p for z, p in zip(atoms, softmax(row), strict=True))


def rem_dr3_by_loops(agent, table, next_table, step) -> float:
    """Kumar et al. 2022, eq. 5: the features here are the observations; network n sees n times as much."""
    dots = [
        (n + 1) ** 2 * sum(x * y for x, y in zip(step.observation, step.next_observation, strict=True))
        for n in range(agent.networks)
    ]
    return rem_by_loops(agent, table, next_table, step) + agent.feature_penalty * mean(dots)


def allowed_by_loops(agent, table) -> list[int]:
    chances = softmax([row[1] for row in table])
    return [action for action, chance in enumerate(chances) if chance >= agent.threshold * max(chances)]


def discrete_bcq_by_loops(agent, table, next_table, step) -> float:
    """Fujimoto et al. 2019: the network chooses among the likely next actions, the target says its worth."""
    best = max(allowed_by_loops(agent, step.own_next_table), key=lambda a: step.own_next_table[a][0])
    error = target_by_hand(agent, step, next_table[best][0]) - table[step.action][0]
    logits = [row[1] for row in table]
    return (
        huber_by_definition(agent, error)
        - math.log(softmax(logits)[step.action])
        + agent.logit_decay * mean(logit**2 for logit in logits)
    )


def discrete_iql_by_loops(agent, table, next_table, step) -> float:
    """Kostrikov et al. 2022, eqs. 5 to 7: the value of a state is an expectile of the target's value of its
    logged actions; both critics follow it; the policy imitates actions by how much better they are."""
    logged = min(step.target_table[step.action][:2])
    value = mean(row[2] for row in table)
    target = target_by_hand(agent, step, mean(row[2] for row in step.own_next_table))
    critics = sum((target - critic) ** 2 for critic in table[step.action][:2])
    above = logged - value
    expectile = (agent.tau if above > 0 else 1 - agent.tau) * above**2
    weight = min(math.exp(agent.temperature * above), agent.largest_weight)
    return critics + expectile - weight * math.log(softmax([row[3] for row in table])[step.action])


EQUATIONS = [
    (agents.Cql(conservatism=0.25, target_limit=0.5), conservative_by_loops(dqn_by_loops, mean_of_row)),
    (agents.QrCql(columns=5), conservative_by_loops(qr_dqn_by_loops, mean_of_row)),
    (agents.C51Cql(columns=5, low=-2.0, high=2.0), conservative_by_loops(c51_by_loops, mean_of_atoms)),
    (agents.RemCql(columns=3), conservative_by_loops(rem_by_loops, mean_of_row)),
    (agents.RemDr3(columns=3), rem_dr3_by_loops),
    (agents.RemDr3(columns=4, networks=2, feature_penalty=0.5), rem_dr3_by_loops),
    (agents.DiscreteBcq(), discrete_bcq_by_loops),
    (agents.DiscreteBcq(threshold=0.0, logit_decay=0.3), discrete_bcq_by_loops),
    (agents.DiscreteBcq(threshold=0.9, target_limit=0.5, huber_limit=0.25), discrete_bcq_by_loops),
    (agents.DiscreteIql(), discrete_iql_by_loops),
    (agents.DiscreteIql(tau=0.9, temperature=0.5, largest_weight=1.1), discrete_iql_by_loops),
    (agents.Dqn(), dqn_by_loops),
    (agents.Dqn(huber_limit=0.25, target_limit=0.5), dqn_by_loops),
    (agents.QrDqn(columns=5, target_limit=0.5), qr_dqn_by_loops),
    (agents.QrDqn(columns=5, over_quantiles="mean"), qr_dqn_by_loops),
    (agents.Rem(columns=3, target_limit=0.5, huber_limit=0.25), rem_by_loops),
    (agents.EnsembleDqn(columns=3, target_limit=0.5, huber_limit=0.25), ensemble_by_loops),
    (agents.AveragedEnsembleDqn(columns=3, target_limit=0.5), averaged_by_loops),
    (agents.MinimumEnsembleDqn(columns=3, target_limit=0.5), minimum_by_loops),
    (agents.QrDqn(columns=5), qr_dqn_by_loops),
    (agents.Rem(columns=3), rem_by_loops),
    (agents.Rem(columns=3, mixture=Mixture(count=3)), rem_by_loops),
    (agents.Rem(columns=3, networks=3, mixture=Mixture("mean")), rem_by_loops),
    (agents.EnsembleDqn(columns=5), ensemble_by_loops),
    (agents.BootstrappedDqn(), ensemble_by_loops),
    (agents.AveragedEnsembleDqn(columns=4, networks=2), averaged_by_loops),
    (agents.C51(), c51_by_loops),
    (agents.C51(columns=5, low=-0.5, high=0.75), c51_by_loops),  # most rewards lie outside
    (agents.HlGauss(), hl_gauss_by_loops),
    (agents.HlGauss(columns=5, low=-0.5, high=0.75, spread=1.5), hl_gauss_by_loops),  # as above
    (agents.QrRem(columns=12, heads=3, target_limit=0.5), qr_rem_by_loops),
    (agents.QrRem(columns=12, heads=3, networks=2, mixture=Mixture("mean")), qr_rem_by_loops),
    (agents.C51Rem(columns=12, heads=3), c51_rem_by_loops),
    (agents.C51Rem(columns=12, heads=3, limit=0.5, mixture=Mixture("one_hot")), c51_rem_by_loops),
    (agents.BehaviourCloning(columns=3), behaviour_cloning_by_loops),
]


@pytest.mark.parametrize(("agent", "by_loops"), EQUATIONS, ids=lambda value: type(value).__name__)
def test_a_loss_is_its_papers_equation(agent, by_loops):
    q, q_target = random_tables(agent.columns, agent.networks)
    losses = losses_on(agent, q, q_target)
    assert {0.0} < set(STEPS.discount.tolist())  # some steps are terminal, some are not
    for row in range(12):
        columns = {name: column for name, column in STEPS._asdict().items() if column is not None}
        step = SimpleNamespace(**{name: column[row].tolist() for name, column in columns.items()})
        table, next_table = q.numbers(step.observation), q_target.numbers(step.next_observation)
        step.own_next_table, step.target_table = (
            q.numbers(step.next_observation),
            q_target.numbers(step.observation),
        )
        np.testing.assert_allclose(
            losses[row], by_loops(agent, table, next_table, step), rtol=5e-5, atol=2e-6
        )


def test_every_table_agent_has_its_equation_written_in_loops():
    assert {type(agent) for agent, _ in EQUATIONS} == {type(agent) for agent in TABLES.values()}


# Where two agents must be the same, they are.


@pytest.mark.parametrize("scale", [1, 30], ids=["even", "near-certain"])
def test_one_head_of_a_distribution_is_the_agent_without_heads(scale):
    """Certainty matters: a logarithm kept from zero by adding to the probability would be another loss."""
    alone = Mixture("mean")
    q, q_target = random_tables(columns=5, scale=scale)
    for one_head, plain in [
        (agents.QrRem(columns=5, heads=1, mixture=alone), agents.QrDqn(columns=5)),
        (
            agents.C51Rem(columns=5, heads=1, limit=3.0, mixture=alone),
            agents.C51(columns=5, low=-3.0, high=3.0),
        ),
    ]:
        expected = losses_on(plain, q, q_target)
        np.testing.assert_allclose(losses_on(one_head, q, q_target), expected, rtol=1e-5, atol=1e-5)
        observation = STEPS.observation[0]
        values = plain.values(q(observation))
        np.testing.assert_allclose(one_head.values(q(observation)), values, rtol=1e-4, atol=1e-5)


def test_a_head_that_is_certain_and_wrong_still_learns():
    """The gradient of a cross-entropy is p - target: as large as can be where the wrong atom is certain."""
    agent = agents.C51Rem(columns=10, heads=2, mixture=Mixture("mean"))
    step = Transition(jnp.zeros(6), 0, 10.0, 0.0, jnp.zeros(6))  # the target is all on the last atom

    @jax.jit
    @jax.grad
    def gradient(bias):
        table = Table(jnp.zeros(6), jnp.zeros((6, 3, 10)), bias)
        return agent.loss(lambda *_: table, lambda *_: table, step, LOSS_KEY)

    certain = np.zeros((3, 10), np.float32)
    certain[0, [0, 5]] = 60.0  # both heads are sure of the first atom
    by_atom = gradient(certain)[0].reshape(2, 5).sum(axis=0)
    np.testing.assert_allclose(by_atom, [1, 0, 0, 0, -1], rtol=0, atol=1e-5)


def mean_of_mixed_atoms(agent, row: list[float]) -> float:
    mixed = mixed_heads(agent, row, alpha=[1 / agent.heads] * agent.heads, read=softmax)
    atoms = even_atoms(-agent.limit, agent.limit, agent.columns // agent.heads)
    return sum(z * p for z, p in zip(atoms, mixed, strict=True))


ACTS_BY = {
    "c51": mean_of_atoms,
    "c51_cql": mean_of_atoms,
    "hl_gauss": mean_of_atoms,
    "c51_rem": mean_of_mixed_atoms,
}
OTHERWISE = {"discrete_bcq", "discrete_iql"}  # tested below


@pytest.mark.parametrize("name", sorted({label.split("-")[0] for label in TABLES} - OTHERWISE))
def test_an_agent_acts_by_the_mean_of_its_columns_or_of_their_distribution(name):
    agent, value_of_row = narrow(agents.agent_class(name)()), ACTS_BY.get(name, mean_of_row)
    params, key = agent.init(jax.random.PRNGKey(0), VECTORS), jax.random.PRNGKey(1)
    for observation in transitions(VECTORS, count=5).observation:
        table = agent.table(VECTORS)(params["q"], observation)
        expected = [value_of_row(agent, row) for row in table.columns().tolist()]
        np.testing.assert_allclose(agent.values(table), expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(agent.estimate(VECTORS, params, observation), max(expected), rtol=1e-4)
        assert agent.action(VECTORS, params, observation, key) == expected.index(max(expected))


def products(agent: Agent) -> int:
    """The matrix products of one gradient."""
    (objective,) = agent.objectives(VECTORS)
    params, key = agent.init(jax.random.PRNGKey(0), VECTORS), jax.random.PRNGKey(1)
    gradient = jax.make_jaxpr(jax.grad(objective.loss))
    return str(gradient(params, params, transitions(VECTORS), key)).count("dot_general")


def test_conservatism_costs_no_further_pass_through_the_network():
    """Both terms read one table; from two, each would send a gradient of its own back."""
    assert products(agents.Cql()) == products(agents.presets("dqn")["adam"])


def test_discrete_bcq_acts_by_the_values_of_likely_actions():
    table = Table(np.float32([1.0]), np.zeros((1, 3, 2), np.float32), np.float32([[5, 0], [1, 4], [2, 3.5]]))
    assert agents.DiscreteBcq().values(table).tolist() == [-np.inf, 1.0, 2.0]


def test_discrete_iql_acts_by_its_policy_and_expects_the_value_of_the_state():
    agent = agents.DiscreteIql()
    params = agent.init(jax.random.PRNGKey(0), VECTORS)
    observation = STEPS.observation[0]
    columns = np.array(agent.table(VECTORS)(params["q"], observation).columns())
    assert agent.action(VECTORS, params, observation, None) == columns[:, 3].argmax()
    np.testing.assert_allclose(agent.estimate(VECTORS, params, observation), columns[:, 2].mean(), rtol=1e-5)


KINDS = (agents.Dqn(), agents.Rem(columns=4), agents.QrDqn(columns=5), agents.C51(columns=5), agents.Cql())


@pytest.mark.parametrize("plain", KINDS, ids=agents.short_name)
def test_double_targets_are_the_target_networks_value_of_the_networks_choice(plain):
    """van Hasselt et al. 2016, eq. 4: the maximum is over one action, which the network chooses."""
    double, spec = dataclasses.replace(plain, double=True), spec_for(plain)
    batch, key = transitions(spec, 8), jax.random.PRNGKey(2)
    params, targets = plain.init(jax.random.PRNGKey(0), spec), plain.init(jax.random.PRNGKey(1), spec)
    chosen = [int(plain.action(spec, params, each, key)) for each in batch.next_observation]
    only = jnp.array([[action == each for action in range(spec.actions)] for each in chosen])
    (loss,), (doubled,) = plain.objectives(spec), double.objectives(spec)
    expected = loss.loss(params, targets, batch._replace(next_allowed=only), key)
    np.testing.assert_allclose(doubled.loss(params, targets, batch, key), expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["behaviour_cloning", "discrete_iql"])
def test_an_agent_without_a_maximum_refuses_double_targets(name):
    with pytest.raises(UsageError, match="has no maximum over the next actions: leave double out"):
        dataclasses.replace(default(name), double=True)
