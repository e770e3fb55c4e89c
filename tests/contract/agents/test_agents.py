"""Every file in the agents folder is an agent that keeps one contract; settings without sense are refused."""

import dataclasses
import json
import math
import re
import sys
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optimist import agents
from optimist.equations.mixtures import Mixture
from optimist.equations.optimizers import Adam, RmsProp
from optimist.errors import DataError, UsageError
from optimist.training.learner import Learner, advance
from small_agents import (
    CONTROL,
    PRESETS,
    VECTORS,
    copied,
    default,
    every_table,
    learns,
    same_bits,
    spec_for,
    train,
    transitions,
)

# The contract: each clause takes any agent. An agent without objectives keeps the clauses on losses and
# targets by having neither; where it must differ from the others the clause says how.


@cache
def four_steps(agent, seed):
    """The state and the losses after four steps, which no clause may consume."""
    return train(agent, steps=4, seed=seed)


def its_losses_are_finite_scalars(agent):
    state, losses = four_steps(agent, 5)
    assert sorted(losses) == sorted(state.params)
    for series in losses.values():
        assert series.shape == (4, 1)  # steps and seeds: of a minibatch, one number
        assert np.all(np.isfinite(series))


def its_actions_are_those_of_the_data(agent):
    """One action of the right shape, type and range, with any key; and so while it collects."""
    spec, key = spec_for(agent), jax.random.PRNGKey(0)
    params = jax.tree.map(lambda leaf: leaf[0], four_steps(agent, 5)[0].params)
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
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(agent, dataclasses.fields(agent)[0].name, None)
    assert hash(agent) == hash(dataclasses.replace(agent)) and agent == dataclasses.replace(agent)


def its_description_as_text_builds_it_again(agent):
    assert agents.from_description(json.loads(json.dumps(agents.described(agent)))) == agent.settled()


def every_group_learns(agent):
    """That an objective changes only its own group is a fact of the learner, and tested there."""
    before = Learner(agent, spec_for(agent)).init((5,)).params
    after, _ = four_steps(agent, 5)
    assert not any(same_bits(before[name], after.params[name]) for name in before)


def equal_seeds_give_equal_bits_and_others_other_bits(agent):
    (state, losses), (other_state, other_losses) = four_steps(agent, 5), four_steps(agent, 6)
    assert same_bits((state, losses), train(agent, steps=4, seed=5))
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
    every_group_learns,
    equal_seeds_give_equal_bits_and_others_other_bits,
    nothing_is_compiled_twice,
    the_target_follows_after_steps_0_3_6_and_stays_between,
    its_docstrings_name_a_paper_and_its_year,
]


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.parametrize("name", agents.available())
def test_every_agent_keeps_the_contract(name, clause):
    clause(default(name))


FULL_SIZE = [agent for name in agents.available() for agent in agents.presets(name).values()]
ODD = [
    agents.BootstrappedDqn(explore="mean"),
    agents.Rem(mixture=Mixture("dirichlet", 0.1, 3), explore="one_hot"),
    agents.C51(low=-1.0, high=2.0, optimizer=RmsProp(decay=0.5)),
    agents.QrRem(columns=6, heads=2, mixture=Mixture("mean")),
]


@pytest.mark.parametrize("agent", FULL_SIZE + ODD, ids=agents.short_name)
def test_an_agent_of_any_settings_is_built_again_from_its_description(agent):
    its_description_as_text_builds_it_again(agent)


@pytest.mark.parametrize("label", PRESETS)
def test_twenty_losses_are_those_recorded(label, golden):
    """A change of these numbers is a change of the algorithm, the data order or the random draws."""
    _, losses = train(PRESETS[label], steps=20)
    golden(label, {name: series[:, 0] for name, series in losses.items()})


@every_table
def test_a_table_agent_refuses_vector_actions(agent):
    said = f"{type(agent).__name__} chooses among discrete actions.*size 2: use an agent such as "
    with pytest.raises(DataError, match=said + agent.vector_peer):
        agent.check(CONTROL)


# Adding an agent is adding a file.

