"""From what somebody asks for to a run with every value set: the one place where names become settings.

The Python face, the command line, the jobs of a study and the demo all come through here, so that equal words
give equal runs.
"""

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from optimist import agents
from optimist.agents._agent import Agent
from optimist.data.transition import Spec
from optimist.errors import UsageError, closest, did_you_mean
from optimist.training.offline import Training
from optimist.training.online import Collection
from optimist.training.scales import Scale, scale_for

PLAYER = "dqn"  # who plays where nobody is named
Settings = TypeVar("Settings", Training, Collection)


class Resolved(NamedTuple, Generic[Settings]):
    """An agent and how it is trained, every value as it will be used."""

    agent: Agent
    settings: Settings


def resolve_training(
    spec: Spec | None,
    agent: Agent | str,
    *,
    preset: str | None = None,
    scale: str = "auto",
    options: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Resolved[Training]:
    """An agent that learns from data of this spec.

    A name is fitted to the scale, an agent is taken as it is. The scale is the named one, or the one that
    suits the spec. `options` are fields of the agent, `settings` fields of the training; dots lead into
    records inside them, as in "optimizer.epsilon".
    """
    chosen = scale_for(spec, scale)
    found = _agent(chosen, agent, preset, options)
    return Resolved(found, _settings(chosen.training, settings, "training", found))


def resolve_collection(
    spec: Spec | None,
    agent: Agent | str | None = None,
    *,
    preset: str | None = None,
    scale: str = "auto",
    options: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Resolved[Collection]:
    """The same of an agent that plays an environment of this spec: DQN, where none is named. A preset without
    an agent may name both, as "rem-online" does."""
    if agent is None:
        agent, preset = _player(preset)
    chosen = scale_for(spec, scale)
    found = _agent(chosen, agent, preset, options)
    return Resolved(found, _settings(chosen.collection, settings, "collection", found))


def _player(preset: str | None) -> tuple[str, str | None]:
    if preset is None or preset in agents.presets(PLAYER):
        return PLAYER, preset
    return agents.from_preset(preset)


def _agent(scale: Scale, agent: Agent | str, preset: str | None, options: Mapping[str, Any] | None) -> Agent:
    if isinstance(agent, str):
        agent = scale.fitted(agents.preset(agent, preset))
    elif preset is not None:
        raise UsageError(f'preset "{preset}" belongs to the name of an agent: leave one of the two out')
    if not isinstance(agent, Agent):
        raise UsageError(f'{agent!r} is not an agent: pass "rem" or one such as optimist.agents.Rem()')
    return with_values(agent, options or {}, agents.name_of(agent))


def _settings(record: Any, settings: Mapping[str, Any] | None, place: str, agent: Agent) -> Any:
    """The record with these fields; a field of the agent among them is shown its place."""
    for name, value in (settings or {}).items():
        if name not in _taken(record) and closest(name, field_names(record)) is None:
            meant = name if name in _taken(agent) else closest(name, field_names(agent))
            if meant:
                where = f'options={{"{meant}": {value!r}}}'
                raise UsageError(f'{place}: there is no setting "{name}"; of the agent it is {where}')
    return with_values(record, settings or {}, place)


def field_names(record: Any, prefix: str = "") -> list[str]:
    """Every field, those of records inside it with a dot: "optimizer.epsilon"."""
    found = []
    for name in (field.name for field in fields(record)):
        value = getattr(record, name)
        inside = field_names(value, f"{prefix}{name}.") if is_dataclass(value) else [f"{prefix}{name}"]
        found += inside
    return found


def _taken(record: Any) -> list[str]:
    """The names that its constructor takes: its fields, and the former names of some."""
    return list(inspect.signature(type(record)).parameters)


def with_values(record: Any, values: Mapping[str, Any], place: str) -> Any:
    """The record with some fields changed; dots lead into records inside it."""
    changes: dict[str, Any] = {}
    inside: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        first, dot, rest = name.partition(".")
        if first not in _taken(record):
            known = [field.name for field in fields(record)]
            raise UsageError(f'{place}: there is no setting "{name}": {did_you_mean(first, known)}')
        if dot:
            inside.setdefault(first, {})[rest] = value
        else:
            changes[first] = value
    for first, said in inside.items():
        if not is_dataclass(changes.get(first, getattr(record, first))):
            raise UsageError(f'{place}: "{first}" has no settings inside it: leave ".{next(iter(said))}" out')
        changes[first] = with_values(changes.get(first, getattr(record, first)), said, place)
    return replace(record, **changes)  # at once: 16 columns on 16 networks need both
