"""Turns names and options into an agent and settings with every value set.

The Python interface, the command line, the jobs of a study and the demo all use these functions, so that the
same options give the same run.
"""

import inspect
import logging
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from optimist import agents
from optimist.agents._agent import Agent
from optimist.data.transition import Spec
from optimist.errors import UsageError, closest, did_you_mean, in_one_line
from optimist.training.automatic import AUTO
from optimist.training.beginning import Beginning
from optimist.training.kinds import fits, in_words, may_be_none, takes_fractions
from optimist.training.offline_settings import Training
from optimist.training.online_settings import Collection
from optimist.training.recipes import Recipe, recipe_for, replaced

PLAYER = "dqn"  # the default agent of a collection
LISTS = ("hidden", "vae_hidden", "loggers")  # may be a list instead of text with commas
Settings = TypeVar("Settings", Training, Collection)
log = logging.getLogger("optimist")


class Resolved(NamedTuple, Generic[Settings]):
    """An agent and its settings, every value as it will be used."""

    agent: Agent
    settings: Settings


def resolve_training(
    spec: Spec | None,
    agent: Agent | str,
    *,
    preset: str | None = None,
    recipe: str = "auto",
    options: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Resolved[Training]:
    """An agent that learns from data of this spec, and its training.

    An agent given by name gets the recipe's settings; an agent object keeps its own. The recipe "auto" is
    chosen by the spec. `options` are fields of the agent, `settings` fields of the training; a dot reaches
    a field of a nested record, as in "optimizer.epsilon".
    """
    chosen = recipe_for(spec, recipe)
    found = _agent(chosen, agent, preset, options)
    return Resolved(found, _settings(chosen.training, settings, "training", found))


def resolve_collection(
    spec: Spec | None,
    agent: Agent | str | None = None,
    *,
    preset: str | None = None,
    recipe: str = "auto",
    options: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    start: Beginning | None = None,
) -> Resolved[Collection]:
    """The same for an agent that plays an environment of this spec; the default is DQN. A preset without an
    agent may name both: "rem-online". With a `start` the agent is that of the run."""
    if start is not None:
        if agent is not None or preset is not None:
            raise UsageError(f"the agent is that of {start.run.path}: leave the agent and the preset out")
        agent, settings = start.run.learner.agent, {**start.settings, **(settings or {})}
    if agent is None:
        agent, preset = _player(preset)
    chosen = recipe_for(spec, recipe).playing()
    found = _agent(chosen, agent, preset, options)
    if getattr(found, "target_limit", None) == AUTO:
        raise UsageError("target_limit is auto, which follows from a log: give a number to learn online")
    return Resolved(found, _settings(chosen.collection, settings, "collection", found))


def _player(preset: str | None) -> tuple[str, str | None]:
    if preset is None or preset in agents.presets(PLAYER):
        return PLAYER, preset
    return agents.from_preset(preset)


def _agent(
    recipe: Recipe, agent: Agent | str, preset: str | None, options: Mapping[str, Any] | None
) -> Agent:
    own = _named(recipe, agent, preset) if isinstance(agent, str) else None
    if own is not None:
        agent = recipe.fitted(own)
    elif preset is not None:
        raise UsageError(f'preset "{preset}" needs an agent given by name: pass a name, or no preset')
    if not isinstance(agent, Agent):
        raise UsageError(f'{agent!r} is not an agent: pass a name such as "rem", or optimist.agents.Rem()')
    if not isinstance(options or {}, Mapping):
        raise UsageError(f'options is {in_one_line(options)}: name each, as in options={{"columns": 3}}')
    for name, value in (options or {}).items():
        if name not in _taken(agent) and name in _taken(recipe.training):
            whose = agents.name_of(agent)
            raise UsageError(f'"{name}" is no option of {whose}: outside options, pass {name}={value!r}')
    found = with_values(agent, options or {}, agents.name_of(agent))
    for name, (before, now) in (replaced(own, agent, found) if own else {}).items():
        _tell(
            f"{agents.name_of(found)}: the recipe has {name} {now:g} in place of {before:g}; to keep yours, "
            "give it as an option"
        )
    return found


def _named(recipe: Recipe, agent: str, preset: str | None) -> Agent:
    return agents.preset(agent, preset or recipe.preset_of(agents.presets(agent)))


@cache
def _tell(line: str) -> None:
    """Warn once: the jobs of a study are resolved many times."""
    log.warning("%s", line)


def _settings(record: Any, settings: Mapping[str, Any] | None, place: str, agent: Agent) -> Any:
    """The record with these fields; the error for a field of the agent says that it is an option."""
    for name, value in (settings or {}).items():
        if name in _taken(record):
            continue
        if name in _taken(agent) or name in field_names(agent):
            whose, where = agents.name_of(agent), f'options={{"{name}": {value!r}}}'
            raise UsageError(f'"{name}" is an option of {whose}, not a setting of the {place}: pass {where}')
        meant = closest(name, field_names(agent))
        if meant and closest(name, field_names(record)) is None:
            where = f'options={{"{meant}": {value!r}}}'
            raise UsageError(f'{place}: there is no setting "{name}"; for the agent, pass {where}')
    # A recipe that evaluates by steps would go before the episodes that were asked for.
    by_episodes = {"evaluation_steps": None} if "episodes" in (settings or {}) else {}
    return with_values(record, {**by_episodes, **(settings or {})}, place)


def field_names(record: Any, prefix: str = "") -> list[str]:
    """Every field; a field of a nested record has a dot: "optimizer.epsilon"."""
    found = []
    for name in (field.name for field in fields(record)):
        value = getattr(record, name)
        inside = field_names(value, f"{prefix}{name}.") if is_dataclass(value) else [f"{prefix}{name}"]
        found += inside
    return found


def _taken(record: Any) -> list[str]:
    """The arguments of the record's constructor: its fields, and former names of fields."""
    return list(inspect.signature(type(record)).parameters)


def with_values(record: Any, values: Mapping[str, Any], place: str) -> Any:
    """The record with some fields changed; a dot or a table reaches a field of a nested record."""
    changes: dict[str, Any] = {}
    inside: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        first, dot, rest = name.partition(".")
        if first not in _taken(record):
            known = [field.name for field in fields(record)]
            raise UsageError(f'{place}: there is no setting "{name}": {did_you_mean(first, known)}')
        if dot:
            inside.setdefault(first, {})[rest] = value
        elif isinstance(value, Mapping):  # a table of a TOML file: network = { torso = "mlp" }
            inside.setdefault(first, {}).update(value)
        else:
            changes[first] = _fitting(record, first, value, place)
    for first, within in inside.items():
        if not is_dataclass(changes.get(first, getattr(record, first))):
            raise UsageError(f'{place}: "{first}" is a single value: there are no settings inside it')
        changes[first] = with_values(changes.get(first, getattr(record, first)), within, place)
    return replace(record, **changes)  # all at once: 16 columns on 16 networks are valid only together


def _fitting(record: Any, name: str, value: Any, place: str) -> Any:
    """The value of a field, None for "none", 2.0 for 2 and 1000 for 1e3 as on the command line; UsageError if
    a number, a text or a list cannot be its value."""
    value = value.item() if isinstance(value, np.generic) else value
    field = type(record).__dataclass_fields__.get(name)
    if field is None or (name in LISTS and isinstance(value, (list, tuple))):
        return value
    if value == "none" and may_be_none(field.type):
        return None
    if name in LISTS and type(value) is int:  # one width, as in --network.hidden 8
        return str(value)
    if type(value) is float and value.is_integer() and not fits(value, field.type):
        value = int(value)
    plain = value is None or isinstance(value, (bool, int, float, str, list, tuple))
    if plain and not fits(value, field.type):
        raise UsageError(f"{place}: {name} is {in_one_line(repr(value))}, not {in_words(field.type)}")
    return float(value) if type(value) is int and takes_fractions(field.type) else value
