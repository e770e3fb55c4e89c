"""The index says what the classes say, so that help needs no JAX."""

import json

import pytest

from optimist.agents import available, presets
from optimist.agents._actor_critic import ActorAgent
from optimist.agents._table_agent import TableAgent
from optimist.cli import index
from optimist.errors import UsageError


@pytest.fixture(scope="module")
def built():
    return json.loads(json.dumps(index.build()))


def test_the_index_is_up_to_date(built):
    assert index.read() == built, "write it anew: python -m optimist.cli.index"


def test_every_setting_is_explained(built):
    tables = [*built["settings"].values(), *(family["settings"] for family in built["environments"].values())]
    tables += [
        format[action]
        for format in built["formats"].values()
        for action in ("read", "write")
        if format[action]
    ]
    tables += [
        preset["settings"] for agent in built["agents"].values() for preset in agent["presets"].values()
    ]
    assert [name for table in tables for name, (_, help, _) in table.items() if not help] == []


@pytest.mark.parametrize("name", available())
def test_agents_of_discrete_actions_are_told_from_those_of_vectors(name):
    agent = next(iter(presets(name).values()))
    kind = (
        "discrete" if isinstance(agent, TableAgent) else "vectors" if isinstance(agent, ActorAgent) else "any"
    )
    assert index.agent(name)["actions"] == kind


@pytest.mark.parametrize(
    ("agent", "preset", "found"),
    [
        (None, None, ("dqn", None)),
        (None, "adam", ("dqn", "adam")),
        (None, "rem-online", ("rem", "online")),
        ("rem", "online", ("rem", "online")),
    ],
)
def test_who_collects_is_dqn_or_whom_the_preset_names(agent, preset, found):
    assert index.player(agent, preset) == found


def test_an_unknown_preset_is_told_the_likely_one():
    with pytest.raises(UsageError, match='did you mean "dqn-nature"'):
        index.player(None, "dqn-natur")
