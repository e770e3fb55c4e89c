"""Every file in the agents folder keeps one contract, is its published equation, and finds Q*."""

import dataclasses
import importlib
import json
import re
import sys
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optimist import agents
from optimist.agent import Agent, TableAgent
from optimist.data.transition import Spec, Transition
from optimist.errors import DataError, UsageError
from optimist.losses import random_convex_weights
from optimist.networks import Table
from optimist.optimizers import Adam, RmsProp
from optimist.training.learner import Learner, advance

VECTORS = Spec(frame_shape=(6,), frame_dtype="float32", actions=3)
CONTROL = Spec(frame_shape=(6,), frame_dtype="float32", action_low=(-1.0, -1.0), action_high=(1.0, 1.0))


def small(agent: Agent) -> Agent:
    """The same agent with few columns, a high learning rate, and a target copied every third step."""
    optimizer = dataclasses.replace(agent.optimizer, learning_rate=1e-3)
    agent = dataclasses.replace(agent, optimizer=optimizer, target_period=3)
    return narrow(agent) if isinstance(agent, TableAgent) else agent


def narrow(agent: TableAgent) -> TableAgent:
    return dataclasses.replace(agent, columns=min(agent.columns, 8))


PRESETS = {
    f"{name}-{preset}": small(agent)
    for name in agents.available()
    for preset, agent in agents.presets(name).items()
}
TABLES = {label: agent for label, agent in PRESETS.items() if isinstance(agent, TableAgent)}
every_table = pytest.mark.parametrize("agent", TABLES.values(), ids=TABLES)


def default(name: str) -> Agent:
    return small(agents.preset(name))


def spec_for(agent: Agent) -> Spec:
    """The first kind of data that the agent accepts."""
    try:
        agent.check(VECTORS)
    except DataError:
        return CONTROL
    return VECTORS


def transitions(spec: Spec, count: int = 64) -> Transition:
    """Seeded noise; one transition in five is terminal."""
    rng = np.random.default_rng(0)
    observation, next_observation = rng.normal(size=(2, count, *spec.observation_shape)).astype(np.float32)
    control = rng.uniform(-1, 1, size=(count, *spec.action_shape))
    action = rng.integers(spec.actions, size=count) if spec.discrete else control
    return Transition(
        observation=observation,
        action=action.astype(spec.action_dtype),
        reward=rng.uniform(-1, 1, size=count).astype(np.float32),
        discount=np.where(rng.uniform(size=count) < 0.2, 0, 0.99).astype(np.float32),
        next_observation=next_observation,
    )


def rows(resident: Transition, item) -> Transition:
    """The minibatch of the rows named by one item."""
    return jax.tree.map(lambda column: column[item], resident)


def train(agent: Agent, steps: int, seed: int = 0, state=None):
    """Start at a seed, or go on from a state; a step's 16 random rows depend on its number alone."""
    spec = spec_for(agent)
    learner = Learner(agent, spec)
    state = learner.init((seed,)) if state is None else state
    start = int(state.step)
    items = np.stack([np.random.default_rng(start + n).integers(64, size=(1, 16)) for n in range(steps)])
    return advance(learner, state, rows, transitions(spec), items)


def copied(tree):
    """Numpy's own copy, which outlives the state that `advance` consumes."""
    return jax.tree.map(np.array, tree)


def same_bits(left, right) -> bool:
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


# The contract: each clause takes any agent.


def its_losses_are_finite_scalars(agent):
    spec = spec_for(agent)
    params = agent.init(jax.random.PRNGKey(0), spec)
    for objective in agent.objectives(spec):
        loss = jax.jit(objective.loss)(params, params, transitions(spec), jax.random.PRNGKey(1))
        assert loss.shape == ()
        assert np.isfinite(loss)


def it_is_a_frozen_record(agent):
    field = dataclasses.fields(agent)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(agent, field, None)
    assert hash(agent) == hash(dataclasses.replace(agent))
    assert agent == dataclasses.replace(agent)


def its_description_as_text_builds_it_again(agent):
    assert agents.from_description(json.loads(json.dumps(agents.described(agent)))) == agent


@dataclass(frozen=True)
class OneObjective:
    """An agent cut down to one of its objectives."""

    agent: Agent
    only: str

    def objectives(self, spec):
        return tuple(objective for objective in self.agent.objectives(spec) if objective.name == self.only)

    def __getattr__(self, name):
        return getattr(self.agent, name)


def an_objective_changes_only_its_own_parameters(agent):
    for objective in agent.objectives(spec_for(agent)):
        alone = OneObjective(agent, only=objective.name)
        state, _ = train(alone, steps=1)  # the target is copied after step 0, and then stays
        before = copied(state)
        state, _ = train(alone, steps=1, state=state)
        assert same_bits(state.targets, before.targets)
        for name in before.params:
            changed = not same_bits(state.params[name], before.params[name])
            assert changed == (name == objective.name)


