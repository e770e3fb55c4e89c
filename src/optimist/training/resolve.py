"""Turns names and options into an agent and settings: the only place where "auto" becomes a value.

The Python interface, the command line, the jobs of a study and the demo all use these functions, so that the
same options give the same run."""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from optimist import agents, envs
from optimist.agents._agent import Agent
from optimist.data.dataset import Dataset
from optimist.data.transition import Spec
from optimist.errors import UsageError, closest, in_one_line
from optimist.training.recipes import Recipe, recipe_for, replaced
from optimist.training.scaling import outlier, suggested_limit, suggested_scale, takes_scaling
from optimist.training.seed_logs import FEWEST, USUAL_SHARE, SeedLogs, parts, whole
from optimist.training.settings import AUTO, Collection, Training, field_names, names_of, with_values

if TYPE_CHECKING:
    from optimist.training.beginning import Beginning

PLAYER = "dqn"  # the default agent of a collection
PAPERS = ("atari", "minatar", "minatar_jax")  # families of environments whose rewards the paper clips
IMPORTED = "dqn-replay"  # the format of the paper's own logs
FOLLOWING = ("clip_rewards", "reward_scale", "observations", "huber_limit", "target_limit", "hold_out")
Kind = TypeVar("Kind", Training, Collection)
log = logging.getLogger("optimist")


class Resolved(NamedTuple, Generic[Kind]):
    """An agent and its settings, every value as it will be used."""

    agent: Agent
    settings: Kind


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
    start: "Beginning | None" = None,
) -> Resolved[Collection]:
    """The same for an agent that plays an environment of this spec; the default is DQN. A preset without an
    agent may name both: "rem-online". With a `start` the agent is that of the run."""
    if start is not None:
        if agent is not None or preset is not None:
            raise UsageError(f"the agent is that of {start.run.path}: leave the agent and the preset out")
        agent, settings = start.run.learner.agent, {**start.settings, **(settings or {})}
    if agent is None:
        agent = PLAYER
        if preset is not None and preset not in agents.presets(PLAYER):
            agent, preset = agents.from_preset(preset)
    chosen = recipe_for(spec, recipe).playing()
    found = _agent(chosen, agent, preset, options)
    if getattr(found, "target_limit", None) == AUTO:
        raise UsageError("target_limit is auto, which follows from a log: give a number to learn online")
    return Resolved(found, _settings(chosen.collection, settings, "collection", found))


def _agent(
    recipe: Recipe, agent: Agent | str, preset: str | None, options: Mapping[str, Any] | None
) -> Agent:
    own = None
    if isinstance(agent, str):
        own = agents.preset(agent, preset or recipe.preset_of(agents.presets(agent)))
        agent = recipe.fitted(own)
    elif preset is not None:
        raise UsageError(f'preset "{preset}" needs an agent given by name: pass a name, or no preset')
    if not isinstance(agent, Agent):
        raise UsageError(f'{agent!r} is not an agent: pass a name such as "rem", or optimist.agents.Rem()')
    if not isinstance(options or {}, Mapping):
        raise UsageError(f'options is {in_one_line(options)}: name each, as in options={{"columns": 3}}')
    for name, value in (options or {}).items():
        if name not in names_of(agent) and name in names_of(recipe.training):
            whose = agents.name_of(agent)
            raise UsageError(f'"{name}" is no option of {whose}: outside options, pass {name}={value!r}')
    found = with_values(agent, options or {}, agents.name_of(agent))
    for name, (before, now) in (replaced(own, agent, found) if own else {}).items():
        _tell(
            f"{agents.name_of(found)}: the recipe has {name} {now:g} in place of {before:g}; to keep yours, "
            "give it as an option"
        )
    return found


@cache
def _tell(line: str) -> None:
    """Warn once: the jobs of a study are resolved many times."""
    log.warning("%s", line)


