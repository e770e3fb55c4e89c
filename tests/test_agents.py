"""Every file in the agents folder keeps one contract, is its published equation, and finds Q*."""

import dataclasses
import functools
import importlib
import json
import math
import re
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from equations.test_losses import projection_by_loops, quantile_huber_by_loops
from optimist import agents
from optimist.agents._actor_critic import ActorAgent, ActorCritic
from optimist.agents._agent import Agent
from optimist.agents._table_agent import Reader, TableAgent
from optimist.data.transition import Spec, Transition
from optimist.equations.mixtures import Mixture
from optimist.equations.optimizers import Adam, RmsProp
from optimist.errors import DataError, UsageError
from optimist.networks import DenseNetwork, SplitTable, Table
from optimist.training.learner import Learner, advance
from optimist.training.play.acting import Policy, act, act_online

VECTORS = Spec(frame_shape=(6,), frame_dtype="float32", actions=3)
CONTROL = Spec(frame_shape=(6,), frame_dtype="float32", action_low=(-1.0, -1.0), action_high=(1.0, 1.0))


def small(agent: Agent) -> Agent:
    """The same agent with few columns and networks, a high learning rate, a target copied every 3 steps."""
    optimizer = dataclasses.replace(agent.optimizer, learning_rate=1e-3)
    agent = dataclasses.replace(agent, optimizer=optimizer, target_period=3)
    if isinstance(agent, ActorAgent):
        sizes = {"vae_hidden": "16,8"} if hasattr(agent, "vae_hidden") else {}
        periods = {"actor_period": 1} if isinstance(agent, ActorCritic) else {}
        return dataclasses.replace(agent, network=DenseNetwork("16,8"), **sizes, **periods)
    return narrow(agent) if isinstance(agent, TableAgent) else agent


def narrow(agent: TableAgent) -> TableAgent:
    """Eight columns of one network, or four networks, at most."""
    networks = min(agent.networks, 4)
    columns = min(agent.columns, 8 if networks == 1 else networks)
    return dataclasses.replace(agent, columns=columns, networks=networks)


PRESETS = {
    f"{name}-{preset}": small(agent)
    for name in agents.available()
    for preset, agent in agents.presets(name).items()
}
TABLES = {label: agent for label, agent in PRESETS.items() if isinstance(agent, TableAgent)}
LEARN_NO_VALUES = {"behaviour_cloning", "random"}  # their losses know of no rewards, as is tested below
# Their values are not those of the best policy, by design; their policy is, as is tested below.
CONSERVATIVE = {"cql", "qr_cql", "c51_cql", "rem_cql", "rem_dr3", "discrete_bcq", "discrete_iql"}
LEARNERS = {
    label: agent
    for label, agent in TABLES.items()
    if agents.name_of(agent) not in LEARN_NO_VALUES | CONSERVATIVE
    and label not in ("rem-networks-16", "rem-online")  # which at this size train as networks-4 does
}
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


def transitions_for(agent: Agent, spec: Spec) -> Transition:
    """The same with the next logged action for an agent that reads it; one in five has none."""
    found = transitions(spec)
    if not agent.reads_next_action:
        return found
    more = np.roll(found.action, 1, axis=0), np.arange(len(found.reward)) % 5 > 0
    return found._replace(next_action=more[0], next_logged=more[1])


def rows(resident: Transition, item) -> Transition:
    """The minibatch of the rows named by one item."""
    return jax.tree.map(lambda column: column[item], resident)


def train(agent: Agent, steps: int, seed: int = 0, state=None, data: Transition | None = None):
    """Start at a seed, or go on from a state; a step's 16 of the 64 rows depend on its number alone.

    Steps are taken one at a time, so that all runs of an agent share one compiled program.
    """
    spec = spec_for(agent)
    learner, data = Learner(agent, spec), transitions_for(agent, spec) if data is None else data
    state, parts = learner.init((seed,)) if state is None else state, []
    for step in range(int(state.step), int(state.step) + steps):
        item = np.random.default_rng(step).integers(64, size=(1, 1, 16))
        state, losses = advance(learner, state, rows, data, item)
        parts.append(losses)
    return state, jax.tree.map(lambda *losses: np.concatenate(losses), *parts)


def copied(tree):
    """Numpy's own copy, which outlives the state that `advance` consumes."""
    return jax.tree.map(np.array, tree)


def same_bits(left, right) -> bool:
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def learns(agent: Agent) -> bool:
    """Does it descend on anything? The random agent does not: it has no parameters and no objectives."""
    return bool(agent.objectives(spec_for(agent)))


# The contract: each clause takes any agent. An agent without objectives keeps the clauses on losses and
# targets by having neither; where it must differ from the others the clause says how.


def its_losses_are_finite_scalars(agent):
    state, losses = train(agent, steps=4)
    assert sorted(losses) == sorted(state.params)
    for series in losses.values():
        assert series.shape == (4, 1)  # steps and seeds: of a minibatch, one number
        assert np.all(np.isfinite(series))


def its_actions_are_those_of_the_data(agent):
    """One action of the right shape, type and range, with any key; and so while it collects."""
    spec, key = spec_for(agent), jax.random.PRNGKey(0)
    params = agent.init(key, spec)
    observation = transitions(spec).observation[0]
    low, high = (0, spec.actions - 1) if spec.discrete else (spec.action_low, spec.action_high)
    for action in (
        agent.action(spec, params, observation, key),
        agent.online_action(spec, params, observation, key, episode_key=key),
    ):
        assert action.shape == spec.action_shape
        assert np.issubdtype(action.dtype, np.integer) == spec.discrete
        assert np.all((np.array(low) <= action) & (action <= np.array(high)))
    assert np.isfinite(agent.estimate(spec, params, observation))


