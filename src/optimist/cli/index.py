"""The agents, environments, formats and recipes of the package, with their settings, for help and mistakes.

Their classes need JAX or NumPy, whose imports take a second. So each part is made once from the classes and
kept in the user's cache folder; it is made again when a file of the package has changed.
"""

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from optimist import plugins
from optimist.cli.words import settings_of
from optimist.errors import DataError, UsageError, did_you_mean

PACKAGE = Path(__file__).parents[1]
PLAYER = "dqn"  # the agent that collects if none is named
ACTIONS = {"discrete": "discrete actions", "vectors": "action vectors", "any": "any actions"}
Table = dict[str, Any]


def kept(make: Callable[[], Table]) -> Callable[[], Table]:
    """The table that `make` makes, or the one in the user's cache folder if it is whole and of this code."""

    @cache
    def table() -> Table:
        # The folder is as in data/machine.py, whose package imports NumPy.
        cached = (
            Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "optimist" / "words"
        )
        file = cached / f"{make.__name__}-{_hash_of(str(PACKAGE))}.json"
        with contextlib.suppress(OSError, ValueError):
            mark, _, text = file.read_text("utf-8").partition("\n")
            if mark == _hash_of(_code_state() + text):
                return json.loads(text)
        text = json.dumps(make())
        with contextlib.suppress(OSError):
            cached.mkdir(parents=True, exist_ok=True)
            descriptor, partial = tempfile.mkstemp(dir=cached)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(f"{_hash_of(_code_state() + text)}\n{text}")
            os.replace(partial, file)  # whole: another process may read or write it at the same time
        return json.loads(text)

    return table


def _hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@cache
def _code_state() -> str:
    """The sizes and times of all files of the package."""
    files = sorted((str(path), path.stat()) for path in PACKAGE.rglob("*.py"))
    return "".join(f"{path} {state.st_size} {state.st_mtime_ns}\n" for path, state in files)


@kept
def agents() -> Table:
    from optimist import agents

    return {name: _agent(name) for name in agents.available()}


@kept
def environments() -> Table:
    from optimist import envs

    return {name: _family(family) for name, family in envs.families().items()}


@kept
def formats() -> Table:
    from optimist.data import formats

    return {name: _format(name) for name in formats.available()}


@kept
def engines() -> Table:
    from optimist.studies import engines

    return {name: _engine(name) for name in engines.available()}


@kept
def records() -> Table:
    """The settings of each record that a command sets."""
    from optimist.studies.demo import Demo
    from optimist.training.settings import Collection, Training

    kinds = {"training": Training(), "collection": Collection(), "demo": Demo()}
    return {name: settings_of(record) for name, record in kinds.items()}


@kept
def recipes() -> Table:
    """The values of each recipe, and the kinds of actions for which "auto" may choose it."""
    from optimist.data.transition import Spec
    from optimist.training.resolve import RECIPES, recipe_for

    images = [Spec(shape, "float32", actions=2) for shape in ((84, 84, 1), (10, 10, 1))]
    by_actions = {name: recipe_for(spec) for name, spec in _specs().items()}
    chosen = {
        "discrete": [by_actions["discrete"], *map(recipe_for, images)],
        "vectors": [by_actions["vectors"]],
    }
    chosen["any"] = chosen["discrete"] + chosen["vectors"]
    return {
        name: {
            "training": _values(recipe.training),
            "collection": _values(recipe.collection),
            "actions": [actions for actions, each in chosen.items() if any(recipe is one for one in each)],
        }
        for name, recipe in RECIPES.items()
    }


def agent(name: str) -> Table:
    """The entry of an agent; an agent of another package (module:Name or entry point) is imported."""
    plain = name.replace("-", "_").lower()
    if plain not in agents() and not plugins.is_address(name) and name not in plugins.names("agents"):
        plugins.find("agents", plain)  # raises, with the known names
    return agents().get(plain) or _agent(name)


def format(name: str) -> Table:
    """The entry of a format; a format of another package is imported."""
    return formats().get(name.replace("_", "-").lower()) or _format(name)