def _settings(record: Any, settings: Mapping[str, Any] | None, place: str, agent: Agent) -> Any:
    """The record with these fields; the error for a field of the agent says that it is an option."""
    for name, value in (settings or {}).items():
        if name in names_of(record):
            continue
        if name in names_of(agent) or name in field_names(agent):
            whose, where = agents.name_of(agent), f'options={{"{name}": {value!r}}}'
            raise UsageError(f'"{name}" is an option of {whose}, not a setting of the {place}: pass {where}')
        meant = closest(name, field_names(agent))
        if meant and closest(name, field_names(record)) is None:
            where = f'options={{"{meant}": {value!r}}}'
            raise UsageError(f'{place}: there is no setting "{name}"; for the agent, pass {where}')
    # A recipe that evaluates by steps would go before the episodes that were asked for.
    by_episodes = {"evaluation_steps": None} if "episodes" in (settings or {}) else {}
    return with_values(record, {**by_episodes, **(settings or {})}, place)


def following(agent: Agent, training: Training) -> list[str]:
    """The settings that follow from the log: those that are "auto"."""
    return [name for name in FOLLOWING if AUTO in (getattr(agent, name, None), getattr(training, name, None))]


class ForLog(NamedTuple):
    """An agent and its training on one log, without "auto", and what each seed learns from."""

    agent: Agent
    training: Training
    data: SeedLogs


def resolve_for_log(
    agent: Agent,
    training: Training,
    dataset: Dataset,
    seeds: tuple[int, ...],
    part: Callable[[Dataset], Dataset] = whole,
    environment: str | None = None,
) -> ForLog:
    """What "auto" becomes for this dataset, of which `part` selects what is learned from."""
    if training.hold_out == AUTO:  # where nothing is played, the held-out episodes show when to stop
        enough = min(len(log.starts) for log in parts(dataset, training, seeds, part)) >= FEWEST
        holds = enough and not environment and training.hold_out_last is None
        training = replace(training, hold_out=USUAL_SHARE if holds else 0.0)
    data = SeedLogs(dataset, training, seeds, part)
    clip, scale, kind = training.clip_rewards, training.reward_scale, training.observations
    if clip == AUTO:
        clip = clipping(dataset.provenance, environment)
    foreign = clip is None and not is_own(dataset.provenance)
    odd = outlier(data.logs) if foreign and training.clip_rewards == AUTO else None
    limit = odd.limit if odd else math.inf
    if scale == AUTO:
        scale = suggested_scale(data.logs, training.gamma, agent, limit)[0] if foreign else 1.0
    if odd:
        clip = float(f"{limit * float(scale):.6g}")
    if kind == AUTO:
        kind = observation_scaling(dataset.spec, dataset.provenance)
    training = replace(training, clip_rewards=clip, reward_scale=scale, observations=kind)
    changes: dict[str, Any] = {}
    if getattr(agent, "huber_limit", None) == AUTO:
        changes["huber_limit"] = suggested_limit(data.logs, float(scale), limit) if foreign else 1.0
    if getattr(agent, "target_limit", None) == AUTO:
        largest = max(each.largest for each in data.logged_values(training))
        changes["target_limit"] = largest or None  # a log without rewards has none
    return ForLog(replace(agent, **changes), training, data)


def resolve_for_environment(collection: Collection, environment: str) -> Collection:
    """What "auto" becomes for an agent that plays this environment."""
    if collection.clip_rewards != AUTO:
        return collection
    return replace(collection, clip_rewards=clipping({}, environment))


def is_own(provenance: Mapping[str, Any]) -> bool:
    """Was this log recorded by `optimist collect`, or imported from the DQN Replay Dataset?"""
    return "collection" in provenance or provenance.get("format") == IMPORTED


def clipping(provenance: Mapping[str, Any], environment: str | None = None) -> float | None:
    """The limit of rewards: 1 for the paper's environments, none for all others."""
    known = provenance.get("environment") or environment
    if not known:
        return 1.0 if provenance.get("format") == IMPORTED else None
    return 1.0 if envs.base_name(str(known)).partition("/")[0] in PAPERS else None


def observation_scaling(spec: Spec, provenance: Mapping[str, Any]) -> str:
    """How observations are scaled: vectors of somebody else's log are standardised, others are not."""
    return "standard" if takes_scaling(spec) and not is_own(provenance) else "none"