def equal_seeds_give_equal_bits(agent):
    assert same_bits(train(agent, steps=4, seed=5), train(agent, steps=4, seed=5))


def other_seeds_give_other_bits(agent):
    state, losses = train(agent, steps=4, seed=5)
    other_state, other_losses = train(agent, steps=4, seed=6)
    assert not same_bits(state.params, other_state.params)
    assert not same_bits(losses, other_losses)


def nothing_is_compiled_twice(agent):
    """Neither for the next chunk, nor for an equal agent built anew."""
    state, _ = train(agent, steps=4)
    compiled = advance._cache_size()
    train(agent, steps=4, state=state)
    train(dataclasses.replace(agent), steps=4, seed=1)
    assert advance._cache_size() == compiled


def the_target_is_copied_after_steps_0_3_6_and_stays_between(agent):
    assert agent.target_period == 3
    state = None
    for step in range(8):
        state, _ = train(agent, steps=1, state=state)
        if step % 3 == 0:
            copy = copied(state.params)
        assert same_bits(state.targets, copy)
        assert same_bits(state.params, copy) == (step % 3 == 0)


def its_docstrings_name_a_paper_and_its_year(agent):
    assert sys.modules[type(agent).__module__].__doc__
    assert re.search(r"[A-Z][a-z]+( and [A-Z][a-z]+| et al\.)? (19|20)\d\d", type(agent).__doc__)


CONTRACT = [
    its_losses_are_finite_scalars,
    it_is_a_frozen_record,
    its_description_as_text_builds_it_again,
    an_objective_changes_only_its_own_parameters,
    equal_seeds_give_equal_bits,
    other_seeds_give_other_bits,
    nothing_is_compiled_twice,
    the_target_is_copied_after_steps_0_3_6_and_stays_between,
    its_docstrings_name_a_paper_and_its_year,
]


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.parametrize("name", agents.available())
def test_every_agent_keeps_the_contract(name, clause):
    clause(default(name))


@pytest.mark.parametrize("label", PRESETS)
def test_twenty_losses_are_those_recorded(label, golden):
    """A change of these numbers is a change of the algorithm, the data order or the random draws."""
    _, losses = train(PRESETS[label], steps=20)
    golden(label, {name: series[:, 0] for name, series in losses.items()})


@every_table
def test_a_table_agent_refuses_vector_actions(agent):
    with pytest.raises(DataError, match=f"{type(agent).__name__} chooses among discrete actions.*size 2"):
        agent.check(CONTROL)


# Adding an agent is adding a file.

DOUBLE_DQN = '''\
"""Double Q-learning with deep networks."""

from dataclasses import dataclass

from optimist.agent import TableAgent
from optimist.losses import huber


@dataclass(frozen=True, kw_only=True)
class DoubleDqn(TableAgent):
    """Double DQN (van Hasselt et al. 2016): one network chooses the action, the other values it."""

    def values(self, table):
        return table.mean()

    def loss(self, q, q_target, step, key):
        chosen = q(step.next_observation).mean().argmax()
        target = step.reward + step.discount * q_target(step.next_observation).mean()[chosen]
        return huber(target - q(step.observation).mean()[step.action])
'''


