"""The folder is the registry: `agents/rem.py` defines the agent "rem" as the class `Rem`."""

import dataclasses
import inspect
import json
import sys
from typing import Any

from optimist import plugins
from optimist.agents._actor_critic import ActorAgent, ActorCritic
from optimist.agents._agent import Agent, Objective
from optimist.agents._table_agent import (
    DistributionalEnsemble,
    EnsembleAgent,
    HuberAgent,
    ManyHeads,
    TableAgent,
    ValueAgent,
)
from optimist.equations.optimizers import Adam, RmsProp
from optimist.errors import UsageError, did_you_mean

__all__ = [  # base classes for new agents; `__getattr__` finds the agents themselves
    "ActorAgent",
    "ActorCritic",
    "Agent",
    "DistributionalEnsemble",
    "EnsembleAgent",
    "HuberAgent",
    "ManyHeads",
    "Objective",
    "TableAgent",
    "ValueAgent",
]
OPTIMIZERS = {"adam": Adam, "rmsprop": RmsProp}


def available() -> list[str]:
    """The names of all agents of the package."""
    return plugins.own("agents")


def agent_class(name: str) -> type[Agent]:
    """The class of an agent of this folder, of a user's "my_package:Rem2", or of an entry point."""
    own = name.replace("-", "_").lower()
    kind = plugins.find("agents", own if own in available() else name)
    if not (isinstance(kind, type) and issubclass(kind, Agent)):
        raise UsageError(f'"{name}" is not an agent: it does not inherit optimist.agents.Agent')
    if missing := sorted(kind.__abstractmethods__):
        raise UsageError(f"{name} is not complete: it must define {', '.join(missing)}")
    if inspect.get_annotations(kind) and "__dataclass_fields__" not in vars(
        kind
    ):  # they would be no settings
        raise UsageError(f"{name} is not a dataclass: write @dataclass(frozen=True, kw_only=True) above it")
    return kind


def presets(name: str) -> dict[str, Agent]:
    """The named settings of an agent; the first is the default."""
    kind = agent_class(name)
    defined = vars(sys.modules[kind.__module__]).get("PRESETS", {})
    for label, agent in defined.items():
        if not isinstance(agent, Agent):
            raise UsageError(
                f'PRESETS of {name}: "{label}" is {agent!r}, not an agent such as {kind.__name__}()'
            )
    return {label: agent for label, agent in defined.items() if type(agent) is kind} or {"paper": kind()}


def preset(name: str, chosen: str | None = None) -> Agent:
    """An agent by its name and the name of its preset."""
    known = presets(name)
    if chosen is not None and chosen not in known:
        raise UsageError(f'{name} has no preset "{chosen}": {did_you_mean(chosen, known)}')
    return known[chosen or next(iter(known))]


def from_preset(text: str) -> tuple[str, str]:
    """The names of an agent and its preset: "dqn-nature" is the agent "dqn" with its preset "nature"."""
    words = {
        f"{name.replace('_', '-')}-{chosen}": (name, chosen)
        for name in available()
        for chosen in presets(name)
    }
    if text.replace("_", "-") not in words:
        raise UsageError(f'there is no preset "{text}": {did_you_mean(text, words)}')
    return words[text.replace("_", "-")]


def name_of(agent: Agent) -> str:
    """The name by which every process can find the agent's class."""
    folder, _, file = type(agent).__module__.rpartition(".")
    return file if folder == __name__ else plugins.address("agents", type(agent))


def short_name(agent: Agent) -> str:
    """The agent's name without its module, for a title or a folder."""
    return name_of(agent).rpartition(":")[2]


def described(agent: Agent) -> dict:
    """The agent as plain values, for a configuration file; UsageError if the file could not be read back."""
    agent = agent.settled()
    optimizer = {"name": type(agent.optimizer).__name__.lower(), **dataclasses.asdict(agent.optimizer)}
    whole = {"name": name_of(agent), **dataclasses.asdict(agent), "optimizer": optimizer}
    description = _without_none(whole)
    try:
        same = _built(json.loads(json.dumps(description))) == agent
    except (TypeError, ValueError, KeyError):
        same = False
    if not same:
        raise UsageError(
            f"{name_of(agent)} could not be read back from a run folder: its fields must be numbers, "
            "strings, booleans, or frozen dataclasses of these that have the class of the default"
        )
    return description


def _without_none(table: dict) -> dict:
    """The table without values that are None: a configuration file cannot hold them."""
    return {
        name: _without_none(value) if isinstance(value, dict) else value
        for name, value in table.items()
        if value is not None
    }


def from_description(description: dict) -> Agent:
    """The agent that a configuration describes. The file may be malicious: a class of a module that the user
    did not allow is refused (`plugins.check_trusted`)."""
    plugins.check_trusted("agents", description["name"])
    if isinstance(network := description.get("network"), dict):
        plugins.check_trusted("torsos", str(network.get("torso", "")))
    return _built(description)


def _built(description: dict) -> Agent:
    fields = dict(description)
    kind, settings = agent_class(fields.pop("name")), dict(fields.pop("optimizer"))
    inner: dict[str, Any] = {field.name: type(field.default) for field in dataclasses.fields(kind)}
    own = inner["optimizer"]  # a user's agent may have an optimiser of its own
    optimizer = {own.__name__.lower(): own, **OPTIMIZERS}[settings.pop("name")](**settings)
    records = {name: inner[name](**value) for name, value in fields.items() if isinstance(value, dict)}
    return kind(**{**fields, **records}, optimizer=optimizer)


def __getattr__(attribute: str):
    """`optimist.agents.Rem`, imported on first use."""
    for name in available():
        if name.title().replace("_", "") == attribute:
            return agent_class(name)
    raise AttributeError(f"optimist.agents has no {attribute}")