def it_is_a_frozen_record(agent):
    field = dataclasses.fields(agent)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(agent, field, None)
    assert hash(agent) == hash(dataclasses.replace(agent))
    assert agent == dataclasses.replace(agent)


def its_description_as_text_builds_it_again(agent):
    assert agents.from_description(json.loads(json.dumps(agents.described(agent)))) == agent.settled()


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
    objectives = agent.objectives(spec_for(agent))
    for objective in objectives:
        alone = OneObjective(agent, only=objective.name) if len(objectives) > 1 else agent
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
    assert not same_bits(state, other_state)
    assert same_bits(state.params, other_state.params) != learns(agent)
    assert same_bits(losses, other_losses) != learns(agent)


def nothing_is_compiled_twice(agent):
    """Neither for the next chunk, nor for an equal agent built anew."""
    state, _ = train(agent, steps=4)
    compiled = advance._cache_size()
    train(agent, steps=4, state=state)
    train(dataclasses.replace(agent), steps=4, seed=1)
    assert advance._cache_size() == compiled


def the_target_follows_after_steps_0_3_6_and_stays_between(agent):
    assert agent.target_period == 3
    state = Learner(agent, spec_for(agent)).init((0,))
    for step in range(8):
        before = copied(state.targets)
        state, _ = train(agent, steps=1, state=state)
        rate = agent.target_rate if step % 3 == 0 else 0
        expected = jax.tree.map(lambda t, p, rate=rate: (1 - rate) * t + rate * p, before, state.params)
        if rate in (0, 1):
            assert same_bits(state.targets, expected)
        for target, wanted in zip(jax.tree.leaves(state.targets), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(target, wanted, rtol=1e-5, atol=1e-7)
        assert same_bits(state.targets, state.params) == (rate == 1 or not learns(agent))


def its_docstrings_name_a_paper_and_its_year(agent):
    assert sys.modules[type(agent).__module__].__doc__
    first_line = type(agent).__doc__.splitlines()[0]
    assert re.search(r"[A-Z][a-z]+( and [A-Z][a-z]+| et al\.)? (19|20)\d\d", first_line)


CONTRACT = [
    its_losses_are_finite_scalars,
    its_actions_are_those_of_the_data,
    it_is_a_frozen_record,
    its_description_as_text_builds_it_again,
    an_objective_changes_only_its_own_parameters,
    equal_seeds_give_equal_bits,
    other_seeds_give_other_bits,
    nothing_is_compiled_twice,
    the_target_follows_after_steps_0_3_6_and_stays_between,
    its_docstrings_name_a_paper_and_its_year,
]


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.parametrize("name", agents.available())
def test_every_agent_keeps_the_contract(name, clause):
    clause(default(name))


@pytest.mark.parametrize("name", agents.available())
def test_every_preset_of_full_size_is_built_again_from_its_description(name):
    for agent in agents.presets(name).values():
        its_description_as_text_builds_it_again(agent)


@pytest.mark.parametrize(
    "agent",
    [
        agents.BootstrappedDqn(explore="mean"),
        agents.Rem(mixture=Mixture("dirichlet", 0.1, 3), explore="one_hot"),
        agents.C51(low=-1.0, high=2.0, optimizer=RmsProp(decay=0.5)),
        agents.QrRem(columns=6, heads=2, mixture=Mixture("mean")),
    ],
    ids=lambda agent: type(agent).__name__,
)
def test_an_agent_of_odd_settings_is_built_again_from_its_description(agent):
    its_description_as_text_builds_it_again(agent)


@pytest.mark.parametrize("label", PRESETS)
def test_twenty_losses_are_those_recorded(label, golden):
    """A change of these numbers is a change of the algorithm, the data order or the random draws."""
    _, losses = train(PRESETS[label], steps=20)
    golden(label, {name: series[:, 0] for name, series in losses.items()})


@every_table
def test_a_table_agent_refuses_vector_actions(agent):
    with pytest.raises(DataError, match=f"{type(agent).__name__} chooses among discrete actions.*size 2"):
        agent.check(CONTROL)


def test_each_way_of_behaviour_cloning_names_the_other_to_data_it_cannot_imitate():
    with pytest.raises(DataError, match="vector actions of size 2: use an agent such as cloned_actor"):
        agents.BehaviourCloning().check(CONTROL)
    with pytest.raises(DataError, match="3 discrete actions: use an agent such as behaviour_cloning"):
        agents.ClonedActor().check(VECTORS)


def shared_windows(texts: dict[str, str], length: int = 6) -> list[tuple[str, str, str]]:
    """So many consecutive lines, without blank lines and imports, that two of the files have in common."""
    seen: dict[tuple[str, ...], str] = {}
    shared = []
    for name, text in texts.items():
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        lines = [line for line in lines if not line.startswith(("import ", "from "))]
        for start in range(len(lines) - length + 1):
            window = tuple(lines[start : start + length])
            if seen.setdefault(window, name) != name:
                shared.append((seen[window], name, window[0]))
    return shared


def test_no_six_lines_stand_in_two_agents():
    (folder,) = map(Path, agents.__path__)
    files = [path for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]
    texts = {path.name: path.read_text("utf-8") for path in files}
    assert len(texts) == len(agents.available())
    assert shared_windows(texts) == []


def test_six_lines_that_stand_in_two_files_are_found():
    copied_lines = "\n".join("abcdef")
    texts = {
        "one.py": f"x\n{copied_lines}\n",
        "two.py": "\n\n".join("abcdef"),
        "three.py": "\n".join("abcde"),
    }
    assert shared_windows(texts) == [("one.py", "two.py", "a")]


# Adding an agent is adding a file.

DOUBLE_DQN = '''\
"""Double Q-learning with deep networks."""

from dataclasses import dataclass

from optimist.agents._table_agent import Reader, TableAgent
from optimist.equations.losses import huber


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
    with pytest.raises(UsageError, match='no agent "double_dqn": known: averaged'):
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


IMAGES = Spec(frame_shape=(10, 10, 4), frame_dtype="bool", actions=3)

REFUSED = {
    "negative conservatism": (lambda: agents.Cql(conservatism=-1.0), "conservatism is -1.0"),
    "endless conservatism": (lambda: agents.QrCql(conservatism=math.inf), "conservatism is inf"),
    "a third column of BCQ": (lambda: agents.DiscreteBcq(columns=3), "columns is 3"),
    "nothing is likely enough": (lambda: agents.DiscreteBcq(threshold=1.0), "threshold is 1.0"),
    "a fifth column of IQL": (lambda: agents.DiscreteIql(columns=5), "columns is 5"),
    "an expectile of one": (lambda: agents.DiscreteIql(tau=1.0), "tau is 1.0"),
    "negative feature penalty": (lambda: agents.RemDr3(feature_penalty=-0.1), "feature_penalty is -0.1"),
    "no columns": (lambda: agents.Rem(columns=0), "0 columns on 1 networks"),
    "fewer columns": (lambda: agents.EnsembleDqn(columns=-3), "-3 columns"),
    "no networks": (lambda: agents.Rem(networks=0), "200 columns on 0 networks"),
    "fewer networks": (lambda: agents.Rem(networks=-2), "200 columns on -2 networks"),
    "uneven networks": (lambda: agents.BootstrappedDqn(columns=4, networks=3), "4 columns on 3 networks"),
    "no target period": (lambda: agents.Dqn(target_period=0), "target_period is 0"),
    "no heads": (lambda: agents.QrRem(heads=0), "200 columns do not divide into 0 heads"),
    "uneven heads": (lambda: agents.QrRem(heads=7), "200 columns do not divide into 7 heads"),
    "uneven heads of atoms": (lambda: agents.C51Rem(heads=-4), "204 columns do not divide into -4 heads"),
    "many mixtures of quantiles": (lambda: agents.QrRem(mixture=Mixture(count=2)), "2 mixtures a minibatch"),
    "low is high": (lambda: agents.C51(low=3.0, high=3.0), "3.0 to 3.0: .* low below high"),
    "low above high": (lambda: agents.C51(low=1.0, high=-1.0), "1.0 to -1.0: .* low below high"),
    "endless atoms": (lambda: agents.C51(high=float("inf")), "-10.0 to inf"),
    "no spread": (lambda: agents.HlGauss(spread=0.0), "spread is 0.0: choose a number above zero"),
    "one atom": (lambda: agents.C51(columns=1), "1 atoms.*2 or more"),
    "one atom a head": (lambda: agents.C51Rem(columns=4), "1 atoms.*2 or more"),
    "no limit": (lambda: agents.C51Rem(limit=0.0), "limit above zero"),
    "a limit below zero": (lambda: agents.C51Rem(limit=-10.0), "limit above zero"),
    "a mixture misspelt": (lambda: agents.Rem(mixture=Mixture("dirichlett")), 'did you mean "dirichlet"'),
    "a way to explore misspelt": (lambda: agents.Rem(explore="onehot"), 'did you mean "one_hot"'),
    "an image network": (lambda: agents.C51(network="nature").check(VECTORS), 'needs images.*use "mlp"'),
    "separate image networks": (lambda: agents.Rem(networks=4, network="minatar").check(VECTORS), "images"),
    "a network misspelt": (lambda: agents.QrRem(network="minatr").check(IMAGES), 'did you mean "minatar"'),
}


@pytest.fixture
def compilations():
    """Grows whenever XLA compiles something."""
    names = []

    def listener(event, *_, **__):
        if "compile" in event:
            names.append(event)

    jax.monitoring.register_event_duration_secs_listener(listener)
    yield names
    jax.monitoring.unregister_event_duration_listener(listener)


@pytest.mark.parametrize(("build", "message"), REFUSED.values(), ids=REFUSED)
def test_a_setting_that_makes_no_sense_is_refused_in_one_line_before_anything_is_compiled(
    build, message, compilations
):
    with pytest.raises(UsageError, match=message) as refusal:
        build()
    assert "\n" not in str(refusal.value)
    assert compilations == []


def test_a_compilation_is_noticed(compilations):
    jax.jit(lambda x: x * 1.2345)(jnp.ones(7))
    assert compilations


def test_the_settings_are_the_papers():
    online = Adam(epsilon=0.001 / 32)
    for label, optimizer, columns, networks, initializer in [
        ("averaged_ensemble_dqn paper", Adam(), 200, 1, "fan_in"),
        ("bootstrapped_dqn paper", online, 4, 4, "glorot"),
        ("c51 paper", Adam(learning_rate=2.5e-4), 51, 1, "fan_in"),
        ("dqn nature", RmsProp(), 1, 1, "glorot"),
        ("dqn adam", Adam(), 1, 1, "glorot"),
        ("ensemble_dqn paper", Adam(), 200, 1, "fan_in"),
        ("qr_dqn paper", Adam(), 200, 1, "fan_in"),
        ("rem paper", Adam(), 200, 1, "fan_in"),
        ("rem matched-epsilon", Adam(head_epsilon=0.01 / 32 / 200), 200, 1, "fan_in"),
        ("rem networks-4", Adam(), 4, 4, "glorot"),
        ("rem networks-16", Adam(), 16, 16, "glorot"),
        ("rem online", online, 4, 4, "glorot"),
    ]:
        agent = agents.preset(*label.split())
        started = agent.settled().initializer
        found = agent.optimizer, agent.columns, agent.networks, started, agent.target_period
        assert found == (optimizer, columns, networks, initializer, 2000), label
        explores = {"bootstrapped_dqn paper": "one_hot", "rem online": "uniform"}
        assert getattr(agent, "explore", "mean") == explores.get(label, "mean"), label
    assert (agents.C51().low, agents.C51().high) == (-10, 10)
    assert agents.Rem().mixture == Mixture("uniform", count=1)
    assert RmsProp() == RmsProp(learning_rate=2.5e-4, decay=0.95, epsilon=1e-5)
    assert Adam() == Adam(learning_rate=5e-5, epsilon=0.01 / 32, b1=0.9, b2=0.999)


# Each loss is its paper's equation, written with loops over actions and columns.


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


def softmax(logits: list[float]) -> list[float]:
    weights = [math.exp(logit) for logit in logits]
    return [weight / sum(weights) for weight in weights]


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
    (agents.Cql(), conservative_by_loops(dqn_by_loops, mean_of_row)),
    (agents.Cql(conservatism=0.25, target_limit=0.5), conservative_by_loops(dqn_by_loops, mean_of_row)),
    (agents.QrCql(columns=5), conservative_by_loops(qr_dqn_by_loops, mean_of_row)),
    (agents.C51Cql(columns=5, low=-2.0, high=2.0), conservative_by_loops(c51_by_loops, mean_of_atoms)),
    (agents.RemCql(columns=3), conservative_by_loops(rem_by_loops, mean_of_row)),
    (agents.RemDr3(columns=3), rem_dr3_by_loops),
    (agents.RemDr3(columns=4, networks=2, feature_penalty=0.5), rem_dr3_by_loops),
    (agents.DiscreteBcq(), discrete_bcq_by_loops),
    (agents.DiscreteBcq(threshold=0.0, logit_decay=0.3), discrete_bcq_by_loops),
    (agents.DiscreteBcq(threshold=0.9, target_limit=0.5), discrete_bcq_by_loops),
    (agents.DiscreteIql(), discrete_iql_by_loops),
    (agents.DiscreteIql(tau=0.9, temperature=0.5, largest_weight=1.1), discrete_iql_by_loops),
    (agents.Dqn(), dqn_by_loops),
    (agents.Dqn(target_limit=0.5), dqn_by_loops),
    (agents.Dqn(huber_limit=0.25), dqn_by_loops),
    (agents.Dqn(huber_limit=100.0), dqn_by_loops),
    (agents.DiscreteBcq(huber_limit=0.25), discrete_bcq_by_loops),
    (agents.Rem(columns=3, huber_limit=0.25), rem_by_loops),
    (agents.EnsembleDqn(columns=3, huber_limit=0.25), ensemble_by_loops),
    (agents.QrDqn(columns=5, target_limit=0.5), qr_dqn_by_loops),
    (agents.QrDqn(columns=5, over_quantiles="mean"), qr_dqn_by_loops),
    (agents.Rem(columns=3, target_limit=0.5), rem_by_loops),
    (agents.EnsembleDqn(columns=3, target_limit=0.5), ensemble_by_loops),
    (agents.AveragedEnsembleDqn(columns=3, target_limit=0.5), averaged_by_loops),
    (agents.MinimumEnsembleDqn(columns=3, target_limit=0.5), minimum_by_loops),
    (agents.QrDqn(columns=1), qr_dqn_by_loops),
    (agents.QrDqn(columns=5), qr_dqn_by_loops),
    (agents.Rem(columns=3), rem_by_loops),
    (agents.Rem(columns=3, mixture=Mixture(count=3)), rem_by_loops),
    (agents.Rem(columns=3, networks=3, mixture=Mixture("mean")), rem_by_loops),
    (agents.EnsembleDqn(columns=5), ensemble_by_loops),
    (agents.BootstrappedDqn(), ensemble_by_loops),
    (agents.AveragedEnsembleDqn(columns=5), averaged_by_loops),
    (agents.AveragedEnsembleDqn(columns=4, networks=2), averaged_by_loops),
    (agents.MinimumEnsembleDqn(columns=5), minimum_by_loops),
    (agents.C51(), c51_by_loops),
    (agents.C51(columns=5, low=-0.5, high=0.75), c51_by_loops),  # most rewards lie outside
    (agents.C51(columns=2, low=-20.0, high=20.0), c51_by_loops),
    (agents.HlGauss(), hl_gauss_by_loops),
    (agents.HlGauss(columns=5, low=-0.5, high=0.75, spread=1.5), hl_gauss_by_loops),  # as above
    (agents.QrRem(columns=12, heads=3), qr_rem_by_loops),
    (agents.QrRem(columns=12, heads=3, target_limit=0.5), qr_rem_by_loops),
    (agents.QrRem(columns=12, heads=3, networks=2, mixture=Mixture("mean")), qr_rem_by_loops),
    (agents.C51Rem(columns=12, heads=3), c51_rem_by_loops),
    (agents.C51Rem(columns=12, heads=3, limit=0.5, mixture=Mixture("one_hot")), c51_rem_by_loops),
    (agents.BehaviourCloning(), behaviour_cloning_by_loops),
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


@pytest.mark.parametrize("agent", [agent for agent, _ in EQUATIONS], ids=lambda value: type(value).__name__)
def test_rewards_and_targets_matter_to_an_agent_that_learns_values_and_to_no_other(agent):
    """The target network matters until the episode ends; to behaviour cloning only the action does."""
    q, q_target = random_tables(agent.columns, agent.networks)
    learns_values = agents.name_of(agent) not in LEARN_NO_VALUES
    losses = losses_on(agent, q, q_target)
    difference = np.abs(losses - losses_on(agent, q, q))
    ended = STEPS.discount == 0
    if not isinstance(agent, agents.DiscreteIql):  # whose target values the state itself
        assert difference[ended].max() < 1e-5
    assert (difference[~ended].max() > 1e-3) == learns_values
    doubled = losses_on(agent, q, q_target, STEPS._replace(reward=2 * STEPS.reward))
    assert (np.abs(losses - doubled).max() > 1e-3) == learns_values


# Where two agents must be the same, they are.

ONE_COLUMN = [
    agents.Rem(columns=1),
    agents.EnsembleDqn(columns=1),
    agents.AveragedEnsembleDqn(columns=1),
    agents.MinimumEnsembleDqn(columns=1),
    agents.BootstrappedDqn(columns=1, networks=1),
]


@pytest.mark.parametrize("agent", ONE_COLUMN, ids=lambda agent: type(agent).__name__)
def test_one_column_of_an_ensemble_is_dqn(agent):
    q, q_target = random_tables(columns=1)
    np.testing.assert_allclose(
        losses_on(agent, q, q_target), losses_on(agents.Dqn(), q, q_target), rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize("name", ["rem", "ensemble_dqn", "averaged_ensemble_dqn", "minimum_ensemble_dqn"])
def test_one_column_of_an_ensemble_learns_as_dqn_does(name):
    """One weight of a convex mixture is one: the same losses and the same parameters through 20 steps."""
    dqn = small(agents.Dqn(optimizer=Adam(), network="linear"))
    other = small(agents.agent_class(name)(columns=1, initializer=dqn.initializer, network="linear"))
    dqn_state, dqn_losses = train(dqn, steps=20)
    state, losses = train(other, steps=20)
    np.testing.assert_allclose(dqn_losses["q"], losses["q"], rtol=1e-5)
    for ours, theirs in zip(jax.tree.leaves(dqn_state), jax.tree.leaves(state), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


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


@dataclass(frozen=True)
class Fixed:
    """A mixture that is always these weights, for Rem to mix with."""

    weights: tuple[float, ...]

    def draw(self, key, heads: int):
        assert heads == len(self.weights)
        return jnp.array(self.weights)[:, None]


def only(head: int, table: RandomTable) -> RandomTable:
    return RandomTable(table.weight[:, :, [head]], table.bias[:, [head]])


def test_a_one_hot_mixture_is_dqn_on_one_head_and_their_average_is_the_ensemble():
    q, q_target = random_tables(columns=3)
    by_head = [losses_on(agents.Dqn(), only(k, q), only(k, q_target)) for k in range(3)]
    for k in range(3):
        rem = agents.Rem(columns=3, mixture=Fixed(tuple(float(i == k) for i in range(3))))
        np.testing.assert_allclose(losses_on(rem, q, q_target), by_head[k], rtol=1e-5, atol=1e-6)
    one_hot = Mixture("one_hot")
    ((drawn,),) = (np.flatnonzero(alpha) for alpha in alphas_of(one_hot, 3))
    rem = agents.Rem(columns=3, mixture=one_hot)
    np.testing.assert_allclose(losses_on(rem, q, q_target), by_head[drawn], rtol=1e-5, atol=1e-6)
    ensemble = losses_on(agents.EnsembleDqn(columns=3), q, q_target)
    np.testing.assert_allclose(ensemble, np.mean(by_head, axis=0), rtol=1e-5, atol=1e-6)


def test_several_mixtures_are_the_average_of_the_single_ones():
    q, q_target = random_tables(columns=3)
    mixture = Mixture(count=3)
    single = [
        losses_on(agents.Rem(columns=3, mixture=Fixed(tuple(alpha))), q, q_target)
        for alpha in alphas_of(mixture, 3)
    ]
    assert np.std(single, axis=0).max() > 0.05  # three different ones
    together = losses_on(agents.Rem(columns=3, mixture=mixture), q, q_target)
    np.testing.assert_allclose(together, np.mean(single, axis=0), rtol=1e-5, atol=1e-6)


def test_the_mean_mixture_is_dqn_on_the_mean_head():
    q, q_target = random_tables(columns=5)
    mean_heads = [
        RandomTable(table.weight.mean(axis=2, keepdims=True), table.bias.mean(axis=1, keepdims=True))
        for table in (q, q_target)
    ]
    expected = losses_on(agents.Dqn(), *mean_heads)
    rem = losses_on(agents.Rem(columns=5, mixture=Mixture("mean")), q, q_target)
    np.testing.assert_allclose(rem, expected, rtol=1e-5, atol=1e-6)


def test_equal_heads_make_every_ensemble_the_same():
    one = random_tables(columns=1)
    tables = [RandomTable(table.weight.repeat(4, axis=2), table.bias.repeat(4, axis=1)) for table in one]
    expected = losses_on(agents.Dqn(), *one)
    for name in ("ensemble_dqn", "averaged_ensemble_dqn", "minimum_ensemble_dqn", "rem"):
        losses = losses_on(agents.agent_class(name)(columns=4), *tables)
        np.testing.assert_allclose(losses, expected, rtol=1e-5, atol=1e-6)


def test_bootstrapped_dqn_is_the_ensemble_on_separate_networks():
    q, q_target = random_tables(columns=4, networks=4)
    bootstrapped = agents.BootstrappedDqn()
    ensemble = agents.EnsembleDqn(**vars(bootstrapped))
    assert ensemble != bootstrapped
    np.testing.assert_array_equal(losses_on(bootstrapped, q, q_target), losses_on(ensemble, q, q_target))


ACT_OTHERWISE = {"c51", "hl_gauss", "c51_cql", "c51_rem", "discrete_bcq", "discrete_iql"}


@pytest.mark.parametrize("name", sorted({label.split("-")[0] for label in TABLES} - ACT_OTHERWISE))
def test_an_agent_acts_by_the_mean_of_its_columns(name):
    agent = narrow(agents.agent_class(name)())
    assert_acts_by(agent, lambda row: sum(row) / agent.columns)


@pytest.mark.parametrize("kind", [agents.C51, agents.C51Cql, agents.HlGauss])
def test_c51_acts_by_the_mean_of_the_distribution(kind):
    agent = narrow(kind())
    atoms = even_atoms(-10, 10, 8)
    assert_acts_by(agent, lambda row: sum(z * p for z, p in zip(atoms, softmax(row), strict=True)))


def test_c51_rem_acts_by_the_mean_of_the_evenly_mixed_distributions():
    agent = narrow(agents.C51Rem())
    atoms = even_atoms(-10, 10, 2)

    def value(row):
        mixed = mixed_heads(agent, row, alpha=[1 / 4] * 4, read=softmax)
        return sum(z * p for z, p in zip(atoms, mixed, strict=True))

    assert_acts_by(agent, value)


def assert_acts_by(agent: TableAgent, value_of_row):
    params, key = agent.init(jax.random.PRNGKey(0), VECTORS), jax.random.PRNGKey(1)
    for observation in transitions(VECTORS, count=5).observation:
        table = agent.table(VECTORS)(params["q"], observation)
        expected = [value_of_row(row) for row in table.columns().tolist()]
        np.testing.assert_allclose(agent.values(table), expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(agent.estimate(VECTORS, params, observation), max(expected), rtol=1e-4)
        assert agent.action(VECTORS, params, observation, key) == expected.index(max(expected))


# Collecting: one mixture of the heads plays an episode from its beginning to its end; evaluating: their mean.

LANES = 40
COMPROMISE = [[1.0, 0.0, 0.6], [0.0, 1.0, 0.6]]  # each head wants an action of its own, their mean a third


def voters(explore: str = "mean") -> tuple[Learner, dict]:
    """Two separate networks that value the three actions as above, whatever they see."""
    agent = agents.EnsembleDqn(columns=2, networks=2, network="linear", explore=explore)
    params = {
        "torso": [],
        "weight": jnp.zeros((1, 2, 6, 3, 1)),
        "bias": jnp.array(COMPROMISE)[None, :, :, None],
    }
    return Learner(agent, VECTORS), {"q": params}


def collect(learner, params, episode: int, turn: int, epsilon: float = 0.0) -> np.ndarray:
    """The action of each lane, all in the same episode by number."""
    observations = np.random.default_rng(turn).normal(size=(1, LANES, 6)).astype(np.float32)
    episodes = np.full((1, LANES), episode, np.int32)
    key = jax.random.PRNGKey(0)
    return np.array(act_online(learner, params, observations, epsilon, key, turn, episodes))[0]


def evaluate(learner, params, turn: int, epsilon: float = 0.0) -> np.ndarray:
    observations = np.random.default_rng(turn).normal(size=(1, LANES, 6)).astype(np.float32)
    return np.array(act(learner, params, observations, epsilon, jax.random.PRNGKey(0), turn))[0]


def chi_square(actions) -> float:
    """Pearson's distance from even use of three actions; above 13.8 once in a thousand."""
    actions = np.ravel(actions).tolist()
    expected = len(actions) / 3
    return sum((actions.count(a) - expected) ** 2 / expected for a in range(3))


def test_one_head_plays_a_whole_episode_and_another_the_next():
    learner, params = voters(explore="one_hot")
    played = []
    for episode in range(12):
        heads = collect(learner, params, episode, turn=episode)
        for later in (episode + 50, episode + 1000):
            np.testing.assert_array_equal(collect(learner, params, episode, turn=later), heads)
        played.append(heads)
    assert {*np.ravel(played)} == {0, 1}  # never the compromise
    np.testing.assert_allclose(np.mean(played), 0.5, atol=0.07)  # 3 deviations of 480 fair coins
    lanes = [tuple(heads) for heads in np.array(played).T.tolist()]
    assert all(len(set(heads)) == 2 for heads in lanes)  # within 12 episodes each lane has had both heads
    assert len(set(lanes)) > LANES / 2  # and the lanes do not change heads together


def test_the_head_that_plays_is_the_one_its_episodes_key_draws():
    learner, stacked = voters(explore="one_hot")
    params, key = jax.tree.map(lambda leaf: leaf[0], stacked), jax.random.PRNGKey(1)
    for seed in range(5):
        episode_key = jax.random.PRNGKey(seed)
        action = learner.agent.online_action(VECTORS, params, jnp.zeros(6), key, episode_key)
        assert Mixture(learner.agent.explore).draw(episode_key, 2)[action, 0] == 1


def test_rem_explores_with_one_mixture_per_episode():
    """A mixture is not a head: it can want what no head wants."""
    learner, params = voters(explore=agents.preset("rem", "online").explore)
    played = []
    for episode in range(12):
        actions = collect(learner, params, episode, turn=episode)
        np.testing.assert_array_equal(collect(learner, params, episode, turn=episode + 77), actions)
        played.append(actions)
    assert {*np.ravel(played)} == {0, 1, 2}
    assert agents.Rem.online_action is agents.EnsembleDqn.online_action  # what holds for these holds for REM


def test_evaluation_plays_the_mean_whatever_explores():
    assert {*evaluate(*voters(explore="one_hot"), turn=0)} == {2}


def test_without_a_mixture_to_explore_with_the_mean_collects():
    learner, stacked = voters(explore="mean")
    params, key = jax.tree.map(lambda leaf: leaf[0], stacked), jax.random.PRNGKey(0)
    for seed in range(5):
        assert learner.agent.online_action(VECTORS, params, jnp.zeros(6), key, jax.random.PRNGKey(seed)) == 2


@pytest.mark.parametrize(
    "play", [evaluate, functools.partial(collect, episode=0)], ids=["evaluate", "collect"]
)
def test_epsilon_one_is_any_action_and_a_smaller_one_mostly_the_best(play):
    learner, params = voters(explore="one_hot")
    assert chi_square([play(learner, params, turn=turn, epsilon=1.0) for turn in range(30)]) < 13.8
    best = play(learner, params, turn=0, epsilon=0.0)
    mostly = [play(learner, params, turn=turn, epsilon=0.3) == best for turn in range(30)]
    np.testing.assert_allclose(np.mean(mostly), 0.7 + 0.3 / 3, atol=0.035)  # 3 deviations of 1,200


def test_the_random_agent_plays_every_action_equally_often():
    learner = Learner(agents.Random(), VECTORS)
    played = np.array([evaluate(learner, {}, turn=turn) for turn in range(30)])
    assert chi_square(played) < 13.8
    assert len({tuple(lane) for lane in played.T.tolist()}) == LANES  # lanes play each for itself
    assert chi_square([0] * 20 + [1] * 40 + [2] * 60) > 13.8


def test_the_random_agent_plays_every_corner_of_a_box_equally_often():
    box = dataclasses.replace(CONTROL, action_low=(-2.0, 0.0), action_high=(2.0, 1.0))
    learner = Learner(agents.Random(), box)
    learner.agent.check(box)
    observations = np.zeros((1, LANES, 6), np.float32)
    played = [act(learner, {}, observations, 0.0, jax.random.PRNGKey(0), turn)[0] for turn in range(30)]
    low, high = np.array(box.action_low), np.array(box.action_high)
    shares = (np.concatenate(played) - low) / (high - low)
    assert shares.min() >= 0 and shares.max() <= 1
    for part in range(2):
        np.testing.assert_allclose(
            np.quantile(shares[:, part], (0.25, 0.5, 0.75)), (0.25, 0.5, 0.75), atol=0.06
        )
    assert abs(np.corrcoef(shares.T)[0, 1]) < 0.1


def test_the_policy_of_the_random_agent_is_random_too():
    policy = Policy(Learner(agents.Random(), VECTORS), {})
    assert chi_square([policy(np.zeros(6, np.float32)) for _ in range(150)]) < 13.8
    assert chi_square(policy(np.zeros((600, 6), np.float32))) < 13.8


def test_the_policy_of_a_table_agent_says_the_same_each_time():
    learner, params = voters()
    policy = Policy(learner, jax.tree.map(lambda leaf: leaf[0], params))
    assert [policy(np.zeros(6, np.float32)) for _ in range(3)] == [2, 2, 2]


# Every agent that learns values finds the optimal ones of a chain small enough to solve by hand.

LEFT, RIGHT, STAY, GAMMA = 0, 1, 2, 0.9
PLACES = np.eye(4, 6, dtype=np.float32)  # four states as one-hot vectors, of six numbers as VECTORS has it


def chain_step(state: int, action: int) -> tuple[int, float, bool]:
    """Four states in a row; walking right out of the last pays one and ends the episode."""
    if action == RIGHT:
        return min(state + 1, 3), float(state == 3), state == 3
    return max(state - 1, 0) if action == LEFT else state, 0.0, False


def optimal_values() -> list[list[float]]:
    """Value iteration, to convergence."""
    q = [[0.0, 0.0, 0.0] for _ in range(4)]
    for _ in range(200):
        for state in range(4):
            for action in (LEFT, RIGHT, STAY):
                arrival, reward, ended = chain_step(state, action)
                q[state][action] = reward if ended else reward + GAMMA * max(q[arrival])
    return q


def chain() -> Transition:
    """Every state and action in turn, again and again, through 64 rows."""
    steps = []
    for row in range(64):
        state, action = row // 3 % 4, row % 3
        arrival, reward, ended = chain_step(state, action)
        steps.append((PLACES[state], action, reward, 0.0 if ended else GAMMA, PLACES[arrival]))
    observation, action, reward, discount, next_observation = map(np.array, zip(*steps, strict=True))
    return Transition(
        observation, np.int32(action), np.float32(reward), np.float32(discount), next_observation
    )


def test_the_chain_is_worth_one_discounted_by_the_steps_to_its_end():
    q = optimal_values()
    for state in range(4):
        np.testing.assert_allclose(q[state][RIGHT], 0.9 ** (3 - state), rtol=1e-9)
        np.testing.assert_allclose(q[state][LEFT], 0.9 * 0.9 ** (3 - max(state - 1, 0)), rtol=1e-9)
        np.testing.assert_allclose(q[state][STAY], 0.9 * 0.9 ** (3 - state), rtol=1e-9)


def values_at_every_place(agent: TableAgent, state) -> np.ndarray:
    """Of the only seed, (4, A)."""
    params = jax.tree.map(lambda leaf: leaf[0], state.params["q"])
    return np.array([agent.values(agent.table(VECTORS)(params, place)) for place in PLACES])


def assert_reaches_the_values_of_the_chain(agent: TableAgent, within: float = 0.02, steps: int = 4000):
    state, data = None, chain()
    for _ in range(steps // 250):
        state, _ = train(agent, steps=250, state=state, data=data)
        values = values_at_every_place(agent, state)
        if np.abs(values - optimal_values()).max() < within / 2:
            break
    np.testing.assert_allclose(values, optimal_values(), rtol=0, atol=within)


# One agent of each kind of table: one value, heads, quantiles, atoms, separate networks.
KINDS_OF_TABLES = {"dqn-adam", "rem-paper", "qr_dqn-paper", "c51-paper", "rem-networks-4"}


@pytest.mark.parametrize(
    "agent",
    [
        pytest.param(agent, id=label, marks=() if label in KINDS_OF_TABLES else pytest.mark.slow)
        for label, agent in LEARNERS.items()
    ],
)
def test_every_agent_that_learns_values_finds_those_of_the_chain(agent):
    assert_reaches_the_values_of_the_chain(agent)


def test_behaviour_cloning_finds_how_often_each_action_was_logged():
    """The likelihood is greatest where the softmax over actions is their frequencies: here 1 to 8 in 16."""
    agent, counts = default("behaviour_cloning"), [[4, 4, 8], [8, 7, 1], [3, 8, 5], [6, 6, 4]]
    logged = [action for row in counts for action, count in enumerate(row) for _ in range(count)]
    data = chain()._replace(observation=PLACES.repeat(16, axis=0), action=np.int32(logged))
    state, _ = train(agent, steps=1000, data=data)
    for values, row in zip(values_at_every_place(agent, state).tolist(), counts, strict=True):
        np.testing.assert_allclose(softmax(values), np.array(row) / 16, rtol=0, atol=0.05)


# Conservative agents find the best policy where the log shows every action, and stay with the log elsewhere.


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("cql", "discrete_bcq", "discrete_iql") else pytest.mark.slow)
        for name in sorted(CONSERVATIVE)
    ],
)
def test_a_conservative_agent_finds_the_best_policy_of_the_chain(name):
    agent = dataclasses.replace(default(name), **({"conservatism": 0.02} if "cql" in name else {}))
    state, _ = train(agent, steps=500, data=chain())
    assert values_at_every_place(agent, state).argmax(axis=1).tolist() == [RIGHT] * 4


def narrow_log() -> Transition:
    """The chain where the log shows LEFT and STAY alone, and other actions are never tried."""
    data = chain()
    logged = np.where(data.action == RIGHT, STAY, data.action).astype(np.int32)
    arrivals = [
        chain_step(int(np.argmax(place)), int(a)) for place, a in zip(data.observation, logged, strict=True)
    ]
    return data._replace(
        action=logged,
        reward=np.float32([1.0 if a == STAY else 0.0 for a in logged]),
        discount=np.float32([GAMMA] * len(logged)),
        next_observation=np.stack([PLACES[arrival] for arrival, _, _ in arrivals]),
    )


@pytest.mark.parametrize("name", sorted(CONSERVATIVE - {"rem_dr3"}))
def test_a_conservative_agent_does_not_choose_what_the_log_never_shows(name):
    """Staying pays one for ever; whatever RIGHT is thought to be worth, nobody has tried it."""
    agent = default(name)
    state, _ = train(agent, steps=500, data=narrow_log())
    assert values_at_every_place(agent, state).argmax(axis=1).tolist() == [STAY] * 4


@pytest.mark.parametrize(
    ("name", "base"), [("cql", "dqn"), ("qr_cql", "qr_dqn"), ("c51_cql", "c51"), ("rem_cql", "rem")]
)
def test_without_conservatism_an_agent_is_the_one_below(name, base):
    agent = dataclasses.replace(default(name), conservatism=0.0)
    below = agents.agent_class(base)(
        **{f.name: getattr(agent, f.name) for f in dataclasses.fields(agents.agent_class(base))}
    )
    q, q_target = random_tables(agent.columns)
    np.testing.assert_array_equal(losses_on(agent, q, q_target), losses_on(below, q, q_target))


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


MAXIMA = {label: agent for label, agent in TABLES.items() if agent.targets_a_maximum}


@pytest.mark.parametrize("label", MAXIMA)
def test_double_targets_are_the_target_networks_value_of_the_networks_choice(label):
    """van Hasselt et al. 2016, eq. 4: the maximum is over one action, which the network chooses."""
    plain = MAXIMA[label]
    double, spec = dataclasses.replace(plain, double=True), spec_for(plain)
    batch, key = transitions(spec, 8), jax.random.PRNGKey(2)
    params, targets = plain.init(jax.random.PRNGKey(0), spec), plain.init(jax.random.PRNGKey(1), spec)
    chosen = [int(plain.action(spec, params, each, key)) for each in batch.next_observation]
    only = jnp.array([[action == each for action in range(spec.actions)] for each in chosen])
    (loss,), (doubled,) = plain.objectives(spec), double.objectives(spec)
    expected = loss.loss(params, targets, batch._replace(next_allowed=only), key)
    np.testing.assert_allclose(doubled.loss(params, targets, batch, key), expected, rtol=1e-5)


def test_double_dqn_by_hand():
    agent, spec = agents.Dqn(double=True), VECTORS
    batch, key = transitions(spec, 8), jax.random.PRNGKey(2)
    params, targets = agent.init(jax.random.PRNGKey(0), spec), agent.init(jax.random.PRNGKey(1), spec)
    table = agent.table(spec)
    errors = []
    for number in range(8):
        step = jax.tree.map(lambda leaf, number=number: leaf[number], batch)
        here = table(params["q"], step.observation).mean()[step.action]
        best = int(table(params["q"], step.next_observation).mean().argmax())
        then = table(targets["q"], step.next_observation).mean()[best]
        errors.append(float(step.reward + step.discount * then - here))
    expected = mean(huber_by_definition(agent, error) for error in errors)
    (objective,) = agent.objectives(spec)
    np.testing.assert_allclose(objective.loss(params, targets, batch, key), expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["behaviour_cloning", "discrete_iql"])
def test_an_agent_without_a_maximum_refuses_double_targets(name):
    with pytest.raises(UsageError, match="has no maximum over the next actions: leave double out"):
        dataclasses.replace(default(name), double=True)