@pytest.fixture
def double_dqn_in_the_folder(monkeypatch, tmp_path):
    (tmp_path / "double_dqn.py").write_text(DOUBLE_DQN)
    monkeypatch.setattr(agents, "__path__", [*agents.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    yield
    sys.modules.pop("optimist.agents.double_dqn", None)
    vars(agents).pop("double_dqn", None)


def test_a_new_file_in_the_folder_is_an_agent(double_dqn_in_the_folder):
    known = {label.split("-")[0] for label in PRESETS}
    assert set(agents.available()) == known | {"double_dqn"}
    assert list(agents.presets("double-dqn")) == ["paper"]
    agent = default("double-dqn")
    assert type(agent) is agents.agent_class("double_dqn") is agents.DoubleDqn
    for clause in CONTRACT:
        clause(agent)
    assert_reaches_the_values_of_the_chain(agent)


def test_the_new_file_leaves_no_trace():
    assert "double_dqn" not in agents.available()
    with pytest.raises(UsageError, match='no agent "double_dqn": did you mean'):
        agents.presets("double-dqn")


def test_an_agent_is_found_by_its_name_in_any_spelling():
    assert agents.agent_class("qr-dqn") is agents.agent_class("QR_DQN") is agents.QrDqn
    with pytest.raises(UsageError, match='there is no agent "ren": did you mean "rem"'):
        agents.agent_class("ren")
    with pytest.raises(AttributeError, match="no Ren"):
        _ = agents.Ren


def test_a_file_is_a_module_from_the_first_time_it_is_asked_for(monkeypatch):
    monkeypatch.delitem(sys.modules, "optimist.agents.rem", raising=False)
    monkeypatch.delattr(agents, "rem", raising=False)
    with pytest.raises(AttributeError):
        _ = agents.rem  # not the class Rem: after the first import the same words mean the module


def test_the_first_preset_is_the_default():
    assert agents.preset("dqn") == agents.preset("dqn", "nature") != agents.preset("dqn", "adam")
    with pytest.raises(UsageError, match='dqn has no preset "natur": did you mean "nature"'):
        agents.preset("dqn", "natur")


@pytest.mark.parametrize(("field", "value"), [("columns", 0), ("target_period", 0)])
def test_a_setting_below_one_is_refused(field, value):
    with pytest.raises(UsageError, match="0"):
        agents.agent_class("rem")(**{field: value})


def test_the_settings_are_the_papers():
    for label, optimizer, columns, initializer in [
        ("dqn nature", RmsProp(), 1, "glorot"),
        ("dqn adam", Adam(), 1, "glorot"),
        ("qr_dqn paper", Adam(), 200, "fan_in"),
        ("rem paper", Adam(), 200, "fan_in"),
    ]:
        name, preset = label.split()
        agent = agents.preset(name, preset)
        assert (agent.optimizer, agent.columns, agent.initializer) == (optimizer, columns, initializer)
        assert agent.target_period == 2000


# Each loss is its paper's equation, written with loops over actions and columns.


def random_table(rng, columns: int):
    """A linear table over observations of size 6, as the agents see it and as nested lists of numbers."""
    weight, bias = rng.normal(size=(6, 3, columns)), rng.normal(size=(3, columns))

    def table(observation):
        return Table(observation, jnp.float32(weight), jnp.float32(bias))

    def numbers(observation):
        return [
            [sum(observation[f] * weight[f, a, k] for f in range(6)) + bias[a, k] for k in range(columns)]
            for a in range(3)
        ]

    return table, numbers


def huber_by_definition(error: float) -> float:
    return 0.5 * error**2 if abs(error) <= 1 else abs(error) - 0.5


def dqn_by_loops(table, next_table, step, key) -> float:
    """Mnih et al. 2015, algorithm 1: the target is r + gamma max_a Q(s', a)."""
    best = max(row[0] for row in next_table)
    return huber_by_definition(step.reward + step.discount * best - table[step.action][0])


def rem_by_loops(table, next_table, step, key) -> float:
    """Agarwal et al. 2020, eq. 7: one alpha mixes both networks, and the maximum is over mixtures."""
    alpha = random_convex_weights(key, len(table[0])).tolist()
    mixed = [sum(a * value for a, value in zip(alpha, row, strict=True)) for row in table]
    next_mixed = [sum(a * value for a, value in zip(alpha, row, strict=True)) for row in next_table]
    return huber_by_definition(step.reward + step.discount * max(next_mixed) - mixed[step.action])


def qr_dqn_by_loops(table, next_table, step, key) -> float:
    """Dabney et al. 2018, algorithm 1: the quantiles of the action with the best mean are the targets."""
    best = max(next_table, key=sum)
    total, count = 0.0, len(best)
    for i, quantile in enumerate(table[step.action]):
        for value in best:
            error = step.reward + step.discount * value - quantile
            weight = abs((i + 0.5) / count - (1 if error < 0 else 0))
            total += weight * huber_by_definition(error) / count
    return total


@pytest.mark.parametrize(
    ("name", "columns", "by_loops"),
    [
        ("dqn", 1, dqn_by_loops),
        ("qr_dqn", 1, qr_dqn_by_loops),
        ("qr_dqn", 5, qr_dqn_by_loops),
        ("rem", 1, rem_by_loops),
        ("rem", 5, rem_by_loops),
    ],
)
def test_a_loss_is_its_papers_equation(name, columns, by_loops):
    agent = agents.agent_class(name)(columns=columns)
    rng = np.random.default_rng(columns)
    q, q_numbers = random_table(rng, columns)
    q_target, q_target_numbers = random_table(rng, columns)
    key, data = jax.random.PRNGKey(3), transitions(VECTORS, count=12)
    losses = jax.vmap(lambda step: agent.loss(q, q_target, step, key))(data)
    for row in range(12):
        step = Transition(*(column[row].tolist() for column in data))
        expected = by_loops(q_numbers(step.observation), q_target_numbers(step.next_observation), step, key)
        np.testing.assert_allclose(losses[row], expected, rtol=2e-5, atol=1e-6)


@every_table
def test_the_target_network_matters_until_the_episode_ends(agent):
    (objective,) = agent.objectives(VECTORS)
    params, other = (agent.init(jax.random.PRNGKey(seed), VECTORS) for seed in range(2))
    going, loss = transitions(VECTORS), jax.jit(objective.loss)
    ended = going._replace(discount=np.zeros(64, np.float32))
    key = jax.random.PRNGKey(2)
    assert abs(loss(params, params, going, key) - loss(params, other, going, key)) > 1e-3
    assert abs(loss(params, params, ended, key) - loss(params, other, ended, key)) < 1e-6


def test_one_column_of_rem_is_dqn():
    """One weight of a convex mixture is one: the same losses and the same parameters through 20 steps."""
    dqn = small(agents.Dqn(optimizer=Adam()))
    rem = small(agents.Rem(columns=1, initializer=dqn.initializer))
    dqn_state, dqn_losses = train(dqn, steps=20)
    rem_state, rem_losses = train(rem, steps=20)
    np.testing.assert_allclose(dqn_losses["q"], rem_losses["q"], rtol=1e-5)
    for ours, theirs in zip(jax.tree.leaves(dqn_state), jax.tree.leaves(rem_state), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["dqn", "qr_dqn", "rem"])
def test_an_agent_acts_by_the_mean_of_its_columns(name):
    agent = narrow(agents.agent_class(name)())
    params = agent.init(jax.random.PRNGKey(0), VECTORS)
    for observation in transitions(VECTORS, count=5).observation:
        table = agent.table(VECTORS)(params["q"], observation)
        means = [sum(row) / agent.columns for row in table.columns().tolist()]
        np.testing.assert_allclose(agent.values(table), means, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(agent.estimate(VECTORS, params, observation), max(means), rtol=1e-4)
        assert agent.action(VECTORS, params, observation) == means.index(max(means))


# Every table agent finds the optimal values of a chain small enough to solve by hand.

LEFT, RIGHT, GAMMA = 0, 1, 0.9


def chain_step(state: int, action: int) -> tuple[int, float, bool]:
    """Four states in a row; walking right out of the last pays one and ends the episode."""
    if action == RIGHT:
        return min(state + 1, 3), float(state == 3), state == 3
    return max(state - 1, 0), 0.0, False


def optimal_values() -> list[list[float]]:
    """Value iteration, to convergence."""
    q = [[0.0, 0.0] for _ in range(4)]
    for _ in range(200):
        for state in range(4):
            for action in (LEFT, RIGHT):
                arrival, reward, ended = chain_step(state, action)
                q[state][action] = reward if ended else reward + GAMMA * max(q[arrival])
    return q


def chain() -> tuple[Spec, Transition]:
    """Every state and action once, states as one-hot vectors."""
    places, steps = np.eye(4, dtype=np.float32), []
    for state in range(4):
        for action in (LEFT, RIGHT):
            arrival, reward, ended = chain_step(state, action)
            discount = 0.0 if ended else GAMMA
            steps.append(
                (places[state], np.int32(action), np.float32(reward), np.float32(discount), places[arrival])
            )
    return Spec(frame_shape=(4,), frame_dtype="float32", actions=2), Transition(
        *map(np.stack, zip(*steps, strict=True))
    )


def test_the_chain_is_worth_one_discounted_by_the_steps_to_its_end():
    q = optimal_values()
    for state in range(4):
        np.testing.assert_allclose(q[state][RIGHT], 0.9 ** (3 - state), rtol=1e-9)
        np.testing.assert_allclose(q[state][LEFT], 0.9 * 0.9 ** (3 - max(state - 1, 0)), rtol=1e-9)


def whole(resident: Transition, item) -> Transition:
    return resident


def assert_reaches_the_values_of_the_chain(agent: TableAgent, within: float = 0.02, chunks: int = 8):
    spec, data = chain()
    learner = Learner(dataclasses.replace(agent, target_period=20), spec)
    state = learner.init((0,))
    for _ in range(chunks):
        state, _ = advance(learner, state, whole, data, np.zeros((500, 1)))
        params = jax.tree.map(lambda leaf: leaf[0], state.params)
        values = [
            agent.values(agent.table(spec)(params["q"], place)) for place in np.eye(4, dtype=np.float32)
        ]
        if np.abs(np.array(values) - optimal_values()).max() < within / 2:
            break
    np.testing.assert_allclose(np.array(values), optimal_values(), rtol=0, atol=within)


@every_table
def test_every_table_agent_finds_the_optimal_values_of_a_chain(agent):
    assert_reaches_the_values_of_the_chain(agent)
