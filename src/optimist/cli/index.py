"""The agents, environments, formats and recipes of the package with their settings, read from index.json.

With it help and errors about mistyped words need not import JAX. `python -m optimist.cli.index` rewrites it.
"""

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from optimist.cli.settings import Setting, settings_of
from optimist.errors import DataError, UsageError, did_you_mean

FILE = Path(__file__).with_name("index.json")
PLAYER = "dqn"  # the agent that collects if none is named
ACTIONS = {"discrete": "discrete actions", "vectors": "action vectors", "any": "any actions"}
FITTING = {
    "discrete": ("paper", "small", "vectors"),
    "vectors": ("control",),
    "any": ("paper", "small", "vectors", "control"),
}


@cache
def read() -> dict[str, Any]:
    return json.loads(FILE.read_text("utf-8"))


def settings(table: dict[str, list]) -> dict[str, Setting]:
    return {name: Setting(*parts) for name, parts in table.items()}


def agent(name: str) -> dict[str, Any]:
    """The entry of an agent; an agent of another package (module:Name or entry point) is imported."""
    known, plain = read()["agents"], name.replace("-", "_").lower()
    if plain in known:
        return known[plain]
    from optimist import plugins

    if not plugins.is_address(name) and name not in plugins.names("agents"):
        plugins.find("agents", plain, known)  # raises, with the known names
    from optimist import agents

    return _agent(agents.presets(name))


def format(name: str) -> dict[str, Any]:
    """The entry of a format; a format of another package is imported."""
    known, plain = read()["formats"], name.replace("_", "-").lower()
    if plain in known:
        return known[plain]
    from optimist.data import formats

    return _format(formats.find(name))


def engine(name: str) -> dict[str, list]:
    """The options of an engine; an engine of another package is imported."""
    known = read()["engines"]
    if name in known:
        return known[name]
    from optimist.studies import engines

    return _settings(engines.find(name).Options())


def preset(name: str, chosen: str | None) -> dict[str, Any]:
    """The entry of an agent's preset, by default the first."""
    known = agent(name)["presets"]
    if chosen is not None and chosen not in known:
        raise UsageError(f'{name} has no preset "{chosen}": {did_you_mean(chosen, known)}')
    return known[chosen or next(iter(known))]


def player(name: str | None, chosen: str | None) -> tuple[str, str | None]:
    """The agent that collects, and its preset: "rem-online" is the preset "online" of "rem"."""
    if name is not None or chosen is None or chosen in agent(PLAYER)["presets"]:
        return name or PLAYER, chosen
    known = read()["agents"]
    words = {f"{n.replace('_', '-')}-{p}": (n, p) for n in known for p in known[n]["presets"]}
    if chosen.replace("_", "-") not in words:
        raise UsageError(f'there is no preset "{chosen}": {did_you_mean(chosen, words)}')
    return words[chosen.replace("_", "-")]


def lines(names: dict[str, str]) -> str:
    """Names and descriptions in two columns."""
    width = max(map(len, names))
    return "\n".join(f"  {name:{width}}  {about}" for name, about in names.items())


def agent_lines() -> str:
    return "agents:\n" + lines({name: entry["what"] for name, entry in read()["agents"].items()})


def preset_line(name: str) -> str:
    return f"presets of {name}: {', '.join(agent(name)['presets'])}"


def build() -> dict[str, Any]:
    """The index, made from the classes."""
    from optimist import agents, envs
    from optimist.data import formats
    from optimist.studies import engines
    from optimist.studies.demo import Demo
    from optimist.training.recipes import RECIPES
    from optimist.training.settings import Collection, Training

    records = {
        "training": Training(),
        "collection": Collection(),
        "demo": Demo(),
    }
    return {
        "formats": {name: _format(formats.find(name)) for name in formats.available()},
        "agents": {name: _agent(agents.presets(name)) for name in agents.available()},
        "environments": {name: _family(family) for name, family in envs.families().items()},
        "recipes": {
            name: {"training": _values(recipe.training), "collection": _values(recipe.collection)}
            for name, recipe in RECIPES.items()
        },
        "engines": {name: _settings(engines.find(name).Options()) for name in engines.available()},
        "settings": {name: _settings(record) for name, record in records.items()},
    }


def _agent(presets: dict[str, Any]) -> dict[str, Any]:
    kind = type(next(iter(presets.values())))
    return {
        "what": _first_line(sys.modules[kind.__module__]) or _first_line(kind),
        "source": _first_line(kind),
        "actions": _actions(next(iter(presets.values()))),
        "fitted": _fitted(presets),
        "presets": {name: _preset(agent) for name, agent in presets.items()},
    }


def _first_line(described: Any) -> str:
    line, name = (described.__doc__ or "").partition("\n")[0], described.__name__
    return name if line.startswith(f"{name}(") else line  # a dataclass without one describes its fields


def _preset(agent: Any) -> dict[str, Any]:
    optimizer = type(agent.optimizer).__name__
    return {"optimizer": optimizer, "settings": _settings(agent), "fitted": _fitted({"": agent})}


def _actions(agent: Any) -> str:
    """The kind of actions that the agent's check accepts."""
    from optimist.data.transition import Spec

    specs = {
        "discrete": Spec((4,), "float32", actions=2),
        "vectors": Spec((4,), "float32", action_low=(-1.0,), action_high=(1.0,)),
    }
    learned = [name for name, spec in specs.items() if _learns(agent, spec)]
    return learned[0] if len(learned) == 1 else "any"


def _learns(agent: Any, spec: Any) -> bool:
    try:
        agent.check(spec)
    except DataError:
        return False
    return True


def _fitted(presets: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """For each kind of run and each recipe the values that differ from those of the first preset."""
    from optimist.training.recipes import RECIPES

    own = _values(next(iter(presets.values())))

    def changed(recipe: Any) -> dict[str, Any]:
        agent = recipe.fitted(presets[recipe.preset_of(presets)])
        return dict(sorted(_values(agent).items() - own.items()))

    found = {
        "training": {name: changed(recipe) for name, recipe in RECIPES.items()},
        "collection": {name: changed(recipe.playing()) for name, recipe in RECIPES.items()},
    }
    return {kind: {name: values for name, values in each.items() if values} for kind, each in found.items()}


def _family(family: Any) -> dict[str, Any]:
    options = getattr(family, "Options", None)
    return {
        "about": _first_line(family),
        "games": family.games(),
        "settings": _settings(options()) if options else {},
    }


def _format(format: Any) -> dict[str, Any]:
    """The entry of a format; one that can only be read, or only written, has none for the other."""
    options = {"read": getattr(format, "ReadOptions", None), "write": getattr(format, "WriteOptions", None)}
    found = {action: _settings(record()) if record else None for action, record in options.items()}
    return {"about": _first_line(format.source), **found}


def _settings(record: Any) -> dict[str, list]:
    return {name: list(setting) for name, setting in settings_of(record).items()}


def _values(record: Any) -> dict[str, Any]:
    return {name: setting.default for name, setting in settings_of(record).items()}


if __name__ == "__main__":
    text = json.dumps(build(), indent=1)
    FILE.write_text(re.sub(r"\n +(?=[^{}\[\]]*\])", " ", text) + "\n", "utf-8")  # one setting a line
    print(f"wrote {FILE}")