FOLDER = Path(agents.__file__).parent
DOUBLE_DQN = '''\
"""Double Q-learning with deep networks."""

from dataclasses import dataclass
from functools import cache

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


def test_the_files_of_the_folder_are_the_agents():
    assert agents.available() == sorted(file.stem for file in FOLDER.glob("[a-z]*.py"))


def test_an_agent_in_a_users_file_keeps_the_contract(tmp_path):
    (tmp_path / "double_dqn.py").write_text(DOUBLE_DQN)
    name = f"{tmp_path}/double_dqn.py:DoubleDqn"
    assert list(agents.presets(name)) == ["paper"]
    agent = default(name)
    assert type(agent) is agents.agent_class(name) and agents.short_name(agent) == "DoubleDqn"
    for clause in CONTRACT:
        clause(agent)


def test_an_agent_is_found_by_its_name_in_any_spelling():
    assert agents.agent_class("qr-dqn") is agents.agent_class("QR_DQN") is agents.QrDqn
    with pytest.raises(UsageError, match='there is no agent "ren": did you mean "rem"'):
        agents.agent_class("ren")
    with pytest.raises(AttributeError, match="no Ren"):
        _ = agents.Ren


def test_the_first_preset_is_the_default_and_others_change_some_settings():
    assert agents.preset("dqn") == agents.preset("dqn", "nature") != agents.preset("dqn", "adam")
    assert agents.preset("rem", "matched-epsilon").optimizer == Adam(head_epsilon=Adam().epsilon / 200)
    for label, count in (("networks-4", 4), ("networks-16", 16), ("online", 4)):
        rem = agents.preset("rem", label)
        assert (rem.columns, rem.networks, rem.settled().initializer) == (count, count, "glorot")
    with pytest.raises(UsageError, match='dqn has no preset "natur": did you mean "nature"'):
        agents.preset("dqn", "natur")


REFUSED = {
    "negative conservatism": (agents.Cql, {"conservatism": -1.0}, "conservatism is -1.0"),
    "endless conservatism": (agents.QrCql, {"conservatism": math.inf}, "conservatism is inf"),
    "a third column of BCQ": (agents.DiscreteBcq, {"columns": 3}, "columns is 3"),
    "nothing is likely enough": (agents.DiscreteBcq, {"threshold": 1.0}, "threshold is 1.0"),
    "a fifth column of IQL": (agents.DiscreteIql, {"columns": 5}, "columns is 5"),
    "an expectile of one": (agents.DiscreteIql, {"tau": 1.0}, "tau is 1.0"),
    "negative feature penalty": (agents.RemDr3, {"feature_penalty": -0.1}, "feature_penalty is -0.1"),
    "no columns": (agents.Rem, {"columns": 0}, "0 columns on 1 networks"),
    "no networks": (agents.Rem, {"networks": 0}, "200 columns on 0 networks"),
    "uneven networks": (agents.BootstrappedDqn, {"columns": 4, "networks": 3}, "4 columns on 3 networks"),
    "no target period": (agents.Dqn, {"target_period": 0}, "target_period is 0"),
    "no heads": (agents.QrRem, {"heads": 0}, "200 columns do not divide into 0 heads"),
    "uneven heads": (agents.QrRem, {"heads": 7}, "200 columns do not divide into 7 heads"),
    "many mixtures": (agents.QrRem, {"mixture": Mixture(count=2)}, "2 mixtures a minibatch"),
    "low is high": (agents.C51, {"low": 3.0, "high": 3.0}, "3.0 to 3.0: .* low below high"),
    "endless atoms": (agents.C51, {"high": math.inf}, "-10.0 to inf"),
    "no spread": (agents.HlGauss, {"spread": 0.0}, "spread is 0.0: choose a number above zero"),
    "one atom": (agents.C51, {"columns": 1}, "1 atoms.*2 or more"),
    "no limit": (agents.C51Rem, {"limit": 0.0}, "limit above zero"),
    "a mixture misspelt": (Mixture, {"kind": "dirichlett"}, 'did you mean "dirichlet"'),
    "a way to explore misspelt": (agents.Rem, {"explore": "onehot"}, 'did you mean "one_hot"'),
    "an image network": (agents.C51, {"network": "nature"}, 'needs images.*use "mlp"'),
    "a network misspelt": (agents.QrRem, {"network": "minatr"}, 'did you mean "minatar"'),
    "a hidden layer misspelt": (agents.Td3, {"network": "400x300"}, "write their widths as 400,300"),
    "no hidden layer": (agents.Td3, {"network": "0,3"}, "write their widths as 400,300"),
    "no critics": (agents.Td3, {"critics": 0}, "critics 0: both must be at least 1"),
    "an actor that never learns": (agents.Td3, {"actor_period": 0}, "actor_period 0"),
    "a target that never moves": (agents.Td3, {"target_rate": 0.0}, "target_rate 0.0"),
    "a target without a limit": (
        agents.Td3,
        {"target_limit": math.inf},
        "target_limit is inf",
    ),
    "a target limited to zero": (agents.Rem, {"target_limit": 0}, "above zero, none, or auto"),
    "a negative limit": (agents.QrRem, {"target_limit": -1}, "above zero, none, or auto"),
    "a limit in words": (agents.Iql, {"target_limit": "none at all"}, "above zero, none, or auto"),
    "negative penalty": (agents.Rebrac, {"critic_penalty": -1.0}, "critic_penalty is -1.0"),
    "no weight": (agents.Td3Bc, {"value_weight": -1.0}, "value_weight is -1.0"),
    "decay without Adam": (agents.Ddpg, {"optimizer": RmsProp(), "critic_decay": 0.1}, "a setting of Adam"),
    "one layer": (agents.Ddpg, {"network": "16", "late_action": True}, "late_action needs two hidden layers"),
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


@pytest.mark.parametrize(("kind", "settings", "message"), REFUSED.values(), ids=REFUSED)
def test_a_setting_that_makes_no_sense_is_refused_in_one_line_before_anything_is_compiled(
    kind, settings, message, compilations
):
    with pytest.raises(UsageError, match=message) as refusal:
        kind(**settings).check(VECTORS)
    assert "\n" not in str(refusal.value)
    assert compilations == []


def test_a_compilation_is_noticed(compilations):
    jax.jit(lambda x: x * 1.2345)(jnp.ones(7))
    assert compilations