def engine(name: str) -> Table:
    """The settings of an engine; an engine of another package is imported."""
    return engines()[name] if name in engines() else _engine(name)


def environment(name: str) -> Table:
    """The settings of the family of an environment; a family of another package is imported."""
    family = name.partition("/")[0]
    if family in environments():
        return environments()[family]["settings"]
    from optimist import envs

    options = envs.options_of(name)
    return settings_of(options) if options else {}


def preset(name: str, chosen: str | None) -> Table:
    """The entry of an agent's preset, by default the first."""
    known = agent(name)["presets"]
    if chosen is not None and chosen not in known:
        raise UsageError(f'{name} has no preset "{chosen}": {did_you_mean(chosen, known)}')
    return known[chosen or next(iter(known))]


def player(name: str | None, chosen: str | None) -> tuple[str, str | None]:
    """The agent that collects, and its preset: "rem-online" is the preset "online" of "rem"."""
    if name is not None or chosen is None or chosen in agent(PLAYER)["presets"]:
        return name or PLAYER, chosen
    words = {f"{n.replace('_', '-')}-{p}": (n, p) for n, entry in agents().items() for p in entry["presets"]}
    if chosen.replace("_", "-") not in words:
        raise UsageError(f'there is no preset "{chosen}": {did_you_mean(chosen, words)}')
    return words[chosen.replace("_", "-")]


def _agent(name: str) -> Table:
    from optimist import agents

    presets = agents.presets(name)
    usual = next(iter(presets.values()))
    kind, learned = type(usual), [name for name, spec in _specs().items() if _learns(usual, spec)]
    return {
        "what": _first_line(sys.modules[kind.__module__]) or _first_line(kind),
        "source": _first_line(kind),
        "actions": learned[0] if len(learned) == 1 else "any",
        "fitted": _fitted(presets),
        "presets": {
            name: {
                "optimizer": type(agent.optimizer).__name__,
                "settings": settings_of(agent),
                "fitted": _fitted({"": agent}),
            }
            for name, agent in presets.items()
        },
    }


def _specs() -> Table:
    """Data of each kind of actions."""
    from optimist.data.transition import Spec

    return {
        "discrete": Spec((4,), "float32", actions=2),
        "vectors": Spec((4,), "float32", action_low=(-1.0,), action_high=(1.0,)),
    }


def _learns(agent: Any, spec: Any) -> bool:
    try:
        agent.check(spec)
    except DataError:
        return False
    return True


def _first_line(described: Any) -> str:
    line, name = (described.__doc__ or "").partition("\n")[0], described.__name__
    return name if line.startswith(f"{name}(") else line  # a dataclass without one describes its fields


def _fitted(presets: Table) -> Table:
    """For each kind of run and each recipe the values that differ from those of the first preset."""
    from optimist.training.resolve import RECIPES

    own, fitted = _values(next(iter(presets.values()))), dict[str, Table]()
    for kind in ("training", "collection"):
        fitted[kind] = {}
        for name, recipe in RECIPES.items():
            recipe = recipe.playing() if kind == "collection" else recipe
            agent = recipe.fitted(presets[recipe.preset_of(presets)])
            if changed := dict(sorted(_values(agent).items() - own.items())):
                fitted[kind][name] = changed
    return fitted


def _family(family: Any) -> Table:
    options = getattr(family, "Options", None)
    settings = settings_of(options()) if options else {}
    return {"about": _first_line(family), "games": family.games(), "settings": settings}


def _format(name: str) -> Table:
    """The entry of a format; one that can only be read, or only written, has none for the other."""
    from optimist.data import formats

    format = formats.find(name)
    written = format.WriteOptions and settings_of(format.WriteOptions())
    return {"about": _first_line(format.source), "read": settings_of(format.ReadOptions()), "write": written}


def _engine(name: str) -> Table:
    from optimist.studies import engines

    return settings_of(engines.find(name).Options())


def _values(record: Any) -> Table:
    return {name: setting.default for name, setting in settings_of(record).items()}
